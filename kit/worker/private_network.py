"""A network namespace for the ranks of a worker: it has only loopback, and only the worker's processes are in it.

runner ── starts ─► this file as a program: makes the namespace, sends its descriptors, and ends
       ── descriptors ─► the supervisor of each rank: enters it, then starts its rank there

A descriptor or a process keeps a namespace. The kernel removes it with the last of both, however they end.

A namespace needs a capability. Without it the process first gets a user namespace in which it stays the same user,
as user_namespaces(7) says, and owns the network there. Files, devices and limits stay those of the user.
"""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# From <linux/sched.h>. Python has unshare and setns only since 3.12.
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
# From <linux/sockios.h> and <linux/if.h>; netdevice(7).
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
# A struct ifreq: a name, then the flags in a union of 24 bytes.
IFREQ, LOOPBACK_NAME = struct.Struct("16sh22x"), b"lo"
LOOPBACK = "127.0.0.1"
# A process enters the user namespace first: that gives it the right to enter the other.
KINDS = ("user", "net")
MESSAGE_B = 1024


class Refused(Exception):  # noqa: N818 - it says what happened
    """The kernel, or what guards it, gives no namespace."""

    def __init__(self, call: str, error: OSError) -> None:
        super().__init__(call)
        self.call, self.error = call, errno.errorcode.get(error.errno or 0, str(error.errno))


def make() -> list[int]:
    """Move this process into a network namespace of its own; return descriptors for `enter`.

    Raises:
        Refused: there is none to be had.
    """
    uid, gid = os.geteuid(), os.getegid()
    with suppress(Refused):
        _unshare(CLONE_NEWNET)
        _raise_loopback()
        return _descriptors(KINDS[1:])
    _unshare(CLONE_NEWUSER | CLONE_NEWNET)
    # Without privileges a group can be mapped only where no process may change its groups.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        try:
            Path("/proc/self", name).write_text(text)
        except OSError as error:
            raise Refused(name, error) from None
    _raise_loopback()
    return _descriptors(KINDS)


def enter(descriptors: Sequence[int]) -> None:
    """Move this process, which has one thread, into the namespaces; close their descriptors.

    Raises:
        OSError: the kernel does not let it in.
    """
    for descriptor in descriptors:
        if _libc().setns(descriptor, 0):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "setns")
        os.close(descriptor)


def receive(channel: socket.socket) -> list[int]:
    """Return the descriptors that this file, as a program, has sent.

    Raises:
        Refused: there are none, and why.
    """
    message, descriptors, flags, _ = socket.recv_fds(channel, MESSAGE_B, len(KINDS))
    if descriptors and not flags & socket.MSG_CTRUNC:
        return descriptors
    for descriptor in descriptors:
        os.close(descriptor)
    call, number = json.loads(message or json.dumps(["exec", errno.ECHILD]))
    raise Refused(call, OSError(number, ""))


def main(descriptor: int) -> None:
    """Make a namespace, and send what `receive` returns."""
    with socket.socket(fileno=descriptor) as channel:
        try:
            descriptors = make()
            # What is wrong where they do not arrive: the receiver has no room for them.
            socket.send_fds(channel, [json.dumps(["recvmsg", errno.EMFILE]).encode()], descriptors)
        except Refused as refused:
            channel.sendall(json.dumps([refused.call, getattr(errno, refused.error, 0)]).encode())


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _unshare(flags: int) -> None:
    if _libc().unshare(flags):
        raise Refused("unshare", OSError(ctypes.get_errno(), ""))


def _raise_loopback() -> None:
    """Switch the interface lo on, and see that a connection passes through it: a guard may allow the one alone."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            request = array.array("b", IFREQ.pack(LOOPBACK_NAME, 0))
            fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)
            flags = IFREQ.unpack(request.tobytes())[1]
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, IFREQ.pack(LOOPBACK_NAME, flags | IFF_UP))
        with socket.create_server((LOOPBACK, 0)) as server:
            socket.create_connection(server.getsockname()).close()
    except OSError as error:
        raise Refused("loopback", error) from None


def _descriptors(kinds: Sequence[str]) -> list[int]:
    try:
        return [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    except OSError as error:
        raise Refused("open", error) from None


if __name__ == "__main__":
    main(int(sys.argv[1]))
