"""The processes that measure a cell together, its ranks: each behind its supervisor, asked as one, kept from others.

runner ── request ─► rank 0, rank 1, …        all are asked the same, and so run the same steps
       ◄─ answers ── rank 0, rank 1, …        all have answered, or the worker has failed

A worker of one process is a worker of one rank. Who reaches the sockets of several:

one host       a network namespace of the worker's own: nobody else
               no namespace to be had: loopback, as far as the framework can be kept to it
several hosts  the network that joins them
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Protocol

import msgspec
import psutil
from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG
from kit.clock import now_ns
from kit.errors import KitError
from kit.profile.cell import Cell, Variant
from kit.profile.fields import Reason, reason
from kit.profile.unfinished import RunPlan
from kit.report.reasons_in_words import sentence
from kit.runner.interrupt import LOOK_EVERY_S, StopFlag
from kit.runner.merged_answers import merged, merged_steps, unlike
from kit.runner.target import Command, command_of
from kit.runner.worker_spec import WorkerSpec, rank_count, variant_of
from kit.worker import private_network
from kit.worker.messages import RAISED, Answers, Done, Ended, Failed, Finish, Join, Measured, Prepare, Reach, Requests
from kit.worker.private_network import LOOPBACK, LOOPBACK_NAME, Refused
from kit.worker.sudden_end import Place, last_place, without_stacks
from kit.worker.supervisor import ENDED, STOP, TELL

# A signal acts in microseconds; a process that takes longer is stuck in a driver or a disk.
STOP_LIMIT_S = 10.0
# Where a rank ends, the others wait for it in a collective.
ENDED_GRACE_S = 5.0
# Where one raises, the others may be about to, on a busy machine later.
FAILED_GRACE_S = 30.0
# How a process ended that did not say why itself.
PROCESS_ENDED = frozenset({"signal", "exit_code", "closed_its_pipes", "supervisor_ended"})
READ_B = 1 << 20
# A signal ends a process in microseconds; on a busy machine its supervisor is late to say so.
TELL_S = 3.0
# Enough of standard error to see the framework's own message, not its whole stack.
STDERR_TAIL_LINES, STDERR_TAIL_B = 20, 8000
# faulthandler writes at most 100 calls of a stack, each with a path, and the names of the libraries that are loaded.
STACK_TAIL_B = 64 << 10
# A supervisor kills in microseconds; a busy container engine takes its time to remove what has ended.
ENDS_S = 60.0
# srun and a container's client get this long to say how they ended once their output has ended.
CLOSED_S = 5.0
# A process that becomes another program is looked at again for so long. With it 60 of 60 leftovers were ended beside
# two programs that started processes all the time; without it 3 of 20 lived on (test_ranks.py).
EXEC_NS = 200_000_000
# What a shell, srun and a container engine add to the number of a signal.
SIGNAL_BASE = 128
# Of the reasons that `who_reaches` returns, those in which no other program is a danger to what the ranks are sent.
PRIVATE, WITHOUT_NETWORK = "ranks_private", "ranks_without_network"
# In a network that only the ranks are in, these ports are free.
FIRST_PORT = 2222


class WorkerFailed(Exception):  # noqa: N818 - it is the worker that has failed
    """A request was not done. The worker goes on where only a program failed, in all ranks alike; else it has ended."""

    def __init__(self, why: Reason, stderr_tail: str = "", *, goes_on: bool = False) -> None:
        super().__init__(why)
        self.reason, self.stderr_tail, self.goes_on = why, stderr_tail, goes_on


class Asked(Protocol):
    """A worker, as the runner speaks to it. What it raises is WorkerFailed, or KeyboardInterrupt."""

    def ask(self, request: Requests, limit_s: float) -> Done | Measured:
        """Continue the worker, and return its answer, that of all ranks as one."""

    def stop(self) -> None:
        """Stop all its threads."""

    def end(self) -> None:
        """End it with all that it has started; nothing where it has ended."""


class Ranks:
    """See `Asked`.

    Raises:
        KitError: a process cannot be started.
    """

    def __init__(self, spec: WorkerSpec, stop: StopFlag) -> None:
        self._spec, self._stop = spec, stop
        self._processes: list[Process] = []
        self._counters: list[list[str]] = []  # of each rank
        self._folder = ""
        reached = reached_by(spec)
        self._is_private = reached is not None and reached.code == PRIVATE
        network = network_of_ranks() if self._is_private else []
        try:
            for rank in range(spec.ranks):
                command = command_of(spec, rank, network)
                # Ranks of one host meet by files of rank 0, where their framework can.
                self._folder = self._folder or command.folder
                self._processes.append(Process(command))
        except BaseException:
            self.end()
            raise
        finally:
            for descriptor in network:
                os.close(descriptor)

    def ask(self, request: Requests, limit_s: float) -> Done | Measured:
        """Ask all ranks."""
        answers = self._ask(self._for_each(request), limit_s)
        if isinstance(request, Join):
            self._counters = [answer.counters for answer in answers if isinstance(answer, Done)]
        if isinstance(request, Finish):
            for process in self._processes:
                process.end()
        if len(answers) == 1:
            return answers[0]
        done = [answer for answer in answers if isinstance(answer, Done)]
        if not done:
            measured = [answer for answer in answers if isinstance(answer, Measured)]
            shares_cpus = len(self._spec.prepare.cpus) < self._spec.ranks_per_host
            return merged_steps(measured, self._counters, self._spec.ranks_per_host, shares_cpus=shares_cpus)
        if (difference := unlike(done)) is not None:
            rank, why = difference
            raise self._failure({rank: Failed(reason=why)})
        return merged(done, self._spec.ranks_per_host)

    def stop(self) -> None:
        """Stop all ranks, now that none waits for another."""
        for process in self._processes:
            process.stop()
        self._gather(STOP_LIMIT_S, reason("does_not_stop", limit_s=STOP_LIMIT_S))

    def end(self) -> None:
        """End all ranks at once."""
        for process in self._processes:
            process.end()
        for process in self._processes:
            process.wait()
        self._processes = []

    def _for_each(self, request: Requests) -> list[Requests]:
        """Return the request of each rank: most are the same for all."""
        spec = self._spec
        if isinstance(request, Prepare):
            here = spec.host_of(0)
            return [
                replace(
                    request,
                    part=rank % spec.ranks_per_host,
                    cpus=request.cpus if spec.host_of(rank) == here else [],
                    hides_devices=spec.host_of(rank) != here,
                )
                for rank in range(spec.ranks)
            ]
        if isinstance(request, Join) and spec.ranks > 1:
            addresses, folder = self._addresses(), "" if spec.hosts else self._folder
            return [replace(request, rank=rank, addresses=addresses, folder=folder) for rank in range(spec.ranks)]
        return [request] * spec.ranks

    def _addresses(self) -> list[str]:
        """Return an address of each rank that the others reach: by the way that srun's own connection takes."""
        if self._is_private:
            return [f"{LOOPBACK}:{FIRST_PORT + rank}" for rank in range(self._spec.ranks)]
        spec, local = self._spec, self._spec.ranks_per_host
        answers = self._ask([Reach()] * (spec.ranks - local), STOP_LIMIT_S, first=local)
        remote = [answer.address for answer in answers if isinstance(answer, Done)]
        towards = remote[-1].rpartition(":")[0] if remote else LOOPBACK
        answers = self._ask([Reach(towards=towards)] * local, STOP_LIMIT_S)
        return [*(answer.address for answer in answers if isinstance(answer, Done)), *remote]

    def _ask(self, requests: Sequence[Requests], limit_s: float, first: int = 0) -> list[Done | Measured]:
        """Ask as many ranks as there are requests, from rank `first` on; return their answers."""
        for process, request in zip(self._processes[first:], requests, strict=False):
            process.ask(request)
        ranks = range(first, first + len(requests))
        answers = self._gather(limit_s, reason("phase_timeout", limit_s=limit_s), ranks)
        return [answer for answer in answers if isinstance(answer, Done | Measured)]

    def _gather(self, limit_s: float, why_late: Reason, ranks: Iterable[int] | None = None) -> list[Answers]:
        """Return an answer of each rank, or raise what has failed."""
        waiting = set(range(len(self._processes)) if ranks is None else ranks)
        answers: dict[int, Answers] = {}
        deadline_ns = now_ns() + int(limit_s * 1e9)
        while waiting and (left_s := (deadline_ns - now_ns()) / 1e9) > 0:
            try:
                self._stop.check()
            except KeyboardInterrupt:
                self.end()
                raise
            processes = {self._processes[rank]: rank for rank in waiting}
            for process in select.select(processes, [], [], min(left_s, LOOK_EVERY_S))[0]:
                rank = processes[process]
                if (answer := process.answer()) is None:
                    continue
                answers[rank] = answer
                waiting.remove(rank)
                if isinstance(answer, Failed | Ended):
                    grace_s = ENDED_GRACE_S if isinstance(answer, Ended) else FAILED_GRACE_S
                    deadline_ns = min(deadline_ns, now_ns() + int(grace_s * 1e9))
        failed = {rank: answer for rank, answer in answers.items() if isinstance(answer, Failed | Ended)}
        if failed or waiting:
            raise self._failure(failed, why_late, waiting)
        return [answers[rank] for rank in sorted(answers)]

    def _failure(
        self, failed: Mapping[int, Failed | Ended], why_late: Reason | None = None, late: Iterable[int] = ()
    ) -> WorkerFailed:
        """Return the first cause, as an exception: an end before what ranks raised, as that follows from it.

        Where not the same program failed in all ranks, the worker is ended: a rank may wait for another for good.
        """
        ended = {rank: answer for rank, answer in failed.items() if isinstance(answer, Ended)}
        rank, answer = next(iter((ended or failed).items()), (min(late, default=0), None))
        why = answer.reason if answer is not None else why_late
        assert why is not None
        if answer is None:
            # A supervisor always answers: where it does not, its host is gone, and srun has not said so yet.
            of, waited_for = self._spec.host_of, sorted(late)
            others = (other for other in waited_for if of(other) != of(0))
            if (gone := next((other for other in others if not self._processes[other].stops()), None)) is not None:
                rank, why = gone, reason("does_not_stop", limit_s=TELL_S)
                for other in waited_for:
                    if of(other) == of(gone):
                        self._processes[other].kill()  # srun would wait for that host
            elif (place := self._processes[rank].where_it_is()) is not None:
                why = reason(why.code, **why.values | {"file": place.file, "line": place.line})
        tail = self._processes[rank].stderr_tail()
        goes_on = len(failed) == self._spec.ranks and not ended and getattr(answer, "program", None) is not None
        if not goes_on:
            if self._spec.ranks > 1:
                host = self._spec.host_of(rank)
                where = {"rank": rank, "host": host} if host != self._spec.host_of(0) else {"rank": rank}
                why = reason(why.code, **why.values | where)
            self.end()
        return WorkerFailed(why, tail, goes_on=goes_on)


