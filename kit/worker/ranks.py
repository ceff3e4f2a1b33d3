"""The ranks of a member: rank 0 has the runner, starts the others, passes every command on, and answers for all.

    runner ── command ─► rank 0 ── command ─► rank 1, rank 2 …
           ◄─ answer ──         ◄─ answers ─
                                ── value ───►  what rank 0 has decided, as how many steps a block has

On one host they are one process group: a signal that stops, continues or ends rank 0 does so with all.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import threading
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, NoReturn, Protocol

import msgspec
from msgspec.structs import replace

from kit.clock import now_ns
from kit.environment import RANKS_TOKEN
from kit.profile.launch import Failure
from kit.profile.reason import reason
from kit.version import __version__
from kit.worker.messages import Answer, Done, Entered, Failed, Prepare
from kit.worker.rank_process import (
    LOOPBACK,
    SRUN_ADDRESS,
    free_address,
    host_of,
    how_it_ended,
    ranks_per_host,
    start_rank,
)

# A follower's start is Python's and no framework's.
START_LIMIT_S = 60.0
LOOK_EVERY_S = 0.5
# Token, rank, an address of its own, and the kit's version.
HELLO_WORDS, HELLO_B = 4, 1024
# Sent with the connection.
HELLO_LIMIT_S = 5.0
# A host that is gone without a word is noticed within half a minute; the kernel answers for processes that are stopped.
KEEP_ALIVE = {socket.TCP_KEEPIDLE: 15, socket.TCP_KEEPINTVL: 5, socket.TCP_KEEPCNT: 3}
# Where one rank fails, the others wait for it in a collective. Of their own errors the first is known by then.
GRACE_S = 5.0
# Where rank 0 fails, the others may be about to fail, too: on a busy machine later.
FAILED_GRACE_S = 30.0
# Of a line that is a value and no command.
AGREED = "agreed"


class Ranks(Protocol):
    """The ranks of a cell, as one of them sees them."""

    number: int
    size: int

    def agree(self, value: Any) -> Any:  # noqa: ANN401 - what JSON holds
        """Return rank 0's value, in all ranks."""


class NoOthers:
    """A member that has one process."""

    number, size = 0, 1

    def agree(self, value: Any) -> Any:  # noqa: ANN401
        """Return the value."""
        return value


class Follower:
    """A rank above 0, which does what rank 0 passes on.

    Args:
        number: of the rank.
        size: how many there are.
        commands: where rank 0's values come from, between its commands.
    """

    def __init__(self, number: int, size: int, commands: BinaryIO) -> None:
        self.number, self.size, self._commands = number, size, commands

    def agree(self, value: Any) -> Any:  # noqa: ANN401, ARG002
        """Wait for rank 0's value."""
        line = self._commands.readline()
        if not line:
            os._exit(1)  # rank 0 has ended
        return msgspec.json.decode(line)[AGREED]


class RankError(Exception):
    """A rank has failed where rank 0 has not.

    Args:
        number: of the rank.
        failure: its own.
        host: whose it is; empty: rank 0's.
    """

    def __init__(self, number: int, failure: Failure, host: str = "") -> None:
        super().__init__(number)
        where = {"rank": number, "host": host} if host else {"rank": number}
        self.failure = replace(failure, reason=reason(failure.reason.code, **failure.reason.values | where))


