"""Ranks divide the CPUs of a planted machine: whole cores, nodes of memory, and what is next to their boards."""

import json
from pathlib import Path

import pytest
from member_process import cell, prepare
from msgspec.structs import replace
from planted_files import plant

from kit.worker.rank_cpus import cpus_of, divided

# Two cores a node, and two CPUs a core: siblings are i and i + 4, as most kernels count them.
EIGHT_CPUS = {f"cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 4},{cpu % 4 + 4}" for cpu in range(8)}
TWO_NODES = {"node/node0/cpulist": "0-1,4-5", "node/node1/cpulist": "2-3,6-7"}
OF_BOARDS = f"""
import json, sys
from pathlib import Path
sys.path.append({str(Path(__file__).parent)!r})
from member_process import cell, prepare
from msgspec.structs import replace
from kit.worker.rank_cpus import cpus_of
asked = replace(prepare(cell(device="gpu", devices=4)), ranks=4, cpus=list(range(8)))
print(json.dumps([sorted(cpus_of(asked, rank, Path("/no/topology"))) for rank in range(4)]))
"""


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
    ranks = len(expected)
    asked = replace(prepare(cell(devices=ranks)), ranks=ranks, cpus=list(cpus))
    assert [cpus_of(asked, rank, root) for rank in range(ranks)] == expected


def test_cpus_whose_cores_the_kernel_does_not_tell_are_divided_in_their_order(tmp_path):
    asked = replace(prepare(cell(devices=2)), ranks=2, cpus=list(range(8)))
    assert [cpus_of(asked, rank, tmp_path) for rank in range(2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]


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
