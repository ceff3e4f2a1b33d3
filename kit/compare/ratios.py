"""What a metric is, and how far two samples of a run are apart by one: paired as closely as they were measured.

cycle     blocks that took turns ran within a second of each other: the machine's drift cancels in their ratio
round     the median over its cycles; fresh processes, so that rounds are independent observations
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import fmean, median
from typing import Any, Literal

import msgspec

from kit.compare.clean import TAKEN_BAD_PCT
from kit.compare.runs import CellGroup, Sample
from kit.compare.table import LaunchRow, middle
from kit.profile.fields import Reason, Value, reason
from kit.profile.schema import Group
from kit.stats.estimate import SMALLEST_DIFFERENCE, bounded_exp
from kit.stats.modes_and_trends import trending

MATTERS = math.log1p(SMALLEST_DIFFERENCE)
# Axes on which cells use their threads otherwise; variants and batches of one framework meet others alike.
UNLIKE = ("backend", "workload", "compile_mode", "threads", "devices")
# A variant may set threads by variables, which no axis shows. Pools of equal size differ by one thread that waits.
THREADS_UNLIKE = 2


@dataclass(frozen=True)
class Metric:
    """What is observed, how it is summed up, and how two cells are compared by it. An entry of METRICS is all it takes.

    Attributes:
        name: column of CSV, key of JSON and axis of a plot; its ending is its unit.
        title: of its column in tables; empty: only other formats have it.
        unit: in which tables show it, a key of `kit.report.values_in_words.BY_UNIT`.
        observe: of a launch: a number; a list, a number a block; (a, b) whose sums' quotient it is; None: nothing.
        over: sums up what the launches gave.
        read: returns the value of a sample at once, instead of these two; with both, `read` is what is shown.
        runs: of the values of several runs; null: these have no such value.
        compare: by ratio or by difference; empty: not compared.
        words: of a value below, and above, the baseline's.
        matters: the smallest difference that matters, given the baseline's samples and values; on the logarithm for a
            ratio.
        kind: what else has to be alike in two launches, as the kind of sensor.
        is_time: others' work slows it, and the spread of sessions is known (`kit.stats.sessions.SESSIONS_SD`).
        is_slowed: others' work slows it, too, and that spread is not known.
        per_sample: steps of another batch do another amount of work, so that samples are compared.
        needs_blocks: launches without a block do not have it.
        shown: in every table, in wide ones, or only in other formats.
        part: of a fit, of energy, of reach or of sustained load: other formats have it where a row has any of these;
            "rare": where it has this one.
        runs_of: name of the metric whose values of several runs `runs` takes; empty: this one.
        mark: letter behind the value, where this other value is true.
        holds: the type of its values in data frames and Parquet.
    """

    name: str
    title: str = ""
    unit: str = ""
    observe: Callable[[Sample, LaunchRow], Any] | None = None
    over: Callable[[list[Any]], Value | None] | None = None
    read: Callable[[Sample], Value | None] | None = None
    runs: Callable[[list[Any]], Value | None] | None = None
    compare: Literal["ratio", "difference", ""] = ""
    words: tuple[str, str] = ("less", "more")
    matters: Callable[[Sequence[Sample], Sequence[float]], float] = lambda _samples, _values: MATTERS
    kind: Callable[[Sample, LaunchRow], object] = lambda _sample, _launch: None
    is_time: bool = False
    is_slowed: bool = False
    per_sample: bool = False
    needs_blocks: bool = True
    shown: Literal["table", "wide", ""] = "wide"
    part: Literal["", "fit", "energy", "reach", "sustained", "rare"] = ""
    runs_of: str = ""
    mark: str = ""
    holds: type = float


# A launch's part of the group, its round, and what else has to be alike, as the kind of sensor.
LaunchId = tuple[str, int, object]


class LaunchSeries(msgspec.Struct, frozen=True):  # made of every launch, and in a third of a named tuple's time
    """What a launch gave of a metric."""

    value: float  # of the launch: the median of its blocks, a sum over a sum, or the number itself; NaN: none
    blocks: Sequence[float]  # of each block that counts; empty: the launch has one value
    cycles: Sequence[int]  # of these blocks
    takes_turns: bool  # it has blocks, and those of one cycle ran within a second of each other
    gives_figures: bool  # whether the cell's figures come from this launch


def series(metric: Metric, sample: Sample) -> dict[LaunchId, LaunchSeries]:
    """Return what each launch of a sample gave, with all cycles that count, round by round."""
    known: dict[LaunchId, LaunchSeries] | None = sample.series.get(metric.name)
    if known is None:
        known = sample.series[metric.name] = _series(metric, sample)
    return known


def _series(metric: Metric, sample: Sample) -> dict[LaunchId, LaunchSeries]:
    launches: dict[LaunchId, LaunchSeries] = {}
    observe, kind = metric.observe, metric.kind
    for launch in sample.measured if metric.needs_blocks else sample.launches:
        record = launch.record
        seen = None if observe is None or record.failure is not None else observe(sample, launch)
        if seen is None:
            continue
        blocks, cycles = (seen, launch.counting.cycle) if isinstance(seen, list) else ((), ())
        value = middle(seen) if blocks else seen[0] / seen[1] if isinstance(seen, tuple) else float(seen)
        key = record.group, record.round, kind(sample, launch)
        takes_turns = bool(blocks) and record.turns == "blocks"
        launches[key] = LaunchSeries(value, blocks, cycles, takes_turns, launch.gives_figures)
    return {key: launches[key] for key in sorted(launches, key=itemgetter(1, 0))}


def figure_values(metric: Metric, sample: Sample) -> list[tuple[int, float]]:
    """Return round and value of each launch that the cell's figures come from; NaN: its blocks have none."""
    return [(number, seen.value) for (_, number, _), seen in series(metric, sample).items() if seen.gives_figures]


