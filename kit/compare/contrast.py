"""How far two samples are apart by a metric: paired as closely as they were measured, else as runs.

cycle     blocks that took turns ran within a second of each other: the machine's drift cancels in their ratio
round     the median over its cycles; fresh processes, so that rounds are independent observations
run       runs that alternate in time are paired with their neighbors, of others the session is the unit

The family is what a table shows: each row against the baseline, and the fastest against the second.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from statistics import fmean
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from kit.compare.blocks import middle
from kit.compare.clean_cycles import TAKEN_BAD_PCT
from kit.compare.sample import Run, Sample
from kit.profile.launch import Launch
from kit.profile.reason import Reason, Value, reason
from kit.profile.schema import Group
from kit.stats.estimate import SMALLEST_DIFFERENCE, Estimate, bounded_exp, judge, over
from kit.stats.runs import RunLevel, over_runs
from kit.stats.shape import slower_in_both, trending

# Axes on which cells use their threads otherwise; variants and batches of one framework meet others alike.
UNLIKE = ("backend", "workload", "compile_mode", "threads", "devices")
# A variant may set threads by variables, which no axis shows. Pools of equal size differ by one thread that waits.
THREADS_UNLIKE = 2

MATTERS = math.log1p(SMALLEST_DIFFERENCE)

# A launch's part of the group, its round, and what else has to be alike, as the kind of sensor.
LaunchId = tuple[str, int, object]


@dataclass(frozen=True)
class Metric:
    """What is observed, how it is summed up, and how two cells are compared by it. An entry of METRICS is all it takes.

    Attributes:
        name: column of CSV, key of JSON and axis of a plot; its ending is its unit.
        title: of its column in tables; empty: only other formats have it.
        unit: in which tables show it, a key of `kit.report.columns.WORDS`.
        observe: of a launch: a number; a list, a number a block; (a, b) whose sums' quotient it is; None: nothing.
        over: sums up what the launches gave.
        read: returns the value of a sample at once, in the place of these two; with both, `read` is what is shown.
        runs: of the values of several runs; null: these have no such value.
        compare: by ratio or by difference; empty: not compared.
        words: of a value below, and above, the baseline's.
        matters: the smallest difference that matters, given the baseline's samples and values; on the logarithm for a
            ratio.
        kind: what else has to be alike in two launches, as the kind of sensor.
        is_time: others' work slows it, and the spread of sessions is known (`kit.stats.runs.SESSIONS_SD`).
        per_sample: steps of another batch do another amount of work, so that samples are compared.
        needs_blocks: launches without a block do not have it.
        shown: in every table, in wide ones, or only in other formats.
        part: of a fit, of energy or of reach: other formats have it where a row has any of these; "rare": where it has
            this one.
        runs_of: name of the metric whose values of several runs `runs` takes; empty: this one.
        mark: letter behind the value, where this other value is true.
    """

    name: str
    title: str = ""
    unit: str = ""
    observe: Callable[[Sample, Launch], Any] | None = None
    over: Callable[[list[Any]], Value | None] | None = None
    read: Callable[[Sample], Value | None] | None = None
    runs: Callable[[list[Any]], Value | None] | None = None
    compare: Literal["ratio", "difference", ""] = ""
    words: tuple[str, str] = ("less", "more")
    matters: Callable[[Sequence[Sample], Sequence[float]], float] = lambda _samples, _values: MATTERS
    kind: Callable[[Sample, Launch], object] = lambda _sample, _launch: None
    is_time: bool = False
    per_sample: bool = False
    needs_blocks: bool = True
    shown: Literal["table", "wide", ""] = "wide"
    part: Literal["", "fit", "energy", "reach", "rare"] = ""
    runs_of: str = ""
    mark: str = ""


class Series(NamedTuple):
    """What a launch gave of a metric."""

    value: float  # of the launch: the median of its blocks, a sum over a sum, or the number itself; NaN: none
    blocks: dict[int, float]  # cycle -> value; empty: the launch has one value
    took_turns: bool  # whether blocks of one cycle ran within a second of each other
    is_figure: bool  # whether the cell's figures come from this launch


def series(metric: Metric, sample: Sample) -> dict[LaunchId, Series]:
    """Return what each launch of a sample gave, with all cycles that count."""

    def compute() -> dict[LaunchId, Series]:
        figures, launches = {*map(id, sample.good)}, dict[LaunchId, Series]()
        for launch in sample.measured if metric.needs_blocks else sample.launches:
            seen = None if metric.observe is None or launch.failure is not None else metric.observe(sample, launch)
            if seen is None:
                continue
            blocks = dict(zip(launch.blocks.cycle, seen, strict=True)) if isinstance(seen, list) else {}
            value = middle(seen) if blocks else seen[0] / seen[1] if isinstance(seen, tuple) else float(seen)
            known = Series(value, blocks, launch.turns == "blocks", id(launch) in figures)
            launches[launch.group, launch.round, metric.kind(sample, launch)] = known
        return launches

    return sample.once(("series", metric.name), compute)


def figure_values(metric: Metric, sample: Sample) -> list[tuple[int, float]]:
    """Return round and value of each launch that the cell's figures come from; NaN: its blocks have none."""
    return [(number, known.value) for (_, number, _), known in series(metric, sample).items() if known.is_figure]


