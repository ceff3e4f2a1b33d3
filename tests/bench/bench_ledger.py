"""Where the seconds of a run went: of each profile, what its phases took together, and what lies between them.

    python tests/bench/bench_ledger.py RUN.json …

A phase of a process that holds several cells counts once. Gaps are what no phase has: supervisors, switches between
workers, restored weights, and files.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from measuring import printed

from kit.profile.schema import Launch, Profile
from kit.profile.store import read_profile

OF_PROCESS = ("start", "import", "finish")
PARTS = {
    "timed steps": (),
    "lead-ins": (),
    "warm-up": ("warmup",),
    "start and import": ("start", "import"),
    "build, trace, compile, first step": ("build", "trace", "compile", "first_step"),
    "data": ("data",),
    "parity and evaluation": ("parity", "evaluate"),
    "finish": ("finish",),
}


def ledger(profile: Profile) -> tuple[dict[str, float], float]:
    """Return seconds by part, and those from the first phase of each round to its last, all rounds together."""
    launches = [launch for result in profile.cells for launch in result.launches]
    seconds, seen = Counter[str](), set[tuple[int, str, str]]()
    for launch in launches:
        timed_ns, span_ns = sum(launch.blocks.duration_ns), sum(launch.blocks.span_ns)
        seconds["timed steps"] += timed_ns / 1e9
        seconds["lead-ins"] += (span_ns - timed_ns) / 1e9
        for phase in launch.phases:
            part = next((part for part, names in PARTS.items() if phase.name in names), None)
            once = (launch.round, launch.process, phase.name)
            if part is None or (phase.name in OF_PROCESS and once in seen):
                continue
            seen.add(once)
            seconds[part] += phase.duration_ns / 1e9
    return dict(seconds), sum(_round_s(launches, number) for number in {launch.round for launch in launches})


def _round_s(launches: list[Launch], number: int) -> float:
    phases = [phase for launch in launches if launch.round == number for phase in launch.phases]
    ends_ns = [phase.begin_ns + phase.duration_ns for phase in phases]
    return (max(ends_ns) - min(phase.begin_ns for phase in phases)) / 1e9


def main() -> None:
    """Print a column a profile."""
    if len(sys.argv) == 1:
        sys.exit("give profiles")
    profiles = [read_profile(Path(name)) for name in sys.argv[1:]]
    known = [ledger(profile) for profile in profiles]
    rows = [("seconds", *(Path(name).stem for name in sys.argv[1:]))]
    rows += [(part, *(f"{seconds.get(part, 0.0):.1f}" for seconds, _ in known)) for part in PARTS]
    rows.append(("gaps", *(f"{whole_s - sum(seconds.values()):.1f}" for seconds, whole_s in known)))
    rows.append(("together", *(f"{whole_s:.1f}" for _, whole_s in known)))
    printed(rows)


if __name__ == "__main__":
    main()
