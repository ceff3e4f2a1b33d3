"""The phase ledger: times phases, and tells the runner of each before it begins.

A member that is killed leaves behind which phase it was in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kit.clock import now_ns
from kit.profile.launch import Phase, PhaseName


class PhaseLedger:
    """Phases of a process, or of one of its programs.

    Args:
        tell: called with the name of each phase as it begins, and with `program`.
        program: index of the program; null for what all programs share.
    """

    def __init__(self, tell: Callable[[PhaseName, int | None], None], program: int | None = None) -> None:
        self._tell = tell
        self._program = program
        self.phases: list[Phase] = []
        self.current: PhaseName = "start"

    @contextmanager
    def phase(self, name: PhaseName) -> Iterator[None]:
        """Time the body as phase `name`."""
        self.current = name
        self._tell(name, self._program)
        begin_ns = now_ns()
        yield
        self.phases.append(Phase(name=name, begin_ns=begin_ns, duration_ns=now_ns() - begin_ns))

    def phase_of(self, name: PhaseName, call: Callable[[], bool]) -> None:
        """Time `call` as phase `name`; False: it has done nothing, and there was no such phase."""
        with self.phase(name):
            happened = call()
        if not happened:
            self.phases.pop()

    def take(self) -> list[Phase]:
        """Return the phases since the last call."""
        taken, self.phases = self.phases, []
        return taken
