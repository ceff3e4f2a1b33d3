import errno
import socket

import pytest

from kit.worker.rank_place import address_of, held_port

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
