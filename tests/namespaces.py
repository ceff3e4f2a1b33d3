"""Ways to start a command where the kernel gives namespaces or refuses them; and who listens in which."""

import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

# From the kernel's list: a socket that waits for connections, and an address that no other machine reaches.
LISTENS = "0A"
LOOPBACKS = {"0100007F", f"{'0' * 24}01000000", f"{'0' * 16}FFFF00000100007F"}
REFUSE = "echo 0 > /proc/sys/user/max_net_namespaces"


class Listening(NamedTuple):
    """A listening socket: its address as the kernel prints it, its port, and its number."""

    address: str
    port: int
    inode: int

    @property
    def is_on_loopback(self):
        return self.address in LOOPBACKS


def works(*command):
    try:
        return subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def needs_namespaces():
    """Skip where the kernel gives this user none."""
    if not works("unshare", "--net") and not works("unshare", "--user", "--net"):
        pytest.skip("this kernel or container gives this user no network namespace")


def refusing(*, without_network=False):
    """What to begin a command with, so that the kernel refuses it another network namespace; it may have no network."""
    apart = ["--net"] if without_network else []
    if not works("unshare", "--user", "--map-root-user", *apart, "sh", "-c", f"{REFUSE} && exec $0"):
        pytest.skip("no user namespace, in which alone the limit of namespaces can be set")
    before = "ip link set lo up && " if without_network else ""
    if without_network and shutil.which("ip") is None:
        pytest.skip("no ip, which switches loopback on")
    return ["unshare", "--user", "--map-root-user", *apart, "sh", "-c", f'{before}{REFUSE} && exec "$@"', "sh"]


def unprivileged():
    """What to begin a command with, so that it runs without any capability, also where root runs the tests."""
    command = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    if not works(*command):
        pytest.skip("no user namespace, or no unshare that maps users (util-linux 2.38)")
    return command


def network_of(pid):
    return Path(f"/proc/{pid}/ns/net").readlink()


def listening(pid="self"):
    """The listening sockets in the network of a process, as the kernel lists them."""
    listed = []
    for name in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{name}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            address, port = fields[1].split(":")
            if fields[3] == LISTENS:
                listed.append(Listening(address, int(port, 16), int(fields[9])))
    return listed


def listening_of(pid):
    """The listening sockets of a process."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since
            inodes |= {int(number) for number in re.findall(r"^socket:\[(\d+)\]$", str(link.readlink()))}
    return [socket for socket in listening(pid) if socket.inode in inodes]
