"""Verdicts: the rows of one table judged together, and what the estimates come to.

    family        each row against the baseline, and the fastest against the second; all are adjusted for all
    conclusions   who is the fastest, a sweep's best point, when compiling pays, how a cell scales: each is said only
                  where verdicts support it

Samples of one run are paired by round. Runs that alternate in time are paired with their neighbors; of others the
session is the unit.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from statistics import fmean

from msgspec.structs import replace

from kit.compare.contradictions import first_against_mode
from kit.compare.metrics import METRICS, compile_ns, judged_name, run_level, value
from kit.compare.ratios import Metric, contended, launch_pairs, log_ratios, logs_by_mode, series
from kit.compare.rows import GroupRows, Leaders, PlatformBest, Recommendation, Row, Scaling, Share
from kit.compare.runs import Run, Sample, same_host
from kit.compare.sides import Side
from kit.profile.cell import DEFAULT_VARIANT
from kit.stats.break_even import BreakEven, break_even
from kit.stats.estimate import ALPHA, Estimate, bounded_exp, judge, over
from kit.stats.modes_and_trends import slower_in_both
from kit.stats.sessions import over_runs

# Axes on which less is cheaper: memory and latency grow with the batch, threads are taken from others.
CHEAPER_WHEN_SMALLER = ("batch", "threads")
# Nobody pays more for the last twentieth of a throughput.
WITHIN_5_PCT = 1.05
# More devices, and the batch or the variant that goes with them; whatever else differs is no question of scaling.
WITH_DEVICES = ("devices", "batch", "threads", "variant")


def contrast(metric: Metric, a: Sequence[Sample], b: Sequence[Sample]) -> Estimate:
    """Return how far the samples of one row are from those of another; it is not yet judged.

    Samples of one run are paired: one pair over its rounds, several over their runs. Others are two sides of runs.

    Args:
        metric: by which.
        a: one or more, of different runs.
        b: the same of the baseline.
    """
    is_log, by_run = metric.compare == "ratio", {sample.run: sample for sample in b}
    if pairs := [(sample, by_run[sample.run]) for sample in a if sample.run in by_run]:
        rounds = [list(log_ratios(metric, *pair).values()) for pair in pairs]
        if len(pairs) == 1:
            return over(rounds[0], is_log=is_log)
        return replace(over([fmean(logs) for logs in rounds if logs], is_log=is_log), unit="run")
    sides = [[known for sample in side if (known := run_level(metric, sample)) is not None] for side in (a, b)]
    # Joules of boards say nothing beside joules of the wall.
    kinds, base_kinds = ({kind for sample in side for *_, kind in series(metric, sample)} for side in (a, b))
    if not all(sides) or (kinds and base_kinds and kinds != base_kinds):
        return Estimate(unit="session")
    apart = over_runs(
        *sides,
        same_hardware=a[0].run.hardware == b[0].run.hardware,
        same_host=same_host([sample.run for sample in (*a, *b)]),
        has_known_spread=metric.is_time,
        is_log=is_log,
    )
    # Blocks of one run meet others together; two runs do not, and without a clean cycle nothing says by how much.
    if (metric.is_time or metric.is_slowed) and any(sample.others_pct is not None for sample in (*a, *b)):
        return replace(apart, contention_pct=max(sample.taken_pct or 0.0 for sample in (*a, *b)))
    return apart


class Family:
    """Rows of one table by one metric: what is known of any of them against another.

    All pairs of ten rows would be 45 tests where nine answers are shown, and a difference of 3 % be lost in them.
    A pair that is not in the family is judged among all pairs, because somebody chose it among all.
    """

    def __init__(
        self,
        metric: Metric,
        rows: Mapping[str, Sequence[Sample]],
        baseline: str,
        *,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        self.metric, self._rows, self._baseline, self._pairs = metric, rows, baseline, pairs
        self._known: dict[tuple[str, str], Estimate] = {}

    def versus(self, key: str, other: str) -> Estimate:
        """Return what is known of the row `key` against `other`."""
        pairs = [(key, other), (other, key)]
        judged = self._judged if any(pair in self._judged for pair in pairs) else self._all_judged
        words = self.metric.words
        known = judged[key, other] if (key, other) in judged else judged[other, key].inverted(words)
        if modes := self._logs_by_mode(key, other):
            # A mean over two modes is of neither.
            low, high = sorted(math.exp(statistics.median(chain.from_iterable(rounds))) for rounds in modes)
            known = replace(known, verdict="unresolved", modes=(low, high))
        meets_others = self.metric.is_time or self.metric.is_slowed
        pairs_of_runs = self._common_runs(key, other) if meets_others else []
        taken_pct = [taken for pair in pairs_of_runs if (taken := contended(*pair)) is not None]
        return replace(known, verdict="unresolved", contention_pct=max(taken_pct)) if taken_pct else known

    def is_slower_in_both_modes(self, key: str, other: str) -> bool:
        """Return whether one row of a bimodal pair is shown to be slower than the other in each of the two modes."""
        modes = self._logs_by_mode(key, other)
        return bool(modes) and slower_in_both(modes, self.versus(key, other).comparisons)

    def _common_runs(self, key: str, other: str) -> list[tuple[Sample, Sample]]:
        """Return the samples of two rows that are of the same runs."""
        runs = {sample.run: sample for sample in self._rows[other]}
        return [(sample, runs[sample.run]) for sample in self._rows[key] if sample.run in runs]

    def _logs_by_mode(self, key: str, other: str) -> tuple[list[list[float]], ...]:
        pairs = self._common_runs(key, other)
        return logs_by_mode(self.metric, *pairs[0]) if len(pairs) == 1 else ()

    def estimate(self, key: str, other: str) -> Estimate:
        """Return how far two rows are apart, not judged."""
        if (key, other) not in self._known:
            self._known[key, other] = contrast(self.metric, self._rows[key], self._rows[other])
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
    against: dict[str, Estimate] = {}
    for base in (baseline, *keys):
        against = {key: estimate(key, base) for key in keys if key != base} if base in keys else {}
        if any(row.count for row in against.values()):
            break
    speeds = {base: 0.0} | {key: row.mean_log for key, row in against.items() if row.count}
    fastest = sorted(speeds, key=lambda key: speeds[key])[:2]
    first_two = [(fastest[0], fastest[1])] if len(fastest) > 1 and base not in fastest else []
    return [*((key, base) for key in against), *first_two]


def leaders_of(names: Sequence[str], family: Family) -> Leaders | None:
    """Return the fastest; None where no verdict says so.

    Args:
        names: of the rows that have a number, fastest first.
        family: of the group.
    """
    if not names or not family.metric.is_time:
        return None
    first, *others = names
    against = {name: family.versus(name, first) for name in others}
    # The mean of a bimodal pair says nothing: each mode has to be shown to be slower.
    in_both = {
        name: versus.modes
        for name, versus in against.items()
        if versus.modes and versus.contention_pct is None and family.is_slower_in_both_modes(name, first)
    }
    slower = [
        (name, versus.ratio if versus.modes is None else None)
        for name, versus in against.items()
        if versus.verdict == "slower"
        or (name in in_both and versus.p_adjusted is not None and versus.p_adjusted <= ALPHA)
    ]
    # Nothing says which of two cells is faster that were not measured together.
    if not slower or any(versus.verdict == "faster" or versus.count == 0 for versus in against.values()):
        return None
    modes = [(name, *ratios) for name, ratios in in_both.items() if name not in dict(slower)]
    tied = [name for name in against if name not in dict(slower) and name not in in_both]
    return Leaders(tied=[first, *tied], slower_than_fastest=slower, modes=modes)


def recommended(axis: str, rows: Sequence[Row], family: Family) -> Recommendation | None:
    """Return the point of best throughput, and the smallest that nearly has it; null if it is shown to beat no other.

    Rows are in the axis' order. Of axes on which less is not cheaper nothing is recommended.
    """
    rows = [row for row in rows if row.value("sample_ns") is not None]
    if axis not in CHEAPER_WHEN_SMALLER or not any(row.is_baseline for row in rows):
        return None
    best = min(rows, key=lambda row: float(row.value("sample_ns")))
    against = {row.name: family.versus(row.name, best.name) for row in rows if row is not best}
    if not any(versus.verdict == "slower" for versus in against.values()):
        return None
    smallest = next(row for row in rows if row is best or (against[row.name].high or math.inf) <= WITHIN_5_PCT)
    beaten = against.get(smallest.name)
    # That none is smaller has to be shown, too.
    smaller = rows[: rows.index(best)] if smallest is best else []
    is_shown = all((against[row.name].low or 0) > WITHIN_5_PCT for row in smaller)
    return Recommendation(
        best=best.name,
        samples_per_s=best.value("samples_per_s"),
        unresolved=[name for name, row in against.items() if row.verdict == "unresolved"],
        smallest=smallest.name if is_shown else None,
        ratio=None if beaten is None else beaten.ratio,
        low=None if beaten is None else beaten.low,
        high=None if beaten is None else beaten.high,
    )


def broken_even(name: str, baseline: str, rows: Mapping[str, Sequence[Sample]], steps: Family) -> BreakEven | None:
    """Return after how many steps the compile mode that compiles for longer has paid for it; None of other axes.

    What a step saves comes from the ratio that the row shows, so that a mode whose steps are slower never pays:
    baseline's step × (1 - ratio), with the rounds' spread around it.

    There is none where another mode ran than the one that a cell names.

    Args:
        name: of the row.
        baseline: name of its baseline.
        rows: samples of each.
        steps: family of the group by step, whose verdict says whether any are saved.
    """
    axis, step, sample, base = ("compile_mode",), METRICS["step_ns"], rows[name][0], rows[baseline][0]
    if any(first_against_mode(known.cell, (each.record for each in known.launches)) for known in (sample, base)):
        return None
    if sample.cell.key_without(axis) != base.cell.key_without(axis) or not sample.cell.in_blocks:
        return None
    logs, base_ns = log_ratios(step, sample, base), value(base, "step_ns")
    # In a round that shows how one starts, the other may be a later program of its process: then neither counts.
    extra_ns = {
        a.round: (compile_ns(sample, a) or 0) - (compile_ns(base, b) or 0)
        for a, b in launch_pairs(sample, base)
        if a.round in logs and a in sample.starts and b in base.starts
    }
    if not extra_ns or not base_ns:
        return None
    mean = fmean(logs[number] for number in extra_ns)
    ratio = bounded_exp(mean)
    saving_ns = [base_ns * (1 - ratio - ratio * (logs[number] - mean)) for number in extra_ns]
    return break_even([*extra_ns.values()], saving_ns, steps.versus(name, baseline).verdict)


def scaling_of(name: str, baseline: str, rows: Mapping[str, Sequence[Sample]], family: Family) -> Scaling | None:
    """Return how a row scales from its baseline; arguments as of `broken_even`.

    Returns:
        None: the baseline has no fewer devices, or the two differ in more than what goes with devices.
    """
    sample, base = rows[name][0], rows[baseline][0]
    cell, without_all_reduce = sample.cell, sample.run.without_all_reduce
    if cell.devices <= base.cell.devices or cell.key_without(WITH_DEVICES) != base.cell.key_without(WITH_DEVICES):
        return None
    more = _resources(sample) / _resources(base)
    if cell.variant in without_all_reduce:
        return Scaling(resources_ratio=more, efficiency=None, all_reduce=None)
    # The fraction of a step that is gone where nothing is averaged; another variant's step differs in more than that.
    alike = [
        other
        for other, (known, *_) in rows.items()
        if known.cell.variant in without_all_reduce
        and known.cell.key_without(("variant",)) == cell.key_without(("variant",))
    ]
    left = _fraction(family.versus(alike[0], name), 1.0) if alike and cell.variant == DEFAULT_VARIANT else None
    if left is not None:
        low, high = (None if end is None else 1 - end for end in (left.high, left.low))
        left = Share(value=1 - left.value, low=low, high=high)
    efficiency = _fraction(family.versus(baseline, name), more)
    return Scaling(resources_ratio=more, efficiency=efficiency, all_reduce=left)


def _fraction(times: Estimate, resources: float) -> Share | None:
    """Return the ratio of times and its interval, over `resources`."""
    if times.ratio is None or times.contention_pct is not None:
        return None
    low, high = (None if end is None else end / resources for end in (times.low, times.high))
    return Share(value=times.ratio / resources, low=low, high=high)


def _resources(sample: Sample) -> float:
    """Return what a cell computes with: its devices; on a CPU, which these divide, its threads."""
    if sample.cell.device != "cpu":
        return float(sample.cell.devices)
    recorded = (launch.record.threads for launch in sample.launches)
    return float(next((used.requested for used in recorded if used is not None), sample.cell.devices))


def best_of_platforms(
    sides: Sequence[Side], group: GroupRows, samples_of: Mapping[str, Sequence[Sample]], metric: Metric
) -> list[PlatformBest]:
    """Return what each platform is at its best, against the baseline's, where nothing keeps these apart.

    The estimates are one family. Their p values allow for the choice of the fastest among all members of each side.
    """
    best, estimates = list[PlatformBest](), dict[str, Estimate]()
    base_row: Row | None = None
    for side in sides:
        timed = [row for row in group.rows if row.side == side.label and row.judged]
        if not timed:
            continue
        row = min(timed, key=lambda row: row.judged or 0)
        if side is sides[0]:
            base_row = row
        elif base_row is not None and not any(known.blocked for known in timed):
            estimate = contrast(metric, samples_of[row.name], samples_of[base_row.name])
            estimates |= {side.label: estimate} if estimate.count else {}
        names = {sample.key: known.member for known in group.rows for sample in samples_of[known.name]}
        fastest = [names[key] for key in _fastest(side.runs, samples_of[row.name][0].group, metric) if key in names]
        best.append(PlatformBest(platform=side.label, member=row.member, fastest=fastest))
    members = {row.member for row in group.rows}
    judged = dict(zip(estimates, judge(list(estimates.values()), chosen_among=len(members)), strict=True))
    return [replace(platform, versus=judged.get(platform.platform)) for platform in best]


def _fastest(runs: Sequence[Run], group: str, metric: Metric) -> list[str]:
    """Return the keys of the cells that are shown to be the fastest of a group, or tied with it, in any run.

    None where the runs have no such cell in common.
    """
    fastest: list[list[str]] = []  # in each run
    for run in runs:
        cells = {sample.cell_key: sample for sample in run.samples.values() if sample.group == group}
        if not cells:
            continue
        cell_group, keys = next(iter(cells.values())).cell_group, []
        if cell_group is not None:
            times = {key: value(sample, judged_name(metric.name, sample)) for key, sample in cells.items()}
            ordered = sorted((key for key, time_ns in times.items() if time_ns), key=lambda key: times[key])
            family = Family(metric, {key: [sample] for key, sample in cell_group.samples.items()}, cell_group.baseline)
            leaders = leaders_of(ordered, family)
            keys = [] if leaders is None or leaders.modes else [cells[key].key for key in leaders.tied]
        fastest.append(keys)
    if not fastest or not set.intersection(*map(set, fastest)):
        return []
    return list(dict.fromkeys(key for keys in fastest for key in keys))