def log_ratios(metric: Metric, a: Sample, b: Sample) -> dict[int, float]:
    """Return how far two samples of a run are apart in each common round: ln of their ratio, or their difference.

    Two samples of different parts of a group are compared through the baseline that both parts have; their rows show
    values through that baseline, too. Samples of different groups did not run together: they have no common round.
    """
    group = a.cell_group
    if group is None or group is not b.cell_group:
        return {}
    if group.part_of(a.cell_key, b.cell_key) is not None:
        return _between(metric, a, b)
    through = [(sample, group.part_of(sample.cell_key)) for sample in (a, b)]
    bases = [group.samples.get(part.baseline) if part is not None else None for _, part in through]
    if bases[0] is None or bases[1] is None:
        return {}
    mine, yours = _between(metric, a, bases[0]), _between(metric, b, bases[1])
    return {number: mine[number] - yours[number] for number in mine if number in yours}


def _between(metric: Metric, a: Sample, b: Sample) -> dict[int, float]:
    """Return it for two cells of one part."""
    by_round: dict[int, float] = {}
    shift = per_sample_log(metric, a, b)
    for number, first, second in _in_common(metric, a, b):
        if first.takes_turns and second.takes_turns:
            values = _apart(metric, _pairs_of_cycles(first, second))
        else:
            values = _apart(metric, [(first.value, second.value)])
        if values:
            by_round[number] = median(values) + shift
    return by_round


def _in_common(metric: Metric, a: Sample, b: Sample) -> Iterator[tuple[int, LaunchSeries, LaunchSeries]]:
    """Yield each round that both samples have, with what they gave in it."""
    yours = series(metric, b)
    for key, first in series(metric, a).items():
        second = yours.get(key)
        if second is not None:
            yield key[1], first, second