class Followers:
    """The other ranks, as rank 0 sees them.

    Args:
        asked: of the member; how many ranks there are.
        give_up: called where a rank has failed, and rank 0 does not come back from waiting for it; does not return.
    """

    number = 0

    def __init__(self, asked: Prepare, give_up: Callable[[Failure], NoReturn]) -> None:
        self.size, self._asked, self._give_up = asked.ranks, asked, give_up
        self._answers: dict[int, SimpleQueue[Done | Failed]] = {rank: SimpleQueue() for rank in range(1, asked.ranks)}
        self._alarm: threading.Timer | None = None
        self.ranks_per_host = ranks_per_host(asked)
        self.share_cpus = len(asked.cpus) < self.ranks_per_host
        self.are_ending = False  # they have been told to: an end is no failure
        self._lock = threading.Lock()
        token = secrets.token_hex(16)
        with socket.create_server(("" if asked.hosts else LOOPBACK, 0)) as server:
            port = server.getsockname()[1]
            self._processes = {rank: start_rank(asked, rank, port, token) for rank in self._answers}
            self._links = self._accepted(server, token)
        here = self._links[self.size - 1][0].getsockname()[0]  # as the last, perhaps on another host, has reached it
        self.addresses = [free_address(here), *(address for _, address in self._links.values())]
        self._decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
        for rank, (link, _) in self._links.items():
            threading.Thread(target=self._read, args=(rank, link.makefile("rb")), daemon=True).start()

    def send(self, commands: Iterable[bytes]) -> None:
        """Send each rank its line."""
        for (link, _), line in zip(self._links.values(), commands, strict=True):
            with suppress(OSError):  # it has ended, as its answer will tell
                link.sendall(line)

    def agree(self, value: Any) -> Any:  # noqa: ANN401
        """Tell all ranks a value of rank 0's."""
        self.send([msgspec.json.encode({AGREED: value}) + b"\n"] * (self.size - 1))
        return value

    def answers(self, *, limit_s: float | None = None) -> list[Done | Failed] | None:
        """Return the answer of every rank above 0 to the last command, rank 0 having its own.

        None: one has none after `limit_s`, as it waits for rank 0 in a collective.
        """
        try:
            answers = [queue.get(timeout=limit_s) for queue in self._answers.values()]
        except Empty:
            return None
        with self._lock:
            if self._alarm is not None:
                self._alarm.cancel()
                self._alarm = None
        return answers

    def _accepted(self, server: socket.socket, token: str) -> dict[int, tuple[socket.socket, str]]:
        """Return a connection and a free address of each rank; who does not know the token is none."""
        links: dict[int, tuple[socket.socket, str]] = {}
        deadline_ns = now_ns() + int(START_LIMIT_S * 1e9)
        server.settimeout(LOOK_EVERY_S)
        while len(links) < self.size - 1:
            try:
                link, _ = server.accept()
            except TimeoutError:
                self._check_started(links, is_over=now_ns() > deadline_ns)
                continue
            words = _hello(link)
            if len(words) == HELLO_WORDS and secrets.compare_digest(words[0].encode(), token.encode()):
                _keep_alive(link)
                _, rank, address, version = words
                if version != __version__:
                    why = reason("ranks_differ", what="the kit", here=__version__, there=version)
                    raise self.error(int(rank), Failure(phase="start", reason=why))
                links[int(rank)] = link, address
        return dict(sorted(links.items()))

    def _check_started(self, links: Container[int], *, is_over: bool) -> None:
        """Raise RankError where a rank that has not connected has ended, or its time is over."""
        for rank, process in self._processes.items():
            if rank not in links and (is_over or process.poll() is not None):
                raise self.error(rank, Failure(phase="start", reason=how_it_ended(process, GRACE_S)))

    def _read(self, rank: int, answers: BinaryIO) -> None:
        # Of one that was killed: a reset in place of an end where it had not read all, or half a line.
        with suppress(OSError, msgspec.DecodeError):
            for line in answers:
                match answer := self._decoder.decode(line):
                    case Entered():
                        continue
                    case Failed():
                        self._raise_alarm(rank, answer.failure)
                        self._answers[rank].put(answer)
                    case Done():
                        self._answers[rank].put(answer)
        failure = Failure(phase="steady", reason=how_it_ended(self._processes[rank], GRACE_S))
        self._raise_alarm(rank, failure)
        self._answers[rank].put(Failed(program=None, failure=failure))

    def _raise_alarm(self, rank: int, failure: Failure) -> None:
        with self._lock:
            if self._alarm is None and not self.are_ending:
                known = self.error(rank, failure).failure
                self._alarm = threading.Timer(GRACE_S, self._give_up, [known])
                self._alarm.daemon = True
                self._alarm.start()

    def error(self, rank: int, failure: Failure) -> RankError:
        """Return the error of a rank, with its host where that is another than rank 0's."""
        host = host_of(self._asked, rank)
        return RankError(rank, failure, "" if host == host_of(self._asked, 0) else host)


def follow(text: str, lead: str) -> tuple[Follower, BinaryIO, BinaryIO]:
    """Connect to rank 0 as rank N of M (``N/M``); return this rank, its commands, and where its answers go.

    `lead`: host:port where rank 0 listens; without the host it is where `srun` was called.
    """
    number, size = map(int, text.split("/"))
    host, port = lead.rsplit(":", 1)
    link = socket.create_connection((host or os.environ[SRUN_ADDRESS], int(port)), START_LIMIT_S)
    link.settimeout(None)
    _keep_alive(link)
    address = free_address(link.getsockname()[0])
    link.sendall(f"{os.environ.pop(RANKS_TOKEN)} {number} {address} {__version__}\n".encode())
    threading.Thread(target=_end_with, args=(link,), daemon=True).start()
    commands = link.makefile("rb")
    return Follower(number, size, commands), commands, link.makefile("wb")


def _hello(link: socket.socket) -> list[str]:
    """Return the words with which a rank begins; none of what does not speak, as a scanner of ports."""
    link.settimeout(HELLO_LIMIT_S)
    try:
        return link.makefile("rb").readline(HELLO_B).decode(errors="replace").split()
    except OSError:
        return []
    finally:
        link.settimeout(None)


def _keep_alive(link: socket.socket) -> None:
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        link.setsockopt(socket.IPPROTO_TCP, option, value)


def _end_with(link: socket.socket) -> None:
    """End this process when rank 0's does: it may wait for it in a collective."""
    at_end = select.poll()
    at_end.register(link, select.POLLRDHUP)
    at_end.poll()
    os._exit(1)


def is_value(line: bytes) -> bool:
    """Return whether a line is a value that its rank, failing, has not waited for."""
    return line.startswith(b'{"%s"' % AGREED.encode())