class Process:
    """One worker. It runs from a request until it is stopped, and no longer than this object's process.

    Raises:
        KitError: the command cannot be started.
    """

    def __init__(self, command: Command) -> None:
        # Its processes began later. psutil knows that to a tick of the kernel, by a clock that may be set.
        self._folder, self._began_s = command.folder, time.time() - 1
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as this object
        try:
            self._popen = subprocess.Popen(
                command.words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=command.environment,
                pass_fds=command.network,
                bufsize=0,
                start_new_session=True,  # an interrupt from the terminal is the runner's alone
            )
        except OSError as error:
            raise KitError(
                f"{command.words[0]} cannot be started: {error.strerror}; install it, or mend its path"
            ) from None
        self._unread = b""
        self._decoder: msgspec.json.Decoder[Answers] = msgspec.json.Decoder(Answers)

    def fileno(self) -> int:
        """Return what is readable when an answer may have come."""
        assert self._popen.stdout is not None
        return self._popen.stdout.fileno()

    def ask(self, request: Requests) -> None:
        """Send a request, which continues the worker."""
        self._send(msgspec.json.encode(request) + b"\n")

    def stop(self) -> None:
        """Ask the supervisor to stop the worker; it answers `Stopped`."""
        self._send(STOP)

    def answer(self) -> Answers | None:
        """Return the next answer if all of it has come; `fileno` is readable."""
        if b"\n" not in self._unread:
            data = os.read(self.fileno(), READ_B)
            if not data:
                return Ended(reason=self._why_closed())
            self._unread += data
        line, newline, rest = self._unread.partition(b"\n")
        if not newline:
            return None
        self._unread = rest
        # A worker that is killed while it writes leaves half an answer in front of its supervisor's last line.
        _, marker, last = line.rpartition(ENDED)
        try:
            answer = self._decoder.decode(marker + last)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Ended(reason=reason("protocol", message=str(error)))
        if not isinstance(answer, Ended):
            return answer
        values = dict(answer.reason.values)
        if answer.reason.code == "exit_code":
            values["message"] = self._last_line()
        if (place := last_place(self._written(STACK_TAIL_B))) is not None:
            values |= {"file": place.file, "line": place.line}
        return Ended(reason=reason(answer.reason.code, **values))

    def stops(self) -> bool:
        """Stop the worker, as no program can refuse to, and return whether its supervisor says anything."""
        self.stop()
        return bool(select.select([self], [], [], TELL_S)[0])

    def where_it_is(self) -> Place | None:
        """End the worker, and return where it was, if a user's program says so."""
        self._send(TELL)
        select.select([self], [], [], TELL_S)
        return last_place(self._written(STACK_TAIL_B))

    def stderr_tail(self) -> str:
        """Return the last lines that it printed and those of what it raised; no stack that says how it ended."""
        parts = without_stacks(self._written(STACK_TAIL_B)).rpartition(f"{RAISED}\n")
        lines = (part[-STDERR_TAIL_B:].splitlines(keepends=True)[-STDERR_TAIL_LINES:] for part in parts)
        return "".join("".join(part) for part in lines).strip()

    def _written(self, length_b: int) -> str:
        """Return the end of what it wrote to standard error."""
        size_b = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), length_b, max(0, size_b - length_b)).decode(errors="replace")

    def end(self) -> None:
        """Close its input: the supervisor kills the worker, wherever it is. Waits for nothing."""
        assert self._popen.stdin is not None
        with suppress(OSError):
            self._popen.stdin.close()

    def kill(self) -> None:
        """Kill the supervisor on this machine, or what stands in front of one elsewhere."""
        with suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until it has gone, after `end`, and remove what is left."""
        # Nobody reads any more: a supervisor must not wait for room to say how the worker ended.
        assert self._popen.stdout is not None
        self._popen.stdout.close()
        try:
            self._popen.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self.kill()
            self._popen.wait()
        self._errors.close()
        if not self._folder:
            return
        self._kill_what_is_left()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _kill_what_is_left(self) -> None:
        """Kill what the worker has started in sessions of its own, and all of it where the supervisor was killed.

        It has looked often enough when it finds nothing to kill, and nothing that is becoming another program: such a
        process shows no environment.
        """
        end_ns = now_ns() + EXEC_NS
        is_left = True
        while is_left and now_ns() < end_ns:
            is_left = False
            # psutil would take a process for an earlier one that had its number, and not kill it.
            psutil.process_iter.cache_clear()
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    environment = process.environ()
                    is_left |= not environment and process.create_time() > self._began_s
                    if environment.get("TMPDIR") == self._folder:
                        is_left = True
                        process.kill()

    def _send(self, line: bytes) -> None:
        assert self._popen.stdin is not None
        with suppress(OSError):  # it has ended, as its answer will show
            self._popen.stdin.write(line)

    def _why_closed(self) -> Reason:
        """Return how the supervisor, or what stood in front of it, ended without a word."""
        try:
            code = self._popen.wait(CLOSED_S)
        except subprocess.TimeoutExpired:
            return reason("closed_its_pipes")
        number = -code if code < 0 else code - SIGNAL_BASE
        if number in {*signal.Signals}:
            return reason("supervisor_ended", signal=signal.Signals(number).name)
        return reason("exit_code", exit_code=code, message=self._last_line())

    def _last_line(self) -> str:
        return (self.stderr_tail().splitlines() or [""])[-1]


def reached_by(spec: WorkerSpec) -> Reason | None:
    """Return who reaches the sockets of a worker's ranks; None: it is one process."""
    return who_reaches(spec.prepare.backend, len(spec.hosts)) if spec.ranks > 1 else None


