"""The phase ledger: which phase the launch is in, on disk before the phase begins.

A worker that is killed leaves its last line behind, so that the failed cell can say where it died.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.clock import now_ns
from kit.profile.launch import Phase, PhaseName


class PhaseLedger:
    """Times phases, and keeps a trail of the ones begun."""

    def __init__(self, trail: Path) -> None:
        self._trail = trail.open("a", encoding="ascii", buffering=1)
        self.phases: list[Phase] = []
        self.current: PhaseName | None = None

    @contextmanager
    def phase(self, name: PhaseName) -> Iterator[None]:
        """Time the body as phase `name`."""
        begin_ns = self.begin(name)
        yield
        self.end(name, begin_ns)

    def begin(self, name: PhaseName) -> int:
        """Enter a phase; gives its begin, for `end`."""
        self.current = name
        self._trail.write(f"{name}\n")
        return now_ns()

    def end(self, name: PhaseName, begin_ns: int) -> None:
        """Leave the phase and keep it."""
        self.phases.append(Phase(name=name, begin_ns=begin_ns, duration_ns=now_ns() - begin_ns))

    def drop(self, name: PhaseName) -> None:
        """Take a phase back that the framework cannot tell apart."""
        self.phases[:] = [phase for phase in self.phases if phase.name != name]

    def named(self, name: PhaseName) -> Phase:
        """The phase of that name; KeyError if it was not timed."""
        for phase in self.phases:
            if phase.name == name:
                return phase
        raise KeyError(name)