def _pairs_of_cycles(first: LaunchSeries, second: LaunchSeries) -> Iterable[tuple[float, float]]:
    """Return the values of two launches in each cycle that both have."""
    if first.cycles == second.cycles:
        return zip(first.blocks, second.blocks, strict=True)
    others = dict(zip(second.cycles, second.blocks, strict=True))
    known = zip(first.cycles, first.blocks, strict=True)
    return [(value, others[cycle]) for cycle, value in known if cycle in others]


def _by_cycle(metric: Metric, first: LaunchSeries, second: LaunchSeries) -> list[tuple[int, float]]:
    """Return how far two launches are apart in each cycle of which both are known."""
    others = dict(zip(second.cycles, second.blocks, strict=True))
    known = [
        (cycle, value, others[cycle])
        for cycle, value in zip(first.cycles, first.blocks, strict=True)
        if cycle in others
    ]
    return [(cycle, apart) for cycle, value, other in known for apart in _apart(metric, [(value, other)])]


def _apart(metric: Metric, pairs: Iterable[tuple[float, float]]) -> list[float]:
    """Return ln of the ratio of each pair of values, or their difference; nothing of a pair that is not known."""
    if metric.compare == "ratio":
        return [math.log(value / other) for value, other in pairs if value > 0 and other > 0]
    return [apart for value, other in pairs if math.isfinite(apart := value - other)]


def cycle_log_ratios(metric: Metric, a: Sample, b: Sample) -> dict[int, dict[int, float]]:
    """Return, of each common round, the log-ratio within each common cycle, in order of cycle.

    Cells of different parts, or of rounds in which they did not take turns, have none: no cycle has both.
    """
    shift = per_sample_log(metric, a, b)
    return {
        number: {cycle: log + shift for cycle, log in sorted(_by_cycle(metric, first, second))}
        for number, first, second in _in_common(metric, a, b)
        if first.takes_turns and second.takes_turns
    }


def per_sample_log(metric: Metric, a: Sample, b: Sample) -> float:
    """Return what to add to the logarithm of a ratio of steps, so that it compares times per sample.

    It is 0 for latencies, because a request waits for its whole batch.
    """
    mine, yours = a.cell.batch, b.cell.batch
    if not (metric.per_sample or not a.cell.in_blocks) or mine < 1 or yours < 1 or not metric.is_time:
        return 0.0
    return math.log(yours / mine)


def adjusted(metric: Metric, sample: Sample, raw: Callable[[Sample], float | None]) -> float | None:
    """Return the value that a table shows: that of the group's own baseline times the ratio that is judged.

    This is the least-squares mean of a randomized block design: what the cell would have taken in the rounds of the
    baseline. The cell's own median over other blocks would contradict the ratio beside it. A cell has this one value in
    every table, whatever it is compared with. It keeps its own value only if it has no round in common with the
    baseline, or no verdict against it because other programs disturbed both.

    Args:
        metric: compared by ratio.
        sample: with its launches.
        raw: returns the own value of a sample, whatever the machine did in between.
    """
    base = sample.baseline
    if (
        base is None
        or base is sample
        or (metric.is_time and sample.others_pct is not None and contended(sample, base) is not None)
    ):
        return raw(sample)
    base_value = raw(base)
    logs = list(log_ratios(metric, sample, base).values()) if base_value else []
    if not base_value or not logs:
        return raw(sample)
    return base_value * bounded_exp(fmean(logs) - per_sample_log(metric, sample, base))


def contended(a: Sample, b: Sample) -> float | None:
    """Return what others took of the CPUs beside two cells, if there is no verdict on them then; None: there is one.

    There is none where no cycle counts. Unlike cells lose unlike shares of their time to others, so that there is none
    on them, either, where others took much in the cycles that count.
    """
    if a.cell_group is None:
        return None
    fewer, more = sorted((a.threads, b.threads))
    is_like = all(getattr(a.cell, axis) == getattr(b.cell, axis) for axis in UNLIKE)
    is_like = is_like and (not fewer or more < THREADS_UNLIKE * fewer)
    is_disturbed = a.cell_group.is_disturbed(a.cell_key, b.cell_key)
    if not is_disturbed and (
        is_like or all(100 * launch.taken_most < TAKEN_BAD_PCT for launch in (*a.measured, *b.measured))
    ):
        return None
    part = a.cell_group.part_of(a.cell_key, b.cell_key)
    taken_pct = max(sample.contention_pct(None if part is None else part.key) for sample in (a, b))
    return taken_pct if is_disturbed or taken_pct >= TAKEN_BAD_PCT else None


