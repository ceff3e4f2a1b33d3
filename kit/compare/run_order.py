"""In which order the runs of two sides were measured: in turn, one side after the other, overlapping, or not known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from kit.compare.comparison import Note
from kit.compare.family import same_host
from kit.compare.sample import Run, RunTimes
from kit.compare.sides import Side
from kit.profile.fields import Reason, reason
from kit.stats.sessions import RunLevel, overlapping, pairs_in_turn


def orders_of(sides: Sequence[Side]) -> list[Note]:
    """Return in which order runs of one machine were measured; runs whose clock was set back lose their times."""
    base, orders = sides[0], list[Note]()
    for side in (side for side in sides[1:] if base.like_hardware(side)):
        orders.append(Note(what=_order(base, side)))
        if orders[-1].what.code == "clock_set_back":
            for run in side.runs:  # the wall clock does not order them
                run.times = RunTimes(None, None, None)
    return orders


def _order(base: Side, side: Side) -> Reason:
    """Return in which order the runs of two sides on one machine were measured."""
    pair = {"base": base.label, "side": side.label}
    if not same_host([*base.runs, *side.runs]):
        return reason("other_host", **pair)
    a, b = ([RunLevel(0.0, begin_s=run.times.begin_s, end_s=run.times.end_s) for run in s.runs] for s in (base, side))
    if any(level.begin_s is None for level in (*a, *b)):
        return reason("runs_without_time", **pair)
    if (backwards := _clock_set_back([*base.runs, *side.runs])) is not None:
        return reason("clock_set_back", first=backwards[0].label, second=backwards[1].label)
    if overlapping(a, b):
        return reason("runs_overlap", **pair)
    pairs = pairs_in_turn(a, b)
    if not pairs:
        return reason("runs_apart", **pair)
    base_first = sum((first.begin_s or 0.0) < (second.begin_s or 0.0) for first, second in pairs)
    code = "runs_in_turn" if 0 < base_first < len(pairs) else "runs_in_one_order"
    return reason(code, pairs=len(pairs), runs=len(a) + len(b), **pair)


def _clock_set_back(runs: Sequence[Run]) -> tuple[Run, Run] | None:
    """Return two runs whose order by the wall clock is not that since the machine's boot, with no boot between them."""
    times = [(run.times.begin_s, run.times.raw_s, run) for run in runs]
    timed = [(begin_s, raw_s, run) for begin_s, raw_s, run in times if begin_s is not None and raw_s is not None]
    in_order = sorted(moment[:2] for moment in timed)
    if all(raw_s <= later_raw_s for (_, raw_s), (_, later_raw_s) in pairwise(in_order)):
        return None
    for begin_s, raw_s, first in timed:
        for later_s, later_raw_s, second in timed:
            if later_s - later_raw_s < begin_s < later_s and raw_s > later_raw_s:  # no boot between them
                return first, second
    return None
