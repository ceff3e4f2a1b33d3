"""Threads that have fewer CPUs than they are: a variable or a program bound them, and they wait for each other.

    Threads.placement     2 threads: CPU 0                  2 threads on 1 CPU
                          1 thread: CPU 0, 1 thread: CPU 1  a CPU each

A ratio of such a cell to one whose threads have a CPU each compares settings. Variants of a run differ on purpose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.profile.schema import Threads, ThreadsOnCpus

A_CPU_EACH = "a CPU each"


class Bound(NamedTuple):
    """So many threads that computed, and so many CPUs that they can use at the same time."""

    threads: int
    cpus: int

    def __str__(self) -> str:
        return f"{self.threads} threads on {self.cpus} {'CPU' if self.cpus == 1 else 'CPUs'}"


def bound_threads(threads: Threads | None) -> Bound | None:
    """Return the threads of a launch that have fewer CPUs than they could use; None: they have enough, or unknown.

    They could use a CPU each, as far as so many threads were requested and the worker was allowed so many CPUs: other
    threads that compute wait and hand over work.
    """
    if threads is None or not threads.placement:
        return None
    wanted = min(sum(alike.threads for alike in threads.placement), threads.requested, len(threads.cpus))
    cpus = _cpus_at_a_time(threads.placement, wanted)
    return Bound(wanted, cpus) if cpus < wanted else None


def words_of(threads: Threads) -> str:
    """Return whether the threads of a launch have a CPU each, as a fact that is compared; empty: not recorded."""
    bound = bound_threads(threads)
    return A_CPU_EACH if bound is None and threads.placement else str(bound or "")


def _cpus_at_a_time(placement: Sequence[ThreadsOnCpus], wanted: int) -> int:
    """Return on how many CPUs these threads can run at the same time, as far as so many are wanted.

    It is the size of a maximum matching of threads and CPUs, found by augmenting paths.
    """
    holders: dict[int, int] = {}  # of a CPU, the thread that has it
    held: dict[int, int] = {}  # of a thread, the CPU that it has
    sets: list[Sequence[int]] = []  # of each thread

    def takes(thread: int) -> bool:
        ways, waiting = dict[int, int](), [thread]  # of a CPU, the thread that would take it
        for asking in waiting:
            for cpu in sets[asking]:
                if cpu in ways:
                    continue
                ways[cpu] = asking
                if cpu in holders:
                    waiting.append(holders[cpu])
                    continue
                free: int | None = cpu
                while free is not None:
                    taker = ways[free]
                    holders[free], held[taker], free = taker, free, held.get(taker)
                return True
        return False

    for alike in placement:
        for _ in range(alike.threads):
            if len(held) == wanted:
                return wanted
            sets.append(alike.cpus)
            if not takes(len(sets) - 1):
                break  # nor would the next of the same CPUs
    return len(held)
