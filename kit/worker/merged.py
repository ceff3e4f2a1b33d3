"""What the ranks of a member have measured, as one answer: the slowest rank's times, and the sum of what all use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from kit.profile.launch import Blocks, LaunchPart, Parity, Threads
from kit.profile.reason import Reason, reason
from kit.worker.messages import Done

# Of the process, and of its own CPUs; all others are of the machine, of which rank 0's count is enough.
OF_A_PROCESS = "process."
OF_CHILDREN = "process.children_ns"
OF_ITS_CPUS = ("machine.busy_ns", "machine.steal_ns")


def unlike(answers: Sequence[Done]) -> tuple[int, Reason] | None:
    """Return the first rank whose Python or framework is not rank 0's, and in what it differs; None where all agree."""
    first = answers[0].part
    for rank, done in enumerate(answers):
        for what, here, there in (
            ("Python", first.python, done.part.python),
            ("the framework", first.backend_version, done.part.backend_version),
        ):
            if here != there:
                return rank, reason("ranks_differ", what=what, here=here or "", there=there or "")
    return None


def merged(answers: Sequence[Done], ranks_per_host: int, *, share_cpus: bool = False) -> Done:
    """Return the answers of all ranks to one command as one.

    Args:
        answers: rank 0's first.
        ranks_per_host: how many ranks each host has; boards are sampled on rank 0's.
        share_cpus: the ranks of a host have the same CPUs, and not each its own.
    """
    first = answers[0]
    # Collectives keep ranks within a step of each other. Of a block they all have the same steps.
    slowest = max(answers, key=lambda done: sum(done.part.blocks.duration_ns))
    parts = [done.part for done in answers]
    # By host: each has CPUs of its own, whatever their numbers.
    hosts = [parts[place : place + ranks_per_host] for place in range(0, len(parts), ranks_per_host)]
    of_cpus = [part.blocks for of_host in hosts for part in (of_host[:1] if share_cpus else of_host)]
    part = replace(
        first.part,
        blocks=_blocks(slowest.part.blocks, [part.blocks for part in parts], of_cpus),
        threads=_threads(hosts),
        peak_memory_b=_sum(part.peak_memory_b for part in parts),
        peak_device_memory_b=_sum(part.peak_device_memory_b for part in parts),
        device_ids=list(dict.fromkeys(device for part in parts[:ranks_per_host] for device in part.device_ids)),
        ranks=[rank for part in parts for rank in part.ranks],
        parity=_parity(parts),
        failure=next((part.failure for part in parts if part.failure is not None), None),
    )
    return replace(first, part=part, steps=slowest.steps, resident_b=_sum(done.resident_b for done in answers))


def _blocks(slowest: Blocks, of_ranks: Sequence[Blocks], of_cpus: Sequence[Blocks]) -> Blocks:
    """Return the slowest rank's blocks, with what is summed; `of_cpus`: of ranks that count different CPUs.

    When they began, and what the machine counts, is rank 0's: another host's clock has another zero.
    """
    first = of_ranks[0]
    counters = dict(first.counters)
    if OF_CHILDREN in counters:
        # The further ranks are children of the first.
        counters[OF_CHILDREN] = [None] * len(first.steps)
    for name in counters.keys() - {OF_CHILDREN}:
        summed = of_ranks if name.startswith(OF_A_PROCESS) else of_cpus if name in OF_ITS_CPUS else [first]
        counters[name] = [_sum(values) for values in zip(*(blocks.counters[name] for blocks in summed), strict=True)]
    return replace(slowest, counters=counters, begin_ns=first.begin_ns)


def _threads(hosts: Sequence[Sequence[LaunchPart]]) -> Threads | None:
    of_hosts = [[part.threads for part in parts if part.threads is not None] for parts in hosts]
    of_ranks = [threads for of_host in of_hosts for threads in of_host]
    if not of_ranks:
        return None
    return replace(
        of_ranks[0],
        requested=sum(threads.requested for threads in of_ranks),
        reported=_sum(threads.reported for threads in of_ranks),
        cpus=[cpu for of_host in of_hosts for cpu in sorted({cpu for threads in of_host for cpu in threads.cpus})],
        used=_sum(threads.used for threads in of_ranks),
        used_reason=next((threads.used_reason for threads in of_ranks if threads.used_reason), None),
    )


def _parity(parts: Sequence[LaunchPart]) -> Parity | None:
    """Return the losses of the whole batch: the mean of those of its equal parts."""
    proofs = [part.parity for part in parts if part.parity is not None]
    if len(proofs) < len(parts):
        return None
    return replace(proofs[0], losses=np.mean([proof.losses for proof in proofs], axis=0, dtype=np.float64).tolist())


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum; null where a part of it is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
