"""The processes that measure a cell together, its ranks, asked as one.

runner ── request ─► rank 0, rank 1, …        all are asked the same, and so run the same steps
       ◄─ answers ── rank 0, rank 1, …        all have answered, or the worker has failed

A worker of one process is a worker of one rank.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from kit.clock import now_ns
from kit.profile.fields import Reason, reason
from kit.profile.schema import LaunchPart, Parity, Threads
from kit.runner.interrupt import StopFlag
from kit.runner.process import Process
from kit.runner.rank_network import PRIVATE, network_of_ranks
from kit.runner.target import command_of
from kit.runner.worker_spec import WorkerSpec
from kit.worker.messages import Answers, Done, Ended, Failed, Finish, Join, Measured, Prepare, Reach, Requests
from kit.worker.private_network import LOOPBACK

# A signal acts in microseconds; a process that takes longer is stuck in a driver or a disk.
STOP_LIMIT_S = 10.0
# How soon an interrupt is heeded while a worker works.
LOOK_EVERY_S = 0.5
# Where a rank ends, the others wait for it in a collective.
ENDED_GRACE_S = 5.0
# In a network that only the ranks are in, these ports are free.
FIRST_PORT = 2222
# Where one raises, the others may be about to, on a busy machine later.
FAILED_GRACE_S = 30.0
# Counters of the process, and of its own CPUs; all others are the machine's, of which rank 0's count is enough.
PROCESS_COUNTERS = "process."
CPU_COUNTERS = ("machine.busy_ns", "machine.steal_ns")
# How a process ended that did not say why itself.
PROCESS_ENDED = frozenset({"signal", "exit_code", "closed_its_pipes", "supervisor_ended"})


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
        self._is_private = spec.who_reaches is not None and spec.who_reaches.code == PRIVATE
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
            return self._merged_steps([answer for answer in answers if isinstance(answer, Measured)])
        if (difference := _unlike(done)) is not None:
            rank, why = difference
            raise self._failure({rank: Failed(reason=why)})
        return _merged(done, self._spec.ranks_per_host)

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
        tail = self._processes[rank].stderr_tail()
        goes_on = len(failed) == self._spec.ranks and not ended and getattr(answer, "program", None) is not None
        if not goes_on:
            if self._spec.ranks > 1:
                host = self._spec.host_of(rank)
                where = {"rank": rank, "host": host} if host != self._spec.host_of(0) else {"rank": rank}
                why = reason(why.code, **why.values | where)
            self.end()
        return WorkerFailed(why, tail, goes_on=goes_on)

    def _merged_steps(self, answers: Sequence[Measured]) -> Measured:
        """Return the slowest rank's steps, with the sum of what the ranks' processes and CPUs count.

        When they began, and what the machine counts, is rank 0's: another host's clock has another zero.
        """
        first = answers[0]
        slowest = max(answers, key=lambda answer: int(np.frombuffer(answer.waits, np.int64).sum()))
        counted = [
            dict(zip(names, answer.counters, strict=True))
            for names, answer in zip(self._counters, answers, strict=True)
        ]
        # Ranks of a host either have CPUs of their own, or all have the same.
        shares_cpus = len(self._spec.prepare.cpus) < self._spec.ranks_per_host
        counters = []
        for name in self._counters[0]:
            if name.startswith(PROCESS_COUNTERS):
                ranks = counted
            elif name in CPU_COUNTERS:
                ranks = counted[:: self._spec.ranks_per_host] if shares_cpus else counted
            else:
                ranks = counted[:1]
            counters.append(known_sum(values.get(name) for values in ranks))
        return replace(
            slowest,
            begin_ns=first.begin_ns,
            counters=counters,
            resident_b=known_sum(answer.resident_b for answer in answers),
        )


def _unlike(answers: Sequence[Done]) -> tuple[int, Reason] | None:
    """Return the first rank whose software is not rank 0's, and in what it differs; None where all agree."""
    for rank, done in enumerate(answers):
        for what, here, there in (
            ("the kit", answers[0].kit_version, done.kit_version),
            ("Python", answers[0].part.python, done.part.python),
            ("the framework", answers[0].part.backend_version, done.part.backend_version),
        ):
            if here != there:
                return rank, reason("ranks_differ", what=what, here=here or "", there=there or "")
    return None


def _merged(answers: Sequence[Done], ranks_per_host: int) -> Done:
    """Return the answers of all ranks to one request as one; devices are sampled on rank 0's host."""
    parts = [done.part for done in answers]
    part = replace(
        parts[0],
        threads=_threads(parts, ranks_per_host),
        peak_memory_b=known_sum(part.peak_memory_b for part in parts),
        peak_device_memory_b=known_sum(part.peak_device_memory_b for part in parts),
        device_ids=list(dict.fromkeys(device for part in parts[:ranks_per_host] for device in part.device_ids)),
        ranks=[rank for part in parts for rank in part.ranks],
        parity=_parity(parts),
        failure=next((part.failure for part in parts if part.failure is not None), None),
    )
    slowest = max(answers, key=lambda done: done.span_ns or 0)
    return replace(answers[0], part=part, span_ns=slowest.span_ns)


def _threads(parts: Sequence[LaunchPart], ranks_per_host: int) -> Threads | None:
    known = [part.threads for part in parts if part.threads is not None]
    if not known:
        return None
    hosts = [known[first : first + ranks_per_host] for first in range(0, len(known), ranks_per_host)]
    return replace(
        known[0],
        requested=sum(threads.requested for threads in known),
        reported=known_sum(threads.reported for threads in known),
        cpus=[cpu for ranks in hosts for cpu in sorted({cpu for threads in ranks for cpu in threads.cpus})],
        used=known_sum(threads.used for threads in known),
        used_reason=next((threads.used_reason for threads in known if threads.used_reason), None),
    )


def _parity(parts: Sequence[LaunchPart]) -> Parity | None:
    """Return the losses of the whole batch: the mean of those of its equal parts."""
    proofs = [part.parity for part in parts if part.parity is not None]
    if len(proofs) < len(parts):
        return None
    return replace(proofs[0], losses=np.mean([proof.losses for proof in proofs], axis=0, dtype=np.float64).tolist())


def known_sum(values: Iterable[int | None]) -> int | None:
    """Return the sum; null where a part of it is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
