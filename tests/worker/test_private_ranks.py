"""Two real ranks of each framework: nobody else reaches their sockets; without namespaces no other machine does."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from namespaces import listening, listening_of, needs_namespaces, network_of, refusing
from real_worker import PYTHONPATH

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: each rank needs one of its own"),
]
TESTS = Path(__file__).parents[1]
MODES = {"torch": "eager", "jax": "jit", "tensorflow": "graph"}
HOST, GUEST = "10.213.77.1", "10.213.77.2"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


class Held:
    """Two ranks that wait, and the process that asked for them."""

    def __init__(self, runner):
        self.runner = runner
        self.said = json.loads(runner.stdout.readline() or "{}")
        assert self.said and self.said["failure"] is None, self.said or runner.stderr.read()
        self.ranks, self.processes = self.said["ranks"], self.said["processes"]
        assert len(self.ranks) == 2

    def sockets(self):
        return [listener for rank in self.ranks for listener in listening_of(rank)]


@contextmanager
def held(backend, under=()):
    command = [*under, sys.executable, str(TESTS / "held_ranks.py"), backend, MODES[backend]]
    runner = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{PYTHONPATH}{os.pathsep}{TESTS}"},
    )
    try:
        yield Held(runner)
    finally:
        runner.kill()
        runner.communicate()


@pytest.fixture(
    scope="module", params=["torch", *(pytest.param(name, marks=pytest.mark.slow) for name in ("jax", "tensorflow"))]
)
def ranks(request):
    needs_namespaces()
    with held(request.param) as started:
        yield started


def connects_here(port):
    with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


@pytest.fixture(scope="module")
def neighbour():
    """Connect from a namespace beside this one, which reaches this one's addresses: `neighbour(port) -> bool`."""
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("not root, or no ip: two namespaces cannot be joined")
    # The line that it prints says that it is in its namespace.
    guest = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", "echo; read line"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    enter = ["nsenter", f"--net=/proc/{guest.pid}/ns/net"]
    here, there = f"kit{os.getpid() % 10**6}a", f"kit{os.getpid() % 10**6}b"
    try:
        if not guest.stdout.readline():
            pytest.skip("this kernel or container gives no network namespace")
        for words in (
            ["ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", str(guest.pid)],
            ["ip", "addr", "add", f"{HOST}/30", "dev", here],
            ["ip", "link", "set", here, "up"],
            [*enter, "ip", "addr", "add", f"{GUEST}/30", "dev", there],
            [*enter, "ip", "link", "set", there, "up"],
        ):
            if (done := subprocess.run(words, capture_output=True, text=True, check=False)).returncode:
                pytest.skip(f"{' '.join(words)}: {done.stderr.strip()}")

        def connects(port):
            command = [*enter, sys.executable, "-I", "-S", "-c", CONNECT, HOST, str(port)]
            return subprocess.run(command, capture_output=True, check=False).returncode == 0

        yield connects
    finally:
        subprocess.run(["ip", "link", "del", here], capture_output=True, check=False)
        guest.kill()
        guest.communicate()


def test_the_kernel_lists_no_socket_of_theirs_in_this_network(ranks):
    sockets = ranks.sockets()
    assert sockets, "they listen for each other"
    assert not {listener.inode for listener in sockets} & {known.inode for known in listening()}
    (network,) = {network_of(rank) for rank in ranks.ranks}
    assert network != network_of("self")
    assert ranks.said["who_reaches"] == "ranks_private"


def test_their_network_has_only_loopback_and_their_own_processes(ranks):
    lines = Path(f"/proc/{ranks.ranks[0]}/net/dev").read_text().splitlines()[2:]
    received_b = {name.strip(): counts.split()[0] for name, _, counts in (line.partition(":") for line in lines)}
    assert {name for name, count in received_b.items() if count != "0"} == {"lo"}
    network = network_of(ranks.ranks[0])
    assert processes_in(network) <= {*ranks.processes}


def processes_in(network):
    inside = set()
    for process in psutil.process_iter():
        try:
            if network_of(process.pid) == network:
                inside.add(process.pid)
        except OSError:
            continue
    return inside


def test_a_connection_by_this_networks_loopback_is_refused(ranks):
    with socket.create_server(("", 0)) as open_to_all:
        assert connects_here(open_to_all.getsockname()[1]), "the way is open"
    assert ports_of(ranks)
    assert not [port for port in ports_of(ranks) if connects_here(port)]


def test_a_connection_from_another_namespaces_address_is_refused(ranks, neighbour):
    with socket.create_server(("", 0)) as open_to_all:
        assert neighbour(open_to_all.getsockname()[1]), "the way is open"
    assert not [port for port in ports_of(ranks) if neighbour(port)]


def ports_of(ranks):
    """The ports on which ranks listen; not those on which other programs of this machine listen, too."""
    sockets = ranks.sockets()
    inodes = {listener.inode for listener in sockets}
    others = {known.port for known in listening() if known.inode not in inodes}
    return {listener.port for listener in sockets} - others


def test_a_runner_that_is_killed_leaves_nobody_in_their_network(ranks):
    network = network_of(ranks.ranks[0])
    ranks.runner.kill()
    end_s = time.monotonic() + 30
    while processes_in(network):
        assert time.monotonic() < end_s, "the supervisors end what they have started"
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_ranks_of_several_hosts_listen_at_the_address_that_they_are_given_alone(backend):
    started = [
        subprocess.Popen(
            [sys.executable, str(TESTS / "joined_rank.py"), backend, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": PYTHONPATH},
        )
        for number in range(2)
    ]
    try:
        addresses = [rank.stdout.readline().strip() for rank in started]
        for rank in started:
            rank.stdin.write(f"{json.dumps(addresses)}\n")
            rank.stdin.flush()
        assert [rank.stdout.readline().strip() for rank in started] == ["joined"] * 2
        sockets = [listener for rank in started for listener in listening_of(rank.pid)]
        assert int(addresses[0].rpartition(":")[2]) in {listener.port for listener in sockets}, "the port held for it"
        assert all(listener.is_on_loopback for listener in sockets), sockets
    finally:
        for rank in started:
            rank.kill()
            rank.communicate()


@pytest.mark.parametrize("backend", ["torch", pytest.param("jax", marks=pytest.mark.slow)])
def test_without_a_namespace_they_listen_on_loopback_alone(backend):
    with held(backend, refusing()) as started:
        sockets = started.sockets()
        assert sockets
        assert all(listener.is_on_loopback for listener in sockets), sockets
        assert started.said["who_reaches"] == "ranks_on_loopback"
