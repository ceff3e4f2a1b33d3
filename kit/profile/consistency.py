"""Whether the parts of a profile agree: keys, counts, spans and dates. It is checked once, where a profile is read.

`kit.profile.fields` has what a field alone may hold. A thousand profiles are read in seconds, so the blocks of all
launches are looked at as columns, by built-in functions; only if a column shows that a value may be wrong, launches are
looked at one by one, for the place of the value. No single step is looked at.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, chain, pairwise
from operator import add, le
from typing import TYPE_CHECKING, Any

from kit.printable import printable_line
from kit.profile.fields import CELSIUS_MAX, CELSIUS_MIN, CENTURY_NS, COUNT_MAX, CPU_MAX, MHZ_MAX, WATTS_MAX, YEAR_NS

if TYPE_CHECKING:
    from kit.profile.cell import Cell
    from kit.profile.facts import Facts
    from kit.profile.fields import Reason
    from kit.profile.instruments import Certificate, Distribution, Energy, SensorReadings, SensorSummary
    from kit.profile.schema import Blocks, CellResult, Fit, Group, Launch, Profile, Threads

Limits = tuple[float, float]

# Nanoseconds since 1970 have 64 bits until 2262.
YEARS = range(1970, 2262)
# The growth of a process's memory, and no count: it shrinks, too.
SHRINKING = "process.resident_b"
# Later than any block of a launch begins or ends.
LAST_NS = CENTURY_NS + YEAR_NS
# Values that are rounded before they are averaged exceed their limit by less.
ROUNDING = 1.1
ROUNDED = 1e-9
# What a sensor's unit allows. A process has up to 100 % of each CPU.
UNITS: Mapping[str, Limits] = {
    "%": (0, 100 * CPU_MAX),
    "W": (0, WATTS_MAX),
    "C": (CELSIUS_MIN, CELSIUS_MAX),
    "MHz": (0, MHZ_MAX),
    "B": (0, COUNT_MAX),
}
# Sensors whose names begin so have percentages of one device, which is never busy for more than 100 %.
OF_A_DEVICE = ("nvml.", "tpu.", "sampler.")
# What a unit at the end of a fact's or a reason's name allows.
ENDINGS: Mapping[str, Limits] = {
    "pct": (0, 100 * CPU_MAX),
    "w": UNITS["W"],
    "c": UNITS["C"],
    "mhz": UNITS["MHz"],
    "b": (0, COUNT_MAX),
    # CPU time since the machine's boot, of all CPUs, has no smaller limit.
    "ns": (0, 2**63 - 1),
    "s": (0, YEAR_NS / 1e9),
}
# What is not since the boot is of one launch.
REASON_ENDINGS = {**ENDINGS, "ns": (0, YEAR_NS)}
# In a reason, what a system call or a process answered.
CODES = ("exit_code", "errno", "error", "code")
# Published figures that are shares.
SCORES = ("accuracy", "precision", "recall", "f1")
# A message that quotes a longer name is no line any more.
MESSAGE_MAX = 400
# The test split of no classifier has more classes; a table of them would fill the memory.
CLASSES_MAX = 100_000


def shortened(message: str) -> str:
    """Return a message of one line that can be read, whatever it quotes."""
    return printable_line(message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]}…")


class CheckError(ValueError):
    """A value that cannot be: what would be right, and where it is."""

    def __init__(self, expected: str, where: str) -> None:
        super().__init__(shortened(f"{expected} - at `$.{where}`"))
        self.expected, self.where = expected, where

    def below(self, parent: str) -> CheckError:
        """Return it with where its part of the profile is: only an error needs the words of a place."""
        return CheckError(self.expected, f"{parent}.{self.where}")


def check_profile(profile: Profile) -> None:
    """Check what the types of the fields leave open.

    Raises:
        CheckError: a value cannot be; the message says where it is.
    """
    # A document need not say when its figures were measured.
    if profile.measured:
        _check_date(profile.created, "created")
    for name in ("before", "after"):
        if (state := getattr(profile.state, name)) is not None:
            if profile.measured:
                _check_date(state.taken, f"state.{name}.taken")
            _check_facts(state, f"state.{name}")
    _check_facts(profile.identity, "identity")
    if profile.clock is not None:
        _check_certificate(profile.clock, "clock")
    for index, response in enumerate(profile.responses):
        _check_reasons([response.reason], f"responses[{index}]")
        if len(response.at_ns) != len(response.values):
            raise CheckError("Expected a value for each of `at_ns`", f"responses[{index}].values")
        if any(begin_ns > end_ns for begin_ns, end_ns in response.loads):
            raise CheckError("Expected an end after the begin", f"responses[{index}].loads")
    _check_cells(profile)


def check_plan(cells: Iterable[str], groups: Iterable[Group]) -> dict[str, Collection[str]]:
    """Check that groups have cells of the run, which are given by their keys; return the cells of each group.

    Raises:
        CheckError: a cell or a group is there twice, or a group names a cell that is not there.
    """
    keys: set[str] = set()
    for index, key in enumerate(cells):
        keys.add(key)
        if len(keys) <= index:
            raise CheckError("Expected each cell once", f"cells[{index}]")
    members: dict[str, Collection[str]] = {}
    for index, group in enumerate(groups):
        _check_group(group, keys, f"groups[{index}]")
        if group.key in members:
            raise CheckError("Expected each group once", f"groups[{index}].key")
        members[group.key] = group.cells
    return members


def _check_cells(profile: Profile) -> None:
    members = check_plan([result.key for result in profile.cells], profile.groups)
    if not _cells_are_fine(profile, members):
        _find_in_cells(profile, members)
    if (sidecar := profile.sidecar) is not None:
        launches = [launch for result in profile.cells for launch in result.launches]
        steps, failures = sum(map(steps_of, launches)), sum(launch.failure is not None for launch in launches)
        if not 0 <= steps - sidecar.steps <= failures:
            raise CheckError(f"Expected the steps of all launches, {steps}", "sidecar.steps")


def _find_in_cells(profile: Profile, members: Mapping[str, Collection[str]]) -> None:
    """Raise the CheckError of the first value that cannot be, if there is one."""
    places = set[tuple[int, str, str]]()
    count = 0
    for index, result in enumerate(profile.cells):
        where = f"cells[{index}]"
        if result.key != result.cell.key:
            raise CheckError(f"Expected the cell's key, {result.cell.key}", f"{where}.key")
        _check_result(result, where, measured=profile.measured)
        for number, launch in enumerate(result.launches):
            if launch.cell_key != result.key:
                raise CheckError("Expected the key of its cell", f"{where}.launches[{number}].cell_key")
            if launch.cell_key not in members.get(launch.group, ()):
                raise CheckError("Expected a group that has its cell", f"{where}.launches[{number}].group")
            places.add((launch.round, launch.cell_key, launch.group))
            count += 1
            if len(places) < count:
                raise CheckError("Expected one launch a round", f"{where}.launches[{number}].round")
            try:
                check_launch(result.cell, launch)
            except CheckError as error:
                raise error.below(f"{where}.launches[{number}]") from None


def _cells_are_fine(profile: Profile, members: Mapping[str, Collection[str]]) -> bool:
    """Return whether all cells are fine; False: one may not be, which `_find_in_cells` looks for.

    Each rule is as strict as the one by which `check_launch` looks at a single launch, or stricter.
    """
    places: set[tuple[str, int, str]] = set()
    moments: set[str] = set()
    certificates: list[Certificate] = []
    plain: list[Blocks] = []
    count = 0
    try:
        for result in profile.cells:
            key, cell, groups = result.key, result.cell, set()
            if key != cell.key:
                return False
            _check_result(result, "", measured=profile.measured)
            for launch in result.launches:
                if launch.cell_key != key:
                    return False
                groups.add(launch.group)
                places.add((launch.group, launch.round, key))
                moments.add(launch.started)
                if launch.certificate is not None:
                    certificates.append(launch.certificate)
                if launch.blocks.steps and launch.ranks:
                    _check_blocks(launch.blocks, "", has_ranks=True)
                elif launch.blocks.steps:
                    plain.append(launch.blocks)
                _check_outcome(cell, launch)
            if any(key not in members.get(group, ()) for group in groups):
                return False
            count += len(result.launches)
        for moment in moments:
            _check_date(moment, "")
    except CheckError:
        return False
    return len(places) == count and _certificates_grow(certificates) and _blocks_are_fine(plain)


def _certificates_grow(certificates: Iterable[Certificate]) -> bool:
    """Return whether the percentiles of all certificates certainly grow."""
    for certificate in certificates:
        for spread in (certificate.null_interval, certificate.path_cost):
            least_ns, most_ns = spread.min_ns, spread.max_ns
            if not least_ns <= spread.median_ns <= spread.p99_ns <= spread.p999_ns <= most_ns:
                return False
            if not least_ns <= spread.mean_ns <= most_ns:
                return False
    return True


def _blocks_are_fine(launches: Sequence[Blocks]) -> bool:
    """Return whether the blocks of all launches are certainly fine; each launch has some, and no ranks."""
    columns: tuple[list[Any], ...] = ([], [], [], [], [], [], [])
    begins_ns, followings_ns, spans_ns, durations_ns, medians_ns, steps, differences = columns
    shortest_ns = YEAR_NS  # of the launches
    for blocks in launches:
        begin_ns, span_ns = blocks.begin_ns, blocks.span_ns
        if begin_ns[-1] - begin_ns[0] > YEAR_NS:
            return False
        begins_ns += begin_ns
        followings_ns += begin_ns[1:]
        followings_ns.append(LAST_NS)
        spans_ns += span_ns
        if (blocks.early_ns or blocks.late_ns) and not _thirds_are_fine(blocks, max(span_ns)):
            return False
        durations_ns += blocks.duration_ns
        medians_ns += blocks.median_ns
        steps += blocks.steps
        shortest_ns = min(shortest_ns, sum(span_ns))
        if blocks.planned_steps and not all(map(le, blocks.steps, blocks.planned_steps)):
            return False
        if blocks.turn_count and not _turns_are_fine(blocks):
            return False
        growing = blocks.counters.copy()
        growing.pop(SHRINKING, None)
        for values in growing.values():
            differences += values
    try:
        array("Q", differences)  # it takes no number below zero, and is faster than `min`
        return (
            all(map(le, durations_ns, spans_ns))
            and all(map(le, steps, durations_ns))
            and all(map(le, medians_ns, spans_ns))
            and all(map(le, map(add, begins_ns, spans_ns), followings_ns))
            and sum(differences) <= CPU_MAX * shortest_ns
        )
    except (TypeError, OverflowError):  # no step of a block was waited for, or a reading failed; or it fell
        return False


def _check_group(group: Group, keys: Collection[str], where: str) -> None:
    if not group.cells:
        raise CheckError("Expected a cell or more", f"{where}.cells")
    if not set(group.cells).issubset(keys):
        raise CheckError("Expected keys of cells", f"{where}.cells")
    if group.baseline not in group.cells:
        raise CheckError("Expected a cell of the group", f"{where}.baseline")


def _check_result(result: CellResult, where: str, *, measured: bool) -> None:
    if measured and result.cell.batch < 1:
        raise CheckError("Expected `int` >= 1", f"{where}.cell.batch")
    if (all_cycles_ns := result.all_cycles_ns) is not None and len(all_cycles_ns) != 3:  # noqa: PLR2004 - p50, p95, p99
        raise CheckError("Expected three percentiles", f"{where}.all_cycles_ns")
    if not _grow((result.p50_ns, result.p95_ns, result.p99_ns)):
        raise CheckError("Expected percentiles that grow", f"{where}.p99_ns")
    if all_cycles_ns is not None and not _grow(all_cycles_ns):
        raise CheckError("Expected percentiles that grow", f"{where}.all_cycles_ns")
    for number, published in enumerate(result.published):
        if published.figure in SCORES and published.value > 1:
            raise CheckError("Expected `float` <= 1.0", f"{where}.published[{number}].value")
        _check_unit(published.figure, published.value, f"{where}.published[{number}]")
        if published.figure not in SCORES and published.value <= 0:
            raise CheckError("Expected `float` > 0.0", f"{where}.published[{number}].value")


def _grow(percentiles_ns: Iterable[int | None]) -> bool:
    known_ns = [time_ns for time_ns in percentiles_ns if time_ns is not None]
    return known_ns == sorted(known_ns)


def steps_of(launch: Launch) -> int:
    """Return how many steps of a launch have a time of their own: the first, its warm-up, and those of its blocks."""
    blocks = launch.blocks
    return 1 + launch.warmup_steps + sum(blocks.lead_in) + sum(blocks.waited_steps or blocks.steps)


def step_counts(launch: Launch) -> range:
    """Return how many steps may be saved of a launch: one that failed may have none, not even its first."""
    steps = steps_of(launch)
    return range(steps - (launch.failure is not None), steps + 1)


def longest_ns(launch: Launch) -> int:
    """Return how long a step of a launch may be: as its longest phase or block."""
    return max(chain((phase.duration_ns for phase in launch.phases), launch.blocks.span_ns), default=YEAR_NS)


def check_launch(cell: Cell, launch: Launch) -> None:
    """Check one launch by itself, of a profile or of a run that is not over.

    Raises:
        CheckError: a value cannot be.
    """
    _check_date(launch.started, "started")
    if launch.blocks.steps:
        _check_blocks(launch.blocks, "blocks", has_ranks=bool(launch.ranks))
    if launch.certificate is not None:
        _check_certificate(launch.certificate, "certificate")
    _check_outcome(cell, launch)


def _check_outcome(cell: Cell, launch: Launch) -> None:
    """Check what a launch came to besides its blocks, most of which few launches have."""
    if launch.fit is not None:
        _check_fit(launch.fit, "fit")
    if launch.numbers is not None:
        _check_reasons([launch.numbers.loss_reason, launch.numbers.denormal_reason], "numbers")
    if launch.p95_ns is not None and launch.p99_ns is not None and launch.p95_ns > launch.p99_ns:
        raise CheckError("Expected percentiles that grow", "p99_ns")
    if launch.sensors:
        for name, summary in launch.sensors.items():
            _check_summary(name, summary, "sensors")
    for readings in launch.long_block_readings:
        _check_readings(readings, f"long_block_readings.{readings.sensor}")
    if launch.energy:
        for number, energy in enumerate(launch.energy):
            _check_energy(energy, f"energy[{number}]")
    if launch.recompiles is not None or launch.ran is not None:
        _check_reasons([known.reason for known in (launch.recompiles, launch.ran) if known is not None], "reasons")
    if launch.notes or launch.failure is not None or launch.turns_reason is not None or launch.sensor_reasons:
        failure = None if launch.failure is None else launch.failure.reason
        _check_reasons([*launch.notes, launch.turns_reason, *launch.sensor_reasons.values()], "reasons")
        _check_reasons([failure], "failure")
    if launch.threads is not None and launch.threads.placement:
        _check_placement(launch.threads, "threads.placement")
    if launch.ranks and (ranks := len(launch.ranks)) > cell.devices:
        raise CheckError(f"Expected at most {cell.devices} ranks, not {ranks}", "ranks")


def _check_blocks(blocks: Blocks, where: str, *, has_ranks: bool) -> None:
    """Refuse blocks that overlap, and times that are longer than what they are part of."""
    spans_ns, most_ns = blocks.span_ns, max(blocks.span_ns)
    if not all(map(le, blocks.duration_ns, spans_ns)):
        raise CheckError("Expected times within the span of their block", f"{where}.duration_ns")
    # A step takes a nanosecond at least.
    if not all(map(le, blocks.steps, blocks.duration_ns)):
        raise CheckError("Expected no more steps than nanoseconds", f"{where}.steps")
    if blocks.planned_steps and not all(map(le, blocks.steps, blocks.planned_steps)):
        raise CheckError("Expected no more steps than were planned", f"{where}.planned_steps")
    if max(filter(None, blocks.median_ns), default=0) > most_ns:
        raise CheckError("Expected times within the span of their block", f"{where}.median_ns")
    if not _thirds_are_fine(blocks, most_ns):
        raise CheckError("Expected times within the span of their block", f"{where}.early_ns")
    if blocks.turn_count:
        _check_turns(blocks, where)
    # Of ranks the begin is the first one's and the span the slowest one's: they may overlap a little.
    begins_ns, turns_ns = blocks.turn_begin_ns or blocks.begin_ns, blocks.turn_span_ns or spans_ns
    ends_ns = begins_ns if has_ranks else [*map(add, begins_ns, turns_ns)]
    if not all(map(le, ends_ns, begins_ns[1:])):
        raise CheckError("Expected blocks one after the other", f"{where}.begin_ns")
    if blocks.begin_ns[-1] - blocks.begin_ns[0] > YEAR_NS:
        raise CheckError("Expected blocks within a year", f"{where}.begin_ns")
    counters, most_ns = blocks.counters, sum(spans_ns)
    known: Mapping[str, list[int]] = counters  # type: ignore[assignment]
    try:
        # Most launches have counters that all rose, each by little: two passes show it.
        flat = [*chain.from_iterable(known.values())]
        if flat and (min(flat) < 0 or sum(flat) > CPU_MAX * most_ns):
            _check_counters(known, most_ns, where)
    except TypeError:  # a reading failed
        read = {name: [value for value in values if value is not None] for name, values in counters.items()}
        _check_counters({name: values for name, values in read.items() if values}, most_ns, where)


def _check_turns(blocks: Blocks, where: str) -> None:
    """Refuse turns that are not what their blocks say."""
    firsts = [0, *accumulate(blocks.turn_count)]
    if [blocks.turn_begin_ns[first] for first in firsts[:-1]] != blocks.begin_ns:
        raise CheckError("Expected a block to begin with its first turn", f"{where}.turn_begin_ns")
    if [sum(blocks.turn_span_ns[first:end]) for first, end in pairwise(firsts)] != blocks.span_ns:
        raise CheckError("Expected the span of a block to be that of its turns together", f"{where}.turn_span_ns")


def _turns_are_fine(blocks: Blocks) -> bool:
    """Return whether turns follow each other, and are what their blocks say."""
    begins_ns = blocks.turn_begin_ns
    try:
        _check_turns(blocks, "")
    except CheckError:
        return False
    return all(map(le, map(add, begins_ns, blocks.turn_span_ns), begins_ns[1:]))


def _thirds_are_fine(blocks: Blocks, most_ns: int) -> bool:
    return max(filter(None, chain(blocks.early_ns, blocks.late_ns)), default=0) <= most_ns


def _check_counters(counters: Mapping[str, list[int]], most_ns: int, where: str) -> None:
    """Refuse counters that rose by more than all blocks allow, CPU time by their span on each CPU, or that fell."""
    for name, values in counters.items():
        is_time = name.endswith("_ns")
        is_too_high = is_time and sum(values) > CPU_MAX * most_ns
        if name != SHRINKING and (min(values) < 0 or is_too_high):
            raise CheckError("Expected what its blocks allow", f"{where}.counters.{name}")


def _check_fit(fit: Fit, where: str) -> None:
    if fit.updates > fit.all_updates:
        raise CheckError(f"Expected `int` <= {fit.all_updates}", f"{where}.updates")
    if (table := fit.confusion) is not None:
        if not 0 < len(table) <= CLASSES_MAX or any(len(row) != len(table) for row in table):
            raise CheckError("Expected as many columns as rows", f"{where}.confusion")
        if not any(map(any, table)):
            raise CheckError("Expected a sample or more", f"{where}.confusion")
    if fit.reason is not None:
        _check_reasons([fit.reason], where)


def _check_placement(threads: Threads, where: str) -> None:
    placed = sum(alike.threads for alike in threads.placement or ())
    if placed > (threads.used or placed):
        raise CheckError(f"Expected at most {threads.used} threads, not {placed}", where)
    listed = [len(alike.cpus) for alike in threads.placement or ()]
    if not all(listed) or sum(listed) > CPU_MAX:
        raise CheckError(f"Expected 1 to {CPU_MAX} CPUs", where)


def _check_summary(name: str, summary: SensorSummary, where: str) -> None:
    limits = UNITS.get(summary.unit)
    # What is counted more coarsely than it is read exceeds its time in single readings.
    if summary.unit == "%" and name.startswith(OF_A_DEVICE) and not name.endswith("violation"):
        limits = 0, 100 * ROUNDING
    if limits is not None and not limits[0] <= summary.mean <= limits[1]:
        raise CheckError(_between(limits), f"{where}.{name}.mean")
    if limits is not None and not limits[0] <= summary.max <= limits[1]:
        raise CheckError(_between(limits), f"{where}.{name}.max")


def _check_readings(readings: SensorReadings, where: str) -> None:
    if len(readings.at_ns) != len(readings.values) or readings.at_ns != sorted(readings.at_ns):
        raise CheckError("Expected a time for each value, and times that grow", f"{where}.at_ns")
    low, high = UNITS.get(readings.unit, (-math.inf, math.inf))
    if not all(low <= value <= high for value in readings.values):
        raise CheckError(_between((low, high)), f"{where}.values")


def _check_energy(energy: Energy, where: str) -> None:
    if energy.joules_j is not None and energy.joules_j > WATTS_MAX * (energy.window_ns or energy.block_ns) / 1e9:
        raise CheckError(f"Expected at most {WATTS_MAX:,.0f} W", f"{where}.joules_j")
    _check_reasons([energy.reason, energy.idle_reason], where)


def _check_certificate(certificate: Certificate, where: str) -> None:
    for name in ("null_interval", "path_cost"):
        spread: Distribution = getattr(certificate, name)
        low_ns, high_ns = spread.min_ns, spread.max_ns
        grow = low_ns <= spread.median_ns <= spread.p99_ns <= spread.p999_ns <= high_ns
        # A mean of equal numbers may be rounded out of their range.
        if not grow or not low_ns * (1 - ROUNDED) <= spread.mean_ns <= high_ns * (1 + ROUNDED):
            raise CheckError("Expected percentiles that grow", f"{where}.{name}")


def _check_facts(facts: Facts, where: str) -> None:
    inside = f"{where}.facts"
    for name, value in facts.facts.items():
        if type(value) is int or type(value) is float:
            # A limit of memory that is none is the largest number of 64 bits.
            if not name.endswith("limit_b"):
                _check_unit(name, value, inside)
            if not (CELSIUS_MIN if name.endswith("_c") else 0) <= value <= 2**63 - 1:
                raise CheckError(_between((0, 2**63 - 1)), f"{inside}.{name}")
    _check_reasons(facts.reasons.values(), where)


def _check_reasons(reasons: Iterable[Reason | None], where: str) -> None:
    for why in reasons:
        if why is not None:
            for name, value in why.values.items():
                if type(value) is int or type(value) is float:
                    # What a limit leaves of the memory may be less than nothing.
                    left = abs(value) if name.endswith("_b") else value
                    _check_unit(name, left, f"{where} (reason {why.code})", REASON_ENDINGS)
                    if type(value) is int and left < 0 and name not in CODES:
                        raise CheckError(_between((0, COUNT_MAX)), f"{where} (reason {why.code}).{name}")


def _check_unit(name: str, value: float, where: str, endings: Mapping[str, Limits] = ENDINGS) -> None:
    limits = endings.get(name.rpartition("_")[2])
    if limits is not None and not limits[0] <= value <= limits[1]:
        raise CheckError(_between(limits), f"{where}.{name}")


def _between(limits: Limits) -> str:
    return f"Expected {limits[0]:g} to {limits[1]:g}"


def _check_date(moment: str, where: str) -> None:
    try:
        is_date = datetime.fromisoformat(moment).year in YEARS
    except ValueError:
        is_date = False
    if not is_date:
        raise CheckError("Expected a date in ISO 8601, such as 2026-01-01T00:00:00Z", where)
