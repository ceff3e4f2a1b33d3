"""What rules look at: a cell in its group, or a run. To read what was not measured raises an error with the reason.

Everything that the audit reads of a machine's identity and state goes through `MeasuredRun`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kit.compare.clean import CpuLoss, RoundCycles, cpu_loss
from kit.compare.runs import Run, Sample, run_of
from kit.compare.table import Counted, LaunchRow, counted
from kit.profile.cell import NOT_RECORDED, Cell, Variant
from kit.profile.facts import Accelerator
from kit.profile.fields import Reason, reason
from kit.profile.schema import Launch, Profile, Threads


class NotMeasuredError(Exception):
    """A rule lacks something; the reason says what. It is no pass."""

    def __init__(self, why: Reason) -> None:
        super().__init__(why.code)
        self.reason = why


class NotApplicableError(Exception):
    """A rule has nothing to check here, as of joules that nobody claims: neither a pass nor a miss."""


def not_recorded(what: str) -> NotMeasuredError:
    """Return the error for what the profile does not contain."""
    return NotMeasuredError(reason("not_recorded", what=what))


@dataclass(eq=False)
class MeasuredCell:
    """A cell in one group, with what was measured of it and of the group's other cells."""

    run: MeasuredRun
    sample: Sample  # the cell in its run
    group: str  # the group's key
    launches: dict[int, LaunchRow]  # that finished, with the cycles that count, by round; at least one
    beside: list[MeasuredCell]  # the cells of its group that have any, this one among them

    @cached_property
    def cell(self) -> Cell:
        """The cell that was measured."""
        return self.sample.cell

    @cached_property
    def key(self) -> str:
        """The cell's key."""
        return self.sample.cell_key

    @property
    def variant(self) -> Variant | None:
        """The cell's variant, where the suite names it."""
        named = (variant for variant in self.run.profile.suite.variants if variant.name == self.cell.variant)
        return next(named, None)

    @cached_property
    def records(self) -> list[Launch]:
        """What is recorded of its launches."""
        return [launch.record for launch in self.launches.values()]

    @property
    def rounds(self) -> dict[int, RoundCycles]:
        """Which cycles of its group were clean, by round; none where all cycles count."""
        known = self.run.run.rounds
        return {} if known.is_all else dict(known.by_group.get(self.group, {}))

    def unread(self, *names: str) -> NotMeasuredError:
        """Return the error with the reason why these sensors gave nothing: the first one's own, if it has any."""
        reports = {report.name: report.reason for report in self.run.profile.sensors}
        reasons = (why for name in names if (why := reports.get(name)) is not None)
        return NotMeasuredError(next(reasons, reason("not_recorded", what=", ".join(names))))

    def counted(self, *names: str) -> Counted:
        """Return the blocks of all launches with the differences of these counters."""
        blocks = self.sample.once((self.group, names), lambda: counted(self.launches.values(), *names))
        if blocks is None:
            raise self.unread(*names)
        return blocks

    def time_pct(self, *names: str) -> list[float]:
        """Return by how much counters of nanoseconds grew, in percent of the blocks' time."""
        blocks = self.counted(*names)
        return [100 * grown_ns / blocks.total_ns for grown_ns in blocks.sums]

    @property
    def threads(self) -> Threads | None:
        """The threads of the first launch that recorded them."""
        return next((record.threads for record in self.records if record.threads is not None), None)

    @property
    def environment(self) -> dict[str, str] | None:
        """The variables of the first launch that recorded them, with their values."""
        recorded = (record.environment for record in self.records if record.environment is not None)
        first = next(recorded, None)
        is_known = first is not None and not any(value.startswith(NOT_RECORDED) for value in first.values())
        return first if is_known else None

    @cached_property
    def lost(self) -> CpuLoss | None:
        """What it lost of its CPUs' time over all cycles; None: its CPUs are not known."""
        every = [launch for launch in self.sample.launches if launch.group == self.group and launch.record.gave_number]
        return cpu_loss(every, in_all=True)

    @cached_property
    def lost_in_clean_cycles(self) -> CpuLoss | None:
        """The same over the cycles that count."""
        return cpu_loss(self.launches.values())


@dataclass(eq=False)
class MeasuredRun:
    """A profile, with all cycles, and its label."""

    label: str
    profile: Profile
    known: Run | None = None  # as `kit compare` reads it; None: it is read when a rule first needs its groups

    @cached_property
    def run(self) -> Run:
        """The profile as `kit compare` reads it."""
        return self.known or run_of(self.label, self.profile)

    @cached_property
    def groups(self) -> list[list[MeasuredCell]]:
        """The cells of each group that have a launch with a number."""
        groups = []
        for whole in self.run.groups:
            for part in whole.parts:
                cells: list[MeasuredCell] = []
                for key, launches in whole.by_round(part).items():
                    cells.append(MeasuredCell(self, whole.samples[key], part.key, launches, cells))
                groups.append(cells)
        return groups

    @cached_property
    def launches(self) -> list[Launch]:
        """All launches, failed ones too."""
        return [launch for result in self.profile.cells for launch in result.launches]

    @property
    def threads(self) -> list[Threads]:
        """The threads of each launch that recorded them."""
        return [launch.threads for launch in self.launches if launch.threads is not None]

    def cpu_sets(self, name: str) -> list[list[int]]:
        """Return the CPUs of each core or NUMA node of the machine: ``cpu.core``, ``cpu.node``."""
        sets = self.profile.identity.cpu_sets(f"{name}.")
        if not sets:
            raise NotMeasuredError(self.profile.identity.why_unknown(name))
        return sets

    def was(self, flag: str) -> bool:
        """Return a flag of the machine's state before the run."""
        value = self.profile.state.before.facts.get(flag)
        if not isinstance(value, bool):
            raise self._no_state(flag)
        return value

    def growth(self, counter: str, default: int | None = None) -> int:
        """Return what a counter of the machine's state grew by during the run; where it is not known, the default."""
        span = self.profile.state
        first, last = span.before.integer(counter), None if span.after is None else span.after.integer(counter)
        if first is not None and last is not None:
            return last - first
        if default is None:
            raise self._no_state(counter)
        return default

    def _no_state(self, name: str) -> NotMeasuredError:
        span = self.profile.state
        reasons = span.before.reasons | (span.after.reasons if span.after is not None else {})
        return NotMeasuredError(reasons[name]) if name in reasons else not_recorded(name)

    def gpus(self) -> list[Accelerator]:
        """Return every GPU that a launch used, as it was before and as it was after the run."""
        ids = {device_id for launch in self.launches for device_id in launch.device_ids}
        states = (state for state in (self.profile.state.before, self.profile.state.after) if state is not None)
        used = [gpu for state in states for gpu in state.accelerators() if gpu.device_id in ids]
        if not used:
            raise NotMeasuredError(self.profile.identity.why_unknown("gpu"))
        return used
