"""A command as a program: a step is one run of it, or of its server's client, and may print the figure that counts.

    prepare ─► spawn ─► output, end ─► exit code, figure        prepare is in the step, and not in the figure

No shell and no thread of Steadykit stands between: the worker waits for the process itself, and reads what it writes.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import select
import shlex
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.backends.entry import BackendError
from kit.backends.program.backend import HOST, UserProgram
from kit.backends.protocol import StepOutput
from kit.clock import now_ns
from kit.profile.program_source import CommandSource

PORT = "{port}"
# What a failed run has printed, of its end; of a figure's output all is needed.
OUTPUT_KEPT_B, FIGURE_OUTPUT_MAX_B = 1 << 16, 16 << 20
READ_B = 1 << 20
# A model of some gigabytes is loaded in less.
SERVER_LIMIT_S, SERVER_LOOK_S, SERVER_END_S = 600.0, 0.01, 5.0
# A part of a pipeline may end a little after the command; longer ones run beside the next command.
CHILDREN_LIMIT_S, CHILDREN_LOOK_S = 0.5, 0.002
# From <linux/prctl.h>; prctl(2).
PR_SET_CHILD_SUBREAPER = 36
SHOWN_MAX, NUMBER_MAX = 200, 40
# Of all commands of this process: they are no leftovers of another one.
_SERVERS = set[int]()


class CommandProgram(UserProgram):
    """A command that runs once a step: `kit.backends.protocol.Runnable`.

    Args:
        command: what runs, and how.
        variables: of the environment, as its user set them; null: not at all.

    Attributes:
        failed_runs: since the last `begin`, with another exit code than 0, which is accepted.
        figures: of each step since the last `begin`, where they count in place of the steps' times.

    Raises:
        BackendError: its server ends, or does not answer at its port; or the kernel has no pidfd_open(2).
    """

    def __init__(self, command: CommandSource, variables: Mapping[str, str | None]) -> None:
        self._command, self._words, self._prepare, self._server = command, command.words, command.prepare, 0
        self._made_by(lambda: {"step": self._step, "synchronize": lambda: None}, HOST)
        self.figures: list[float] = []
        self.failed_runs = 0
        # What a command leaves behind becomes a child of this process, which looks for it.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
        try:
            os.close(os.pidfd_open(os.getpid()))
        except OSError:  # of an old kernel, or of an old Docker's list of system calls
            raise BackendError("commands need Linux 5.3 or later, and Docker 20.10, to see when one ends") from None
        given = {**os.environ, **variables}
        self._variables = {name: value for name, value in given.items() if value is not None}
        self._printed, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._printed, False)
        self._poll = select.poll()
        self._poll.register(self._printed, select.POLLIN)
        if command.serve:
            self._serve(command.serve)

    def begin(self) -> None:
        """Forget the figures and the failed runs of earlier steps."""
        super().begin()
        self.figures, self.failed_runs = [], 0

    def check(self, output: StepOutput, step_ns: NDArray[np.int64]) -> None:
        """Check that the commands have left nothing running beside the next ones.

        Raises:
            BackendError: they have.
        """
        super().check(output, step_ns)
        deadline_s = time.monotonic() + CHILDREN_LIMIT_S
        while left := [child for child in self._children() if not os.waitpid(child, os.WNOHANG)[0]]:
            if time.monotonic() > deadline_s:
                names = ", ".join(_name_of(child) for child in left)
                raise BackendError(f"{self._shown} left running: {names}; let it wait for them, or end them")
            time.sleep(CHILDREN_LOOK_S)

    def close(self) -> None:
        """Stop the server."""
        if self._server:
            self._end_server()
        for descriptor in (self._printed, self._writer):
            os.close(descriptor)

    @property
    def _shown(self) -> str:
        words = shlex.join(self._words)
        return words if len(words) <= SHOWN_MAX else f"{words[:SHOWN_MAX]}…"

    def _step(self) -> int:
        command = self._command
        if self._prepare:
            self._run(self._prepare, [0])
        begin_ns = now_ns()
        code, output = self._run(self._words, command.exit_codes)
        if command.has_figure:
            taken_s = (now_ns() - begin_ns) / 1e9
            self.figures.append(self._figure(output) if command.figure else taken_s)
        self.failed_runs += code != 0
        return code

    def _figure(self, output: bytes) -> float:
        try:
            return figure_in(output, self._command.figure, self._shown)
        except BackendError:
            _show(output[-OUTPUT_KEPT_B:])
            raise

    def _run(self, words: Sequence[str], exit_codes: Sequence[int] | None) -> tuple[int, bytes]:
        """Run a command to its end; return its exit code, negative for a signal, and what it wrote.

        Raises:
            BackendError: it cannot be started, ends otherwise than it may, or writes too much for a figure.
        """
        process = _spawn(words, self._variables, self._writer)
        handle, output, most_b = os.pidfd_open(process), bytearray(), self._kept_b
        self._poll.register(handle, select.POLLIN)
        try:
            is_running = True
            while is_running:
                ready = [descriptor for descriptor, _ in self._poll.poll()]
                is_running = handle not in ready
                # What it wrote last may have come since the poll.
                while self._printed in ready or not is_running:
                    try:
                        output += os.read(self._printed, READ_B)
                    except BlockingIOError:
                        break
                    if len(output) > most_b:
                        del output[:-most_b]
                        if self._command.figure:
                            self._fail(
                                "printed more than 16 MiB, in which no figure is sought; let it print less", output
                            )
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            raise
        finally:
            self._poll.unregister(handle)
            os.close(handle)
            _, status = os.waitpid(process, 0)
        code = os.waitstatus_to_exitcode(status)
        if exit_codes is not None and code not in exit_codes:
            named = next((number.name for number in signal.Signals if number == -code), f"signal {-code}")
            end = f"was ended by {named}" if code < 0 else f"ended with exit code {code}"
            self._fail(f"{end}; --ignore-failure {code} accepts that", output)
        return code, bytes(output)

    @property
    def _kept_b(self) -> int:
        return FIGURE_OUTPUT_MAX_B if self._command.figure else OUTPUT_KEPT_B

    def _fail(self, why: str, output: bytes | bytearray) -> None:
        _show(output)
        raise BackendError(f"{self._shown} {why}")

    def _serve(self, words: Sequence[str]) -> None:
        """Start the server, and wait until its port answers."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        served, self._words, self._prepare = (
            [word.replace(PORT, str(port)) for word in each] for each in (words, self._words, self._prepare)
        )
        shown = shlex.join(served)[:SHOWN_MAX]
        self._server = _spawn(served, self._variables, 2)
        _SERVERS.add(self._server)
        deadline_s = time.monotonic() + SERVER_LIMIT_S
        while True:
            with suppress(OSError), socket.create_connection(("localhost", port), SERVER_LOOK_S):
                return
            if os.waitpid(self._server, os.WNOHANG)[0]:
                _SERVERS.discard(self._server)
                self._server = 0
                raise BackendError(f"the server {shown} ended before it answered at port {port}")
            if time.monotonic() > deadline_s:
                raise BackendError(f"the server {shown} does not answer at port {port} after {SERVER_LIMIT_S:.0f} s")
            time.sleep(SERVER_LOOK_S)

    def _end_server(self) -> None:
        with suppress(OSError):
            os.kill(self._server, signal.SIGTERM)
            deadline_s = time.monotonic() + SERVER_END_S
            while not os.waitpid(self._server, os.WNOHANG)[0]:
                if time.monotonic() > deadline_s:
                    os.kill(self._server, signal.SIGKILL)
                time.sleep(SERVER_LOOK_S)
        _SERVERS.discard(self._server)
        self._server = 0

    def _children(self) -> list[int]:
        """Return the processes that commands have left, as far as the kernel lists them."""
        with suppress(OSError):
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
            return [int(child) for child in children.split() if int(child) not in _SERVERS]
        return []