def log_ratios(metric: Metric, a: Sample, b: Sample) -> dict[int, float]:
    """Return how far two samples of a run are apart in each common round: ln of their ratio, or their difference.

    Those of different parts of a group are compared through the baseline that both parts have, as what their rows show
    is. Those of different groups did not run together, and have nothing in common.
    """
    group = a.together
    if group is None or group is not b.together:
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
        if first.took_turns and second.took_turns and first.blocks and second.blocks:
            apart = _cycles_apart(metric, first, second)
            value = statistics.median(apart.values()) if apart else math.nan
        else:
            value = _apart(metric, first.value, second.value)
        if math.isfinite(value):
            by_round[number] = value + shift
    return by_round


def _in_common(metric: Metric, a: Sample, b: Sample) -> Iterator[tuple[int, Series, Series]]:
    """Yield each round that both samples have, with what they gave in it."""
    mine, yours = series(metric, a), series(metric, b)
    for key in sorted(mine.keys() & yours.keys(), key=lambda key: (key[1], key[0])):
        yield key[1], mine[key], yours[key]


def _cycles_apart(metric: Metric, a: Series, b: Series) -> dict[int, float]:
    """Return how far two launches are apart within each common cycle."""
    values = {cycle: _apart(metric, value, b.blocks[cycle]) for cycle, value in a.blocks.items() if cycle in b.blocks}
    return {cycle: value for cycle, value in values.items() if math.isfinite(value)}


def _apart(metric: Metric, a: float, b: float) -> float:
    """Return ln of the ratio of two values, or their difference; NaN where there is none."""
    if metric.compare != "ratio":
        return a - b
    return math.log(a / b) if a > 0 and b > 0 else math.nan


def cycle_log_ratios(metric: Metric, a: Sample, b: Sample) -> dict[int, dict[int, float]]:
    """Return, of each common round, the log-ratio within each common cycle, in order of cycle.

    Cells of different parts, or of rounds in which they did not take turns, have none: no cycle has both.
    """
    shift = per_sample_log(metric, a, b)
    return {
        number: {cycle: log + shift for cycle, log in sorted(_cycles_apart(metric, first, second).items())}
        for number, first, second in _in_common(metric, a, b)
        if first.took_turns and second.took_turns and first.blocks and second.blocks
    }


def per_sample_log(metric: Metric, a: Sample, b: Sample) -> float:
    """Return what makes a ratio of steps one of samples.

    Nothing makes one of latencies: a request waits for its whole batch. A fit is known by its whole time.
    """
    mine, yours = a.cell.batch, b.cell.batch
    if not (metric.per_sample or a.cell.task == "fit") or mine < 1 or yours < 1 or not metric.is_time:
        return 0.0
    return math.log(yours / mine)