def logs_by_mode(metric: Metric, a: Sample, b: Sample) -> tuple[list[list[float]], ...]:
    """Return the log-ratios of a cell to another in the fast and in the slow mode of either, by round.

    Empty where neither is bimodal, or where a mode has no cycle that both cells ran.
    """
    group = a.cell_group
    part = None if group is None or group is not b.cell_group else group.part_of(a.cell_key, b.cell_key)
    if group is None or part is None or not metric.is_time:
        return ()
    modes = group.modes.get((part.key, a.cell_key)) or group.modes.get((part.key, b.cell_key))
    if modes is None:
        return ()
    rounds: dict[bool, dict[int, list[float]]] = {False: {}, True: {}}
    shift = per_sample_log(metric, a, b)
    for number, first, second in _in_common(metric, a, b):
        for cycle, log in _by_cycle(metric, first, second) if first.blocks and second.blocks else ():
            if (number, cycle) in modes.is_slow:
                rounds[modes.is_slow[number, cycle]].setdefault(number, []).append(log + shift)
    return tuple(list(logs.values()) for logs in rounds.values()) if rounds[False] and rounds[True] else ()


def trends(metric: Metric, group: CellGroup) -> dict[str, Reason]:
    """Return the mark of the one cell of each part of a group whose ratio to the others moves most.

    The others' ratios to it move as well, the other way; of two, the one that becomes faster was warming up.
    """
    members = [(part, key) for part in group.parts for key in part.cells]
    changes = trending([_relative(metric, part, key, group.samples) for part, key in members])
    marks: dict[str, Reason] = {}
    for part in group.parts:
        moved = {
            key: change
            for (parent, key), change in zip(members, changes, strict=True)
            if parent is part and change is not None
        }
        if moved:
            key = min(moved, key=lambda key: (-round(abs(moved[key].mean_log), 9), moved[key].mean_log))
            change_pct = 100 * math.expm1(moved[key].mean_log)
            marks.setdefault(key, reason("trending", change_pct=change_pct, rounds=moved[key].count))
    return marks


def _relative(metric: Metric, part: Group, key: str, samples: Mapping[str, Sample]) -> list[list[float]]:
    """Return ln of a cell's time over the others' in the same cycle, in order of cycle, of each round of turns."""
    members: list[dict[int, LaunchSeries]] = []
    for member in (key, *(other for other in part.cells if other != key)):
        seen = series(metric, samples[member]) if member in samples else {}
        members.append({number: given for (group, number, _), given in seen.items() if group == part.key})
    relative = []
    for number in sorted(set(members[0]).intersection(*members[1:])):
        rounds = [member[number] for member in members]
        if all(seen.takes_turns for seen in rounds):
            known = [zip(seen.cycles, seen.blocks, strict=True) for seen in rounds]
            logs = [{cycle: math.log(value) for cycle, value in pairs if value > 0} for pairs in known]
            mine, *others = logs
            relative.append(
                [
                    mine[cycle] - (fmean(other[cycle] for other in others) if others else 0.0)
                    for cycle in sorted(set(mine).intersection(*others))
                ]
            )
    return relative


def launch_pairs(a: Sample, b: Sample) -> Iterator[tuple[LaunchRow, LaunchRow]]:
    """Yield the launches with a number of two cells in each part and round that both have, in order."""
    mine, yours = ({(launch.group, launch.round): launch for launch in sample.measured} for sample in (a, b))
    yield from ((mine[key], yours[key]) for key in sorted(mine.keys() & yours.keys()))