def figure_in(output: bytes, figure: str, shown: str) -> float:
    """Return the one figure in what a command printed.

    Args:
        output: of the command.
        figure: a pattern with one group, or ``json:a.b.c``: names, and places in lists; numbers in a list are averaged.
        shown: the command, in an error.

    Raises:
        BackendError: there is none, there are several, or it is no number above 0.
    """
    text = output.decode(errors="replace")
    if figure.startswith("json:"):
        numbers = _json_figures(text, figure.removeprefix("json:"), shown)
    else:
        matches = [*re.finditer(figure, text, re.MULTILINE)]
        if len(matches) > 1:
            raise BackendError(f"{shown} printed {len(matches)} figures that match {figure!r}; give a pattern of one")
        numbers = []
        for match in matches:
            number, rest = match[1] or "", text[match.end(1) :]
            cut = re.match(r"[eE][+-]?\d|[.,]?\d", rest)
            try:
                numbers.append(float(number.replace(",", "") if "." in number else number))
            except ValueError:
                if not cut and re.fullmatch(r"[\d,]+", number):
                    raise BackendError(
                        f"{shown} printed {number!r}, whose comma may separate thousands or decimals; print none"
                    ) from None
                cut = cut or match
            if cut:
                line = f"{number}{rest}".partition("\n")[0][:NUMBER_MAX]
                raise BackendError(
                    f"{shown} printed {line!r}, of which {figure!r} takes {number!r}; let it take the whole number"
                )
    if not numbers:
        raise BackendError(f"{shown} printed no figure that matches {figure!r}")
    if not all(math.isfinite(number) and number > 0 for number in numbers):
        raise BackendError(f"{shown} printed {min(numbers)} for {figure!r}; a figure is a number above 0")
    return math.fsum(numbers) / len(numbers)


def _json_figures(text: str, path: str, shown: str) -> list[float]:
    """Return the numbers at a path of the JSON that begins a line."""
    for begin in re.finditer(r"^\s*(?=[{\[])", text, re.MULTILINE):
        # A line of a log may begin with a bracket, too.
        with suppress(ValueError, KeyError, IndexError, TypeError, RecursionError):
            node: Any = json.JSONDecoder().raw_decode(text, begin.end())[0]
            for name in filter(None, path.split(".")):
                if isinstance(node, list) and not name.isdecimal() and len(node) == 1:
                    node = node[0]
                node = node[int(name)] if isinstance(node, list) else node[name]
            listed = node if isinstance(node, list) else [node]
            return [float(number) for number in listed if type(number) in (int, float)]
    raise BackendError(f"{shown} printed no JSON with {path!r}; check the path of --figure json:{path}")


def _spawn(words: Sequence[str], variables: dict[str, str], output: int) -> int:
    """Start a process that writes to `output` and standard error; it gets the signals that Python ignores back."""
    try:
        return os.posix_spawnp(
            words[0], [*words], variables,
            file_actions=[(os.POSIX_SPAWN_DUP2, output, 1)], setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )  # fmt: skip
    except OSError as error:
        raise BackendError(f"{words[0]} cannot be started: {error.strerror}") from None


def _show(output: bytes | bytearray) -> None:
    """Write what a failed run has printed to standard error, whose end a profile keeps."""
    with suppress(OSError, ValueError):
        print(output.decode(errors="replace"), file=sys.__stderr__, flush=True)


def _name_of(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/comm").read_text().strip()
    return str(process)
