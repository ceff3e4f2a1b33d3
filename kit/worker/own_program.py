"""A user's own program: it brings its batches, and what it returns is looked at after its steps."""

from __future__ import annotations

from collections.abc import Iterator

from kit.backends.program.backend import OwnProgram
from kit.backends.protocol import DeviceBatch
from kit.worker.measured_program import MeasuredProgram
from kit.worker.step_loop import StepTimes


class MeasuredOwnProgram(MeasuredProgram):
    """A cell whose workload is a function of the user's."""

    def _make(self) -> tuple[OwnProgram, Iterator[DeviceBatch]]:
        self._user_program = OwnProgram(self._asked.sources[self._cell.workload], self._cell)
        return self._user_program, self._user_program.batches

    def _used(self) -> None:
        return None

    def _check(self, step_ns: StepTimes) -> None:
        self._user_program.check(self._output, step_ns)

    def _check_place(self) -> None:
        """Done by `OwnProgram.check`, which knows what users' steps return."""

    def _proof(self) -> None:
        return None
