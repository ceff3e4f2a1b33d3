"""Several answers of a worker as one: those of all its ranks to one request, and those to several requests.

steps                      of the slowest rank, as the others wait for it
what a process counts      the sum of all ranks
what a machine counts      rank 0's
losses                     the mean: each rank has an equal part of the batch
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from msgspec.structs import replace

from kit.profile.fields import Reason, reason
from kit.profile.schema import ComputedNumbers, LaunchPart, Parity, Threads, ThreadsOnCpus
from kit.profile.store import Steps
from kit.worker.messages import Done, Measured

# Counters of the process, and of its own CPUs; all others are the machine's, of which rank 0's count is enough.
PROCESS_COUNTERS = "process."
CPU_COUNTERS = ("machine.busy_ns", "machine.steal_ns")


def merged_steps(
    answers: Sequence[Measured], counters: Sequence[Sequence[str]], ranks_per_host: int, *, shares_cpus: bool
) -> Measured:
    """Return the slowest rank's steps, with the sum of what the ranks' processes and CPUs count.

    When they began, and what the machine counts, is rank 0's: another host's clock has another zero.

    Args:
        answers: of all ranks.
        counters: the names of each rank's counters.
        ranks_per_host: that share a machine.
        shares_cpus: the ranks of a host all have the same CPUs; else each has its own.
    """
    first = answers[0]
    slowest = max(answers, key=lambda answer: int(np.frombuffer(answer.waits, np.int64).sum()))
    counted = [dict(zip(names, answer.counters, strict=True)) for names, answer in zip(counters, answers, strict=True)]
    summed = []
    for name in counters[0]:
        if name.startswith(PROCESS_COUNTERS):
            ranks = counted
        elif name in CPU_COUNTERS:
            ranks = counted[::ranks_per_host] if shares_cpus else counted
        else:
            ranks = counted[:1]
        summed.append(known_sum(values.get(name) for values in ranks))
    return replace(
        slowest,
        begin_ns=first.begin_ns,
        counters=summed,
        restored_ns=max(answer.restored_ns for answer in answers),
        resident_b=known_sum(answer.resident_b for answer in answers),
    )


def unlike(answers: Sequence[Done]) -> tuple[int, Reason] | None:
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


def merged(answers: Sequence[Done], ranks_per_host: int) -> Done:
    """Return the answers of all ranks to one request as one; devices are sampled on rank 0's host."""
    parts = [done.part for done in answers]
    part = replace(
        parts[0],
        threads=_threads(parts, ranks_per_host),
        peak_memory_b=known_sum(part.peak_memory_b for part in parts),
        peak_device_memory_b=known_sum(part.peak_device_memory_b for part in parts),
        device_ids=list(dict.fromkeys(device for part in parts[:ranks_per_host] for device in part.device_ids)),
        ranks=[rank for part in parts for rank in part.ranks],
        numbers=_numbers(parts),
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
        # Another host has other CPUs, of the same numbers.
        placement=_joined([threads.placement for threads in known[:ranks_per_host]]),
    )


def _numbers(parts: Sequence[LaunchPart]) -> ComputedNumbers | None:
    """Return rank 0's: all ranks have the same weights, and a loss is of a rank's own part of the batch."""
    known = [part.numbers for part in parts if part.numbers is not None]
    was_not_finite = any(numbers.was_not_finite for numbers in known)
    return replace(known[0], was_not_finite=was_not_finite) if known else None


def _joined(placements: Sequence[list[ThreadsOnCpus] | None]) -> list[ThreadsOnCpus] | None:
    """Return where the threads of all ranks may run; null where that is not known of one rank."""
    known = [placement for placement in placements if placement is not None]
    return list(chain.from_iterable(known)) if len(known) == len(placements) else None


def _parity(parts: Sequence[LaunchPart]) -> Parity | None:
    """Return the losses of the whole batch: the mean of those of its equal parts."""
    proofs = [part.parity for part in parts if part.parity is not None]
    if len(proofs) < len(parts):
        return None
    return replace(proofs[0], losses=np.mean([proof.losses for proof in proofs], axis=0, dtype=np.float64).tolist())


def joined(parts: Sequence[Measured]) -> Measured:
    """Return what was measured in several requests, one after the other, as if it had been one."""
    first, last = parts[0], parts[-1]
    return replace(
        first,
        span_ns=last.begin_ns + last.span_ns - first.begin_ns,
        waits=b"".join(part.waits for part in parts),
        ran=[sum(waits) for waits in zip(*(part.ran for part in parts), strict=True)],
        counters=[known_sum(values) for values in zip(*(part.counters for part in parts), strict=True)],
        injected_ns=sum(part.injected_ns for part in parts),
        failed_runs=sum(part.failed_runs for part in parts),
    )


def one_block(turns: Sequence[Measured]) -> tuple[Measured, list[Steps]]:
    """Return the turns of a block as one, and the waits of each of its segments: spans are summed, pauses left out."""
    waits_ns = [np.concatenate(waits) for waits in zip(*(turn.waits_ns() for turn in turns), strict=True)]
    figures = [figure for turn in turns for figure in turn.figures[: turn.ran[0]]]
    figures += [figure for turn in turns for figure in turn.figures[turn.ran[0] :]]
    return replace(joined(turns), span_ns=sum(turn.span_ns for turn in turns), figures=figures), waits_ns


def known_sum(values: Iterable[int | None]) -> int | None:
    """Return the sum; null where a part of it is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