def adjusted(metric: Metric, sample: Sample, raw: Callable[[Sample], float | None]) -> float | None:
    """Return the value that a table shows: that of the group's own baseline times the ratio that is judged.

    That is the least-squares mean of a randomized block design: what a cell would have taken in the rounds that the
    baseline saw. A median over blocks that its neighbors were not in would show another ratio than the one beside it.
    Of a cell without a common round, its own. Whatever it is compared with, a cell has one value: one name, one
    number. Only a cell that has no verdict against that baseline, as others disturbed both, has a value of its own.

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
    base_value, logs = raw(base), list(log_ratios(metric, sample, base).values())
    if not base_value or not logs:
        return raw(sample)
    return base_value * bounded_exp(fmean(logs) - per_sample_log(metric, sample, base))


def contended(a: Sample, b: Sample) -> float | None:
    """Return what others took of the CPUs beside two unlike cells, where their ratio is of both; None: it is not."""
    fewer, more = sorted((a.threads, b.threads))
    is_like = all(getattr(a.cell, axis) == getattr(b.cell, axis) for axis in UNLIKE)
    if (is_like and (not fewer or more < THREADS_UNLIKE * fewer)) or a.together is None:
        return None
    part = a.together.part_of(a.cell_key, b.cell_key)
    taken_pct = max(sample.contention_pct(None if part is None else part.key) for sample in (a, b))
    is_disturbed = a.together.is_disturbed(a.cell_key, b.cell_key)
    return taken_pct if is_disturbed or taken_pct >= TAKEN_BAD_PCT else None


def logs_by_mode(metric: Metric, a: Sample, b: Sample) -> tuple[list[list[float]], ...]:
    """Return the log-ratios of a cell to another in the fast and in the slow mode of either, by round.

    Empty where neither is bimodal, or where a mode has no cycle that both cells ran.
    """
    group = a.together
    part = None if group is None or group is not b.together else group.part_of(a.cell_key, b.cell_key)
    if group is None or part is None or not metric.is_time:
        return ()
    modes = group.modes.get((part.key, a.cell_key)) or group.modes.get((part.key, b.cell_key))
    if modes is None:
        return ()
    rounds: dict[bool, dict[int, list[float]]] = {False: {}, True: {}}
    shift = per_sample_log(metric, a, b)
    for number, first, second in _in_common(metric, a, b):
        for cycle, log in _cycles_apart(metric, first, second).items():
            if (number, cycle) in modes.is_slow:
                rounds[modes.is_slow[number, cycle]].setdefault(number, []).append(log + shift)
    return tuple(list(logs.values()) for logs in rounds.values()) if rounds[False] and rounds[True] else ()


def contrast(
    metric: Metric, a: Sequence[Sample], b: Sequence[Sample], level: Callable[[Metric, Sample], RunLevel | None]
) -> Estimate:
    """Return how far the samples of one place are from those of another; it is not yet judged.

    Samples of one run are paired: one pair over its rounds, several over their runs. Others are two sides of runs.

    Args:
        metric: by which.
        a: one or more, of different runs.
        b: the same of the baseline.
        level: returns what a run adds to its side.
    """
    is_log, by_run = metric.compare == "ratio", {sample.run: sample for sample in b}
    if pairs := [(sample, by_run[sample.run]) for sample in a if sample.run in by_run]:
        rounds = [list(log_ratios(metric, *pair).values()) for pair in pairs]
        if len(pairs) == 1:
            return over(rounds[0], is_log=is_log)
        return replace(over([fmean(of_run) for of_run in rounds if of_run], is_log=is_log), unit="run")
    sides = [[known for of in side if (known := level(metric, of)) is not None] for side in (a, b)]
    if not all(sides):
        return Estimate(unit="session")
    apart = over_runs(
        *sides,
        same_hardware=a[0].run.hardware == b[0].run.hardware,
        same_host=same_host([sample.run for sample in (*a, *b)]),
        has_known_spread=metric.is_time,
        is_log=is_log,
    )
    # Blocks of one run meet others together; two runs do not, and without a clean cycle nothing says by how much.
    if metric.is_time and any(sample.others_pct is not None for sample in (*a, *b)):
        return replace(apart, contention_pct=max(sample.taken_pct or 0.0 for sample in (*a, *b)))
    return apart


def same_host(runs: Iterable[Run]) -> bool:
    """Whether all ran on one machine; of containers, whose names are drawn anew, on like hardware."""
    return len({(run.hardware, run.host) for run in runs}) == 1


class Family:
    """Rows of one table by one metric: what is known of any of them against another.

    All pairs of ten rows would be 45 tests where nine answers are shown, and a difference of 3 % be lost in them.
    Whoever asks for a pair beside the family has chosen it among all.
    """

    def __init__(
        self,
        metric: Metric,
        rows: Mapping[str, Sequence[Sample]],
        baseline: str,
        level: Callable[[Metric, Sample], RunLevel | None],
        *,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        self.metric, self._rows, self._baseline, self._level = metric, rows, baseline, level
        self._pairs = pairs
        self._known: dict[tuple[str, str], Estimate] = {}

    def versus(self, key: str, other: str) -> Estimate:
        """Return what is known of the row `key` against `other`."""
        pairs = [(key, other), (other, key)]
        judged = self._judged if any(pair in self._judged for pair in pairs) else self._all_judged
        words = self.metric.words
        known = judged[key, other] if (key, other) in judged else judged[other, key].inverted(words)
        runs = {sample.run: sample for sample in self._rows[other]}
        both = [(sample, runs[sample.run]) for sample in self._rows[key] if sample.run in runs]
        if len(both) == 1 and (modes := logs_by_mode(self.metric, *both[0])):
            # A mean over two modes is of neither.
            low, high = sorted(math.exp(statistics.median(chain.from_iterable(rounds))) for rounds in modes)
            known = replace(known, verdict="unresolved", modes=(low, high))
        taken_pct = [taken for pair in both if (taken := contended(*pair)) is not None and self.metric.is_time]
        return replace(known, verdict="unresolved", contention_pct=max(taken_pct)) if taken_pct else known

    def is_slower_in_both_modes(self, key: str, other: str) -> bool:
        """Return whether one row of a bimodal pair is shown to be slower than the other in each of the two modes."""
        runs = {sample.run: sample for sample in self._rows[other]}
        both = [(sample, runs[sample.run]) for sample in self._rows[key] if sample.run in runs]
        modes = logs_by_mode(self.metric, *both[0]) if len(both) == 1 else ()
        return bool(modes) and slower_in_both(modes, self.versus(key, other).comparisons)

    def estimate(self, key: str, other: str) -> Estimate:
        """Return how far two rows are apart, not judged."""
        if (key, other) not in self._known:
            self._known[key, other] = contrast(self.metric, self._rows[key], self._rows[other], self._level)
        return self._known[key, other]

    @cached_property
    def _judged(self) -> dict[tuple[str, str], Estimate]:
        pairs = family_of(list(self._rows), self._baseline, self.estimate) if self._pairs is None else self._pairs
        return self._judge(pairs)

    @cached_property
    def _all_judged(self) -> dict[tuple[str, str], Estimate]:
        return self._judge(list(combinations(self._rows, 2)))

    def _judge(self, pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Estimate]:
        estimates = [self.estimate(*pair) for pair in pairs]
        matters = [self.metric.matters(self._rows[pair[1]], self._common_values(*pair)) for pair in pairs]
        return dict(zip(pairs, judge(estimates, words=self.metric.words, matters=matters), strict=True))

    def _common_values(self, key: str, other: str) -> list[float]:
        """Return the second row's values in the rounds that both have."""
        if self.metric.compare == "ratio":
            return []
        mine, yours = (
            {launch: seen.value for sample in self._rows[row] for launch, seen in series(self.metric, sample).items()}
            for row in (key, other)
        )
        return [value for launch, value in yours.items() if launch in mine]


