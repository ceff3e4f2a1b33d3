"""What estimates come to: who is the fastest, a sweep's best point, when compiling pays, how a cell scales.

Each is said only where verdicts support it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from msgspec.structs import replace

from kit.compare.comparison import GroupRows, Leaders, PlatformBest, Recommendation, Row, Scaling, Share
from kit.compare.family import Family, contrast
from kit.compare.metric import Metric
from kit.compare.metrics import METRICS, compile_ns, judged_name, value
from kit.compare.paired_ratios import launch_pairs, log_ratios
from kit.compare.sample import Run, Sample
from kit.compare.sides import Side
from kit.profile.cell import DEFAULT_VARIANT
from kit.stats.break_even import BreakEven, break_even
from kit.stats.estimate import ALPHA, Estimate, bounded_exp, judge

# Axes on which less is cheaper: memory and latency grow with the batch, threads are taken from others.
CHEAPER_WHEN_SMALLER = ("batch", "threads")
# Nobody pays more for the last twentieth of a throughput.
WITHIN_5_PCT = 1.05
# More devices, and the batch or the variant that goes with them; whatever else differs is no question of scaling.
WITH_DEVICES = ("devices", "batch", "threads", "variant")


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

    Args:
        name: of the row.
        baseline: name of its baseline.
        rows: samples of each.
        steps: family of the group by step, whose verdict says whether any are saved.
    """
    axis, step, sample, base = ("compile_mode",), METRICS["step_ns"], rows[name][0], rows[baseline][0]
    if sample.cell.key_without(axis) != base.cell.key_without(axis) or sample.cell.task == "fit":
        return None
    logs, base_ns = log_ratios(step, sample, base), value(base, "step_ns")
    pairs = {
        a.round: (a, b)
        for a, b in launch_pairs(sample, base)
        if a.round in logs and not (a.reused_compilation or b.reused_compilation)
    }
    if not pairs or not base_ns:
        return None
    extra_ns = [(compile_ns(sample, a) or 0) - (compile_ns(base, b) or 0) for a, b in pairs.values()]
    mean = fmean(logs[number] for number in pairs)
    ratio = bounded_exp(mean)
    saving_ns = [base_ns * (1 - ratio - ratio * (logs[number] - mean)) for number in pairs]
    return break_even(extra_ns, saving_ns, steps.versus(name, baseline).verdict)


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
    threads = (launch.threads.requested for launch in sample.launches if launch.threads is not None)
    return float(next(threads, sample.cell.devices))


def best_of_platforms(sides: Sequence[Side], group: GroupRows, metric: Metric) -> list[PlatformBest]:
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
            estimate = contrast(metric, row.samples, base_row.samples)
            estimates |= {side.label: estimate} if estimate.count else {}
        names = {sample.key: known.member for known in group.rows for sample in known.samples}
        fastest = [names[key] for key in _fastest(side.runs, row.samples[0].group, metric) if key in names]
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
        together, keys = next(iter(cells.values())).together, []
        if together is not None:
            times = {key: value(sample, judged_name(metric.name, sample)) for key, sample in cells.items()}
            ordered = sorted((key for key, time_ns in times.items() if time_ns), key=lambda key: times[key])
            family = Family(metric, {key: [sample] for key, sample in together.samples.items()}, together.baseline)
            leaders = leaders_of(ordered, family)
            keys = [] if leaders is None or leaders.modes else [cells[key].key for key in leaders.tied]
        fastest.append(keys)
    if not fastest or not set.intersection(*map(set, fastest)):
        return []
    return list(dict.fromkeys(key for keys in fastest for key in keys))
