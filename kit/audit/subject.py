"""What rules look at: a cell in its group, or a run. To read what was not measured raises an error with the reason.

Everything that the audit reads of a machine's identity and state goes through `MeasuredRun`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from msgspec.structs import replace

from kit.compare.blocks import Counted, counted
from kit.compare.clean_cycles import CpuLoss, RoundCycles, cpu_loss
from kit.compare.modes import Modes
from kit.compare.sample import Run, Sample, read_run
from kit.profile.cell import Cell, Variant
from kit.profile.identity import Accelerator
from kit.profile.launch import Launch, Threads
from kit.profile.reason import Reason, reason
from kit.profile.schema import Profile

T = TypeVar("T")


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


@dataclass(frozen=True)
class MeasuredCell:
    """A cell in one group, with what was measured of it and of the group's other cells."""

    sample: Sample  # the cell in its run
    group: str  # the group's key
    launches: dict[int, Launch]  # that finished, with the cycles that count, by round; at least one
    others: list[dict[int, Launch]]  # the same of each other cell of the group that has any
    variant: Variant | None  # the cell's, where the suite names it
    all_launches: dict[int, Launch]  # that finished, with all their cycles
    rounds: Mapping[int, RoundCycles]  # of the group
    computed: dict[object, Any] = field(default_factory=dict)  # by rules, of the group

    @property
    def cell(self) -> Cell:
        """Which it is."""
        return self.sample.cell

    @property
    def key(self) -> str:
        """The cell's key."""
        return self.sample.cell_key

    @property
    def profile(self) -> Profile:
        """The profile that it is in, with the cycles that count."""
        return self.sample.run.counted.profile

    @property
    def modes(self) -> Modes | None:
        """Its two modes in this group, if it has them."""
        together = self.sample.together
        return None if together is None else together.modes.get((self.group, self.key))

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """Return what another rule, or this one for another cell, has computed under this key; else compute it."""
        if key not in self.computed:
            self.computed[key] = compute()
        value: T = self.computed[key]
        return value

    def unread(self, *names: str) -> NotMeasuredError:
        """Return the error with the reason why these sensors gave nothing: the first one's own, if it has any."""
        reports = {report.name: report.reason for report in self.profile.sensors}
        reasons = (why for name in names if (why := reports.get(name)) is not None)
        return NotMeasuredError(next(reasons, reason("not_recorded", what=", ".join(names))))

    def counted(self, *names: str) -> Counted:
        """Return the blocks of all launches with the differences of these counters."""
        blocks = self.once((self.key, names), lambda: counted(self.launches.values(), *names))
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
        return next((launch.threads for launch in self.launches.values() if launch.threads is not None), None)

    @property
    def environment(self) -> dict[str, str] | None:
        """The variables of the first launch that recorded them."""
        recorded = (launch.environment for launch in self.launches.values() if launch.environment is not None)
        return next(recorded, None)

    @cached_property
    def lost(self) -> CpuLoss | None:
        """What it lost of its CPUs' time over all cycles; None: its CPUs are not known."""
        return cpu_loss(self.cell, self.all_launches.values())

    @cached_property
    def lost_in_clean_cycles(self) -> CpuLoss | None:
        """The same over the cycles that count."""
        is_whole = [*map(id, self.launches.values())] == [*map(id, self.all_launches.values())]
        return self.lost if is_whole else cpu_loss(self.cell, self.launches.values())


@dataclass(frozen=True)
class MeasuredRun:
    """A profile with its label, as `kit compare` reads it."""

    run: Run

    @classmethod
    def read(cls, label: str, profile: Profile) -> MeasuredRun:
        """Return the run of a profile."""
        return cls(read_run(label, profile))

    @property
    def label(self) -> str:
        """The profile's."""
        return self.run.label

    @property
    def profile(self) -> Profile:
        """The profile whole, with all cycles."""
        return self.run.profile

    @cached_property
    def groups(self) -> list[list[MeasuredCell]]:
        """The cells of each group that have a launch with a number."""
        variants = {variant.name: variant for variant in self.profile.suite.variants}
        finished: dict[tuple[str, str], dict[int, Launch]] = {}  # by group and cell, with all cycles
        for launch in (launch for launch in self.launches if launch.gave_number):
            finished.setdefault((launch.group, launch.cell_key), {})[launch.round] = launch
        groups = []
        for whole in self.run.groups:
            for part in whole.parts:
                launches, computed = whole.rounds(part), dict[object, Any]()
                rounds = self.run.counted.rounds.get(part.key, {})
                groups.append(
                    [
                        MeasuredCell(
                            sample=whole.samples[key],
                            group=part.key,
                            launches=by_round,
                            others=[other for name, other in launches.items() if name != key],
                            variant=variants.get(whole.samples[key].cell.variant),
                            all_launches={
                                number: finished[part.key, key][number]
                                for number in rounds or by_round
                                if number in finished[part.key, key]
                            },
                            rounds=rounds,
                            computed=computed,
                        )
                        for key, by_round in launches.items()
                    ]
                )
        return groups

    @property
    def launches(self) -> list[Launch]:
        """All launches, failed ones too."""
        return [launch for result in self.profile.cells for launch in result.launches]

    @property
    def threads(self) -> list[Threads]:
        """The threads of each launch that recorded them."""
        return [launch.threads for launch in self.launches if launch.threads is not None]

    def without_launches(self) -> MeasuredRun:
        """Return what rules on several runs and reports take: as small as a thousand of them need to be."""
        cells = [replace(result, launches=[]) for result in self.profile.cells]
        return MeasuredRun.read(self.label, replace(self.profile, cells=cells))

    @property
    def duration_s(self) -> float:
        """How long the run took; 0: that is not known."""
        span = self.profile.state
        first, last = span.before.raw_ns, None if span.after is None else span.after.raw_ns
        return 0.0 if first is None or last is None else (last - first) / 1e9

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
        span = self.profile.state
        states = [*span.before.accelerators(), *(span.after.accelerators() if span.after is not None else ())]
        used = [gpu for gpu in states if gpu.device_id in ids]
        if not used:
            raise NotMeasuredError(self.profile.identity.why_unknown("gpu"))
        return used