def family_of(keys: Sequence[str], baseline: str, estimate: Callable[[str, str], Estimate]) -> list[tuple[str, str]]:
    """Return the pairs that are tested together: each row and the baseline, and the fastest two.

    Args:
        keys: of the rows.
        baseline: one of them; where it has no rounds, or is none of them, the first that has some stands for it.
        estimate: of two rows.
    """
    known: dict[str, Estimate] = {}
    for base in (baseline, *keys):
        known = {key: estimate(key, base) for key in keys if key != base} if base in keys else {}
        if any(of_key.count for of_key in known.values()):
            break
    speeds = {base: 0.0} | {key: of_key.mean_log for key, of_key in known.items() if of_key.count}
    fastest = sorted(speeds, key=lambda key: speeds[key])[:2]
    beside = [(fastest[0], fastest[1])] if len(fastest) > 1 and base not in fastest else []
    return [*((key, base) for key in known), *beside]


def trends(metric: Metric, parts: Sequence[Group], samples: Mapping[str, Sample]) -> dict[str, Reason]:
    """Return the mark of the one cell of each part whose ratio to the others moves most.

    The others' ratios to it move as well, the other way; of two, the one that becomes faster was warming up.
    """
    members = [(part, key) for part in parts for key in part.cells]
    changes = trending([_relative(metric, part, key, samples) for part, key in members])
    marks: dict[str, Reason] = {}
    for part in parts:
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
    members: list[dict[int, Series]] = []
    for member in (key, *(other for other in part.cells if other != key)):
        seen = series(metric, samples[member]) if member in samples else {}
        members.append({number: known for (group, number, _), known in seen.items() if group == part.key})
    relative = []
    for number in sorted(set(members[0]).intersection(*members[1:])):
        rounds = [member[number] for member in members]
        if all(seen.took_turns and seen.blocks for seen in rounds):
            logs = [{cycle: math.log(value) for cycle, value in seen.blocks.items() if value > 0} for seen in rounds]
            mine, *others = logs
            relative.append(
                [
                    mine[cycle] - (fmean(other[cycle] for other in others) if others else 0.0)
                    for cycle in sorted(set(mine).intersection(*others))
                ]
            )
    return relative


def launch_pairs(a: Sample, b: Sample) -> Iterator[tuple[Launch, Launch]]:
    """Yield the launches with a number of two cells in each part and round that both have, in order."""
    mine, yours = ({(launch.group, launch.round): launch for launch in sample.measured} for sample in (a, b))
    yield from ((mine[key], yours[key]) for key in sorted(mine.keys() & yours.keys()))
