"""A rank's place: a port that nobody else gets, and CPUs of a planted machine, by whole cores, nodes and boards."""

import errno
import json
import socket

import pytest
from planted_files import plant

from kit.worker.messages import Prepare
from kit.worker.rank_place import address_of, cpus_of_rank, divided, held_port

LOOPBACK = "127.0.0.1"


def bound(port):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((LOOPBACK, port))


def test_a_port_is_nobody_elses_until_it_is_given_and_takes_no_connection():
    held = held_port(LOOPBACK)
    host, _, port = address_of(held).rpartition(":")
    assert host == LOOPBACK
    with pytest.raises(OSError, match=rf"\[Errno {errno.EADDRINUSE}\]"):
        bound(int(port))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 5)
    held.close()
    bound(int(port))


def test_ports_that_are_held_differ():
    held = [held_port(LOOPBACK) for _ in range(50)]
    assert len({address_of(port) for port in held}) == 50
    for port in held:
        port.close()


# Two cores a node, and two CPUs a core: siblings are i and i + 4, as most kernels count them.
EIGHT_CPUS = {f"cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)}
TWO_NODES = {"node/node0/cpulist": "0-1,4-5", "node/node1/cpulist": "2-3,6-7"}
OF_BOARDS = """
import json
from pathlib import Path
from kit.worker.messages import Prepare
from kit.worker.rank_place import cpus_of_rank
asked = [Prepare(backend="torch", device="gpu", clock="auto", cpus=list(range(8)), part=rank, parts=4, devices=4)
         for rank in range(4)]
print(json.dumps([sorted(cpus_of_rank(rank, Path("/no/topology"))) for rank in asked]))
"""


def divided_over(parts, cpus, root):
    """The CPUs of each rank of a host."""
    fields = {"backend": "torch", "device": "cpu", "clock": "auto", "cpus": list(cpus), "devices": parts}
    return [cpus_of_rank(Prepare(**fields, part=rank, parts=parts), root) for rank in range(parts)]


@pytest.mark.parametrize(
    ("cpus", "expected"),
    [
        (range(8), [[0, 1, 4, 5], [2, 3, 6, 7]]),
        (range(8), [[0, 4], [1, 5], [2, 6], [3, 7]]),
        (range(8), [[cpu] for cpu in (0, 4, 1, 5, 2, 6, 3, 7)]),
        ([1, 2, 3, 5, 6, 7], [[1, 5], [2, 6], [3, 7]]),
        # A core that cannot be divided: one of its CPUs each.
        ([0, 1, 2, 4, 5, 6], [[0, 1, 4], [2, 5, 6]]),
    ],
)
def test_no_two_ranks_share_a_core_or_a_node_that_can_be_divided(tmp_path, cpus, expected):
    root = plant(tmp_path, EIGHT_CPUS | TWO_NODES) / "cpu"
    assert divided_over(len(expected), cpus, root) == expected


def test_cpus_whose_cores_the_kernel_does_not_tell_are_divided_in_their_order(tmp_path):
    assert divided_over(2, range(8), tmp_path) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_rank_has_the_cpus_next_to_its_board(in_nvml_process):
    two_boards_a_node = {"NVML_BOARDS": "4", "NVML_NODE_CPUS": "4", "NVML_NODE_BOARDS": "2"}
    shown = in_nvml_process(OF_BOARDS, CUDA_VISIBLE_DEVICES="2,3,0,1", **two_boards_a_node)
    assert json.loads(shown) == [[4, 5], [6, 7], [0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        ([{0, 1, 2, 3}, {0, 1, 2, 3}, {4, 5, 6, 7, 8}], [[0, 1], [2, 3], [4, 5, 6, 7]]),
        # Not known, in part the same, none that may be used: as if boards were all alike.
        ([], [[0, 1], [2, 3, 4], [5, 6, 7]]),
        ([{0, 1, 2, 3}, {2, 3, 4, 5}, {6, 7}], [[0, 1], [2, 3, 4], [5, 6, 7]]),
        ([{0, 1, 2, 3}, {4, 5}, {8, 9}], [[0, 1], [2, 3, 4], [5, 6, 7]]),
    ],
)
def test_boards_of_a_node_share_its_cpus_and_what_cannot_be_divided_so_is_divided_evenly(near, expected):
    assert [divided(range(8), part, 3, near) for part in range(3)] == expected
