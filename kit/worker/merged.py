"""What the ranks of a member have measured, as one answer: the slowest rank's times, and the sum of what all use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from kit.profile.launch import Blocks, LaunchPart, Parity, Threads
from kit.profile.reason import Reason, reason
from kit.worker.messages import Done

# Of the process, and of its own CPUs; all others are of the machine, of which one rank's count is enough.
OF_A_RANK = ("process.", "machine.busy_ns", "machine.steal_ns")


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


def merged(answers: Sequence[Done], in_host: int) -> Done:
    """Return the answers of all ranks to one command as one; the first is rank 0's.

    `in_host`: how many are on rank 0's host, the one whose boards are sampled.
    """
    first = answers[0]
    # Collectives keep ranks within a step of each other. Of a block they all have the same steps.
    slowest = max(answers, key=lambda done: sum(done.part.blocks.duration_ns))
    parts = [done.part for done in answers]
    part = replace(
        first.part,
        blocks=_blocks(slowest.part.blocks, [part.blocks for part in parts]),
        threads=_threads([part.threads for part in parts if part.threads is not None]),
        peak_memory_b=_sum(part.peak_memory_b for part in parts),
        peak_device_memory_b=_sum(part.peak_device_memory_b for part in parts),
        device_ids=list(dict.fromkeys(device for part in parts[:in_host] for device in part.device_ids)),
        ranks=[rank for part in parts for rank in part.ranks],
        parity=_parity(parts),
        failure=next((part.failure for part in parts if part.failure is not None), None),
    )
    return replace(first, part=part, steps=slowest.steps, resident_b=_sum(done.resident_b for done in answers))


def _blocks(slowest: Blocks, of_ranks: Sequence[Blocks]) -> Blocks:
    counters = dict(slowest.counters)
    for name in (name for name in counters if name.startswith(OF_A_RANK)):
        counters[name] = [_sum(values) for values in zip(*(blocks.counters[name] for blocks in of_ranks), strict=True)]
    return replace(slowest, counters=counters)


def _threads(of_ranks: Sequence[Threads]) -> Threads | None:
    if not of_ranks:
        return None
    return replace(
        of_ranks[0],
        requested=sum(threads.requested for threads in of_ranks),
        reported=_sum(threads.reported for threads in of_ranks),
        cpus=sorted({cpu for threads in of_ranks for cpu in threads.cpus}),
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
