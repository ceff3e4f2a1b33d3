"""The ranks of a member: rank 0 has the runner, starts the others, passes every command on, and answers for all.

    runner ── command ─► rank 0 ── command ─► rank 1, rank 2 …
           ◄─ answer ──         ◄─ answers ─
                                ── value ───►  what rank 0 has decided, as how many steps a block has

They are one process group: a signal that stops, continues or ends rank 0 does so with all.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO, NoReturn, Protocol

import msgspec
from msgspec.structs import replace

from kit.clock import now_ns
from kit.devices.catalog import DEVICES
from kit.errors import KitError
from kit.profile.launch import Failure
from kit.profile.reason import Reason, reason
from kit.worker.messages import Answer, Done, Entered, Failed, Prepare

TOKEN = "KIT_RANKS_TOKEN"
LOOPBACK = "127.0.0.1"
# A follower's start is Python's and no framework's.
START_LIMIT_S = 60.0
LOOK_EVERY_S = 0.5
# Token, rank, and an address of its own.
HELLO_WORDS = 3
# Where one rank fails, the others wait for it in a collective. Of their own errors the first is known by then.
GRACE_S = 5.0
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
    """

    def __init__(self, number: int, failure: Failure) -> None:
        super().__init__(number)
        self.failure = replace(failure, reason=of_rank(failure.reason, number))


class Followers:
    """The other ranks, as rank 0 sees them.

    Args:
        asked: of the member; how many ranks there are.
        give_up: called where a rank has failed, and rank 0 does not come back from waiting for it; does not return.
    """

    number = 0

    def __init__(self, asked: Prepare, give_up: Callable[[Failure], NoReturn]) -> None:
        self.size, self._give_up = asked.ranks, give_up
        self._answers: dict[int, SimpleQueue[Done | Failed]] = {rank: SimpleQueue() for rank in range(1, asked.ranks)}
        self._alarm: threading.Timer | None = None
        self.are_ending = False  # they have been told to: an end is no failure
        self._lock = threading.Lock()
        token, kind = secrets.token_hex(16), asked.programs[0].cell.device
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        with socket.create_server((LOOPBACK, 0)) as server:
            for rank in self._answers:
                lead = f"{LOOPBACK}:{server.getsockname()[1]}"
                cpus = ",".join(map(str, cpus_of(asked, rank)))
                place = ["--rank", f"{rank}/{self.size}", "--lead", lead]
                self._processes[rank] = subprocess.Popen(
                    [sys.executable, "-m", "kit.worker", "--runner", str(os.getpid()), "--cpus", cpus, *place],
                    stdin=subprocess.DEVNULL,
                    env={**os.environ, **DEVICES[kind].shown_to_rank(rank, os.environ), TOKEN: token},
                )
            self._links = self._accepted(server, token)
        self.addresses = [free_address(), *(address for _, address in self._links.values())]
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

    def answers(self) -> list[Done | Failed]:
        """Return the answer of every rank above 0 to the last command, rank 0 having its own."""
        answers = [queue.get() for queue in self._answers.values()]
        with self._lock:
            if self._alarm is not None:
                self._alarm.cancel()
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
            link.settimeout(START_LIMIT_S)
            words = link.makefile("rb").readline().decode().split()
            link.settimeout(None)
            if len(words) == HELLO_WORDS and secrets.compare_digest(words[0], token):
                links[int(words[1])] = link, words[2]
        return dict(sorted(links.items()))

    def _check_started(self, links: Container[int], *, is_over: bool) -> None:
        """Raise RankError where a rank that has not connected has ended, or its time is over."""
        for rank, process in self._processes.items():
            if rank not in links and (is_over or process.poll() is not None):
                raise RankError(rank, Failure(phase="start", reason=self._how_it_ended(rank)))

    def _read(self, rank: int, answers: BinaryIO) -> None:
        for line in answers:
            match answer := self._decoder.decode(line):
                case Entered():
                    continue
                case Failed():
                    self._raise_alarm(rank, answer.failure)
                    self._answers[rank].put(answer)
                case Done():
                    self._answers[rank].put(answer)
        failure = Failure(phase="steady", reason=self._how_it_ended(rank))
        self._raise_alarm(rank, failure)
        self._answers[rank].put(Failed(program=None, failure=failure))

    def _raise_alarm(self, rank: int, failure: Failure) -> None:
        with self._lock:
            if self._alarm is None and not self.are_ending:
                known = RankError(rank, failure).failure
                self._alarm = threading.Timer(GRACE_S, self._give_up, [known])
                self._alarm.daemon = True
                self._alarm.start()

    def _how_it_ended(self, rank: int) -> Reason:
        try:
            code = self._processes[rank].wait(GRACE_S)
        except subprocess.TimeoutExpired:
            return reason("closed_its_pipes")
        return reason("signal", signal=signal.Signals(-code).name) if code < 0 else reason("rank_exit", exit_code=code)


def follow(text: str, lead: str) -> tuple[Follower, BinaryIO, BinaryIO]:
    """Connect to rank 0 as rank N of M (``N/M``); return this rank, its commands, and where its answers go."""
    number, size = map(int, text.split("/"))
    host, port = lead.rsplit(":", 1)
    link = socket.create_connection((host, int(port)), START_LIMIT_S)
    link.settimeout(None)
    link.sendall(f"{os.environ.pop(TOKEN)} {number} {free_address()}\n".encode())
    commands = link.makefile("rb")
    return Follower(number, size, commands), commands, link.makefile("wb")


def is_value(line: bytes) -> bool:
    """Return whether a line is a value that its rank, failing, has not waited for."""
    return line.startswith(b'{"%s"' % AGREED.encode())


def free_address() -> str:
    """Return host:port where nobody listens."""
    with socket.create_server((LOOPBACK, 0)) as server:
        return f"{LOOPBACK}:{server.getsockname()[1]}"


def cpus_of(asked: Prepare, rank: int) -> Sequence[int]:
    """Return a rank's part of the member's CPUs; all of them where an accelerator's ranks are more than there are.

    Raises:
        KitError: ranks that compute on CPUs are more than there are.
    """
    cpus, size = asked.cpus, asked.ranks
    if len(cpus) < size:
        if asked.programs[0].cell.device == "cpu":
            raise KitError(f"{size} ranks need a CPU each, and {len(cpus)} may be used; give fewer --devices")
        return cpus
    return cpus[rank * len(cpus) // size : (rank + 1) * len(cpus) // size]


def of_rank(why: Reason, number: int) -> Reason:
    """Return the reason with the rank whose it is."""
    return reason(why.code, **why.values | {"rank": number})