def who_reaches(backend: str, hosts: int) -> Reason:
    """Return who reaches the ranks of a worker.

    Args:
        backend: of the worker.
        hosts: over which its ranks are divided.
    """
    is_kept = CATALOG[backend].keeps_to_interface
    if hosts > 1:
        return reason("ranks_on_hosts_network" if is_kept else "ranks_exposed_on_hosts")
    refused = _why_no_network()
    if refused is None:
        return reason(PRIVATE)
    # No other interface is up, as in a container without a network.
    if all(name == LOOPBACK_NAME.decode() or not stats.isup for name, stats in psutil.net_if_stats().items()):
        return reason(WITHOUT_NETWORK)
    return reason("ranks_on_loopback" if is_kept else "ranks_exposed", call=refused.call, error=refused.error)


def has_ranks(cell: Cell, variant: Variant, hosts: int) -> bool:
    """Return whether several processes measure a cell, if it may use so many hosts."""
    return rank_count(cell, variant, hosts) > 1


def lines_before(plan: RunPlan) -> list[str]:
    """Return a line for each way in which others reach the ranks of a run, to be read before they start."""
    hosts = plan.suite.hosts
    titles: dict[str, dict[str, None]] = {}
    for cell in plan.cells:
        if has_ranks(cell, variant_of(plan, cell), hosts):
            why = who_reaches(cell.backend, min(cell.devices, hosts))
            if why.code not in (PRIVATE, WITHOUT_NETWORK):
                titles.setdefault(sentence(why), {})[CATALOG[cell.backend].title] = None
    return [f"{', '.join(named)} on several devices: {words}" for words, named in titles.items()]


def network_of_ranks() -> list[int]:
    """Return the descriptors of a new network that only who has them enters.

    Raises:
        KitError: the kernel gives none any more. Ranks do not start then where the user was told that nobody reaches
            them.
    """
    try:
        return _new_network()
    except Refused as refused:
        raise KitError(
            f"the kernel gives ranks no network of their own any more ({refused.call}: {refused.error}); "
            "raise user.max_net_namespaces, or wait until other programs have ended"
        ) from None


def _new_network() -> list[int]:
    """Start what makes a namespace: this process has threads, and stays where it is."""
    try:
        here, there = socket.socketpair()
        with here, there:
            command = [sys.executable, "-I", "-S", private_network.__file__, str(there.fileno())]
            started = subprocess.Popen(
                command, pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            there.close()
            try:
                return private_network.receive(here)
            finally:
                started.wait()
    except OSError as error:  # of this process, such as too many open files
        raise Refused("exec", error) from None


@cache
def _why_no_network() -> Refused | None:
    """Return why ranks get no network of their own here; None where they do. Tried once in a process."""
    try:
        descriptors = _new_network()
    except Refused as refused:
        return refused
    for descriptor in descriptors:
        os.close(descriptor)
    return None
