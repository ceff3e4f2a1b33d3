"""How far two samples of a run are apart by a metric: paired as closely as they were measured.

cycle     blocks that took turns ran within a second of each other: the machine's drift cancels in their ratio
round     the median over its cycles; fresh processes, so that rounds are independent observations
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean
from typing import NamedTuple

from kit.compare.blocks import middle
from kit.compare.clean_cycles import TAKEN_BAD_PCT
from kit.compare.metric import Metric
from kit.compare.sample import CellGroup, Sample
from kit.profile.fields import Reason, reason
from kit.profile.schema import Group, Launch
from kit.stats.estimate import bounded_exp
from kit.stats.modes_and_trends import trending

# Axes on which cells use their threads otherwise; variants and batches of one framework meet others alike.
UNLIKE = ("backend", "workload", "compile_mode", "threads", "devices")
# A variant may set threads by variables, which no axis shows. Pools of equal size differ by one thread that waits.
THREADS_UNLIKE = 2

# A launch's part of the group, its round, and what else has to be alike, as the kind of sensor.
LaunchId = tuple[str, int, object]


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
            key = launch.group, launch.round, metric.kind(sample, launch)
            launches[key] = Series(value, blocks, launch.turns == "blocks", id(launch) in figures)
        return launches

    return sample.once(("series", metric.name), compute)


def figure_values(metric: Metric, sample: Sample) -> list[tuple[int, float]]:
    """Return round and value of each launch that the cell's figures come from; NaN: its blocks have none."""
    return [(number, seen.value) for (_, number, _), seen in series(metric, sample).items() if seen.is_figure]


def log_ratios(metric: Metric, a: Sample, b: Sample) -> dict[int, float]:
    """Return how far two samples of a run are apart in each common round: ln of their ratio, or their difference.

    Two samples of different parts of a group are compared through the baseline that both parts have; their rows show
    values through that baseline, too. Samples of different groups did not run together: they have no common round.
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
        in_turn = first.took_turns and second.took_turns and first.blocks and second.blocks
        pair = (first.blocks, second.blocks) if in_turn else ({0: first.value}, {0: second.value})
        if values := _apart(metric, *pair):
            by_round[number] = statistics.median(values.values()) + shift
    return by_round


def _in_common(metric: Metric, a: Sample, b: Sample) -> Iterator[tuple[int, Series, Series]]:
    """Yield each round that both samples have, with what they gave in it."""
    mine, yours = series(metric, a), series(metric, b)
    for key in sorted(mine.keys() & yours.keys(), key=lambda key: (key[1], key[0])):
        yield key[1], mine[key], yours[key]


def _apart(metric: Metric, a: Mapping[int, float], b: Mapping[int, float]) -> dict[int, float]:
    """Return ln of the ratio of two values, or their difference, of each cycle of which both are known."""
    if metric.compare == "ratio":
        return {
            cycle: math.log(value / other)
            for cycle, value in a.items()
            if (other := b.get(cycle, 0.0)) > 0 and value > 0
        }
    values = {cycle: value - b[cycle] for cycle, value in a.items() if cycle in b}
    return {cycle: value for cycle, value in values.items() if math.isfinite(value)}


def cycle_log_ratios(metric: Metric, a: Sample, b: Sample) -> dict[int, dict[int, float]]:
    """Return, of each common round, the log-ratio within each common cycle, in order of cycle.

    Cells of different parts, or of rounds in which they did not take turns, have none: no cycle has both.
    """
    shift = per_sample_log(metric, a, b)
    return {
        number: {cycle: log + shift for cycle, log in sorted(_apart(metric, first.blocks, second.blocks).items())}
        for number, first, second in _in_common(metric, a, b)
        if first.took_turns and second.took_turns and first.blocks and second.blocks
    }


def per_sample_log(metric: Metric, a: Sample, b: Sample) -> float:
    """Return what to add to the logarithm of a ratio of steps, so that it compares times per sample.

    It is 0 for latencies, because a request waits for its whole batch.
    """
    mine, yours = a.cell.batch, b.cell.batch
    if not (metric.per_sample or a.cell.task == "fit") or mine < 1 or yours < 1 or not metric.is_time:
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
    """Return what others took of the CPUs beside two cells, if that could change their ratio; None: it could not.

    Unlike cells lose unlike shares of their time to others.
    """
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
        for cycle, log in _apart(metric, first.blocks, second.blocks).items():
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
    members: list[dict[int, Series]] = []
    for member in (key, *(other for other in part.cells if other != key)):
        seen = series(metric, samples[member]) if member in samples else {}
        members.append({number: given for (group, number, _), given in seen.items() if group == part.key})
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
