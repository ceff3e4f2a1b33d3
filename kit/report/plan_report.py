"""What a run is going to do, before it does: a line as it begins, its cells for `--dry-run`, the list of suites."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kit.compare.naming import label_members, titles
from kit.profile.cell import Cell
from kit.profile.schema import StepPlan
from kit.profile.unfinished import RunPlan
from kit.report.report_table import Report, plain_table
from kit.report.values_in_words import about, counted, one_line
from kit.stats.estimate import EXPONENT_MAX

if TYPE_CHECKING:
    from pathlib import Path

    from kit.suites.suite import Suite


class TimeNeeded(NamedTuple):
    """How long a run takes; `is_least` where fits, a user's own steps or a precision asked for leave that open."""

    seconds: float
    is_least: bool


def summary(plan: RunPlan, left: TimeNeeded, budget_s: float | None = None) -> str:
    """Return ``12 cells in 4 groups, 4 rounds of 6 cycles, about 5 minutes``, and what a budget bounds."""
    suite = plan.suite
    rounds = f"{counted(suite.rounds, 'round')} of {counted(suite.plan.cycles, 'cycle')}"
    more = "" if suite.precision_pct is None else f" and more until differences are known to {suite.precision_pct:g} %"
    cells = f"{counted(len(plan.cells), 'cell')} in {counted(len(plan.groups), 'group')}"
    bound = "" if budget_s is None else f"; after {budget_s:g} s no round begins, and the first ends whatever it takes"
    return f"{cells}, {rounds}{more}, {_takes(left, plan.cells, suite.plan)}{bound}"


class Ahead(NamedTuple):
    """What is foreseen of a run."""

    cycles: dict[str, int]  # key of a group -> in each of its rounds to come
    rounds: int  # in all
    left_s: float
    half_widths: list[float]  # of the log-ratio of each pair in the end; empty: too few rounds for an interval


def foresight(ahead: Ahead) -> str:
    """Return ``plan: 14 rounds, of 4 to 7 cycles from now on, leave ±1.2 % (±0.8 to ±3.1 %); about 6 minutes left``."""
    counts = sorted({*ahead.cycles.values()})
    cycles = counted(counts[0], "cycle") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} cycles"
    rounds = f"{counted(ahead.rounds, 'round')}, of {cycles} from now on"
    will = f"leave {precision_words(ahead.half_widths)}" if ahead.half_widths else "are too few for an interval"
    return f"plan: {rounds}, {will}; {about(ahead.left_s)} left"


def precision_words(half_widths: Sequence[float]) -> str:
    """Return ``±1.2 % (±0.8 to ±3.1 %)``: the median of log-ratios' half-widths, and the least and the largest."""
    widths = [f"±{width_pct:.2g} %" for width_pct in sorted(widths_pct(half_widths))]
    middle = widths[len(widths) // 2]
    return middle if len(set(widths)) == 1 else f"{middle} ({widths[0]} to {widths[-1]})"


def widths_pct(half_widths: Sequence[float]) -> list[float]:
    """Return half-widths of log-ratios in percent of the ratio."""
    return [100 * math.expm1(min(width, EXPONENT_MAX)) for width in half_widths]


def _takes(left: TimeNeeded, cells: Sequence[Cell], steps: StepPlan) -> str:
    """Return ``about 5 minutes plus 9 fits of 2 epochs per round``: nobody knows the time of whole fits before."""
    takes = about(left.seconds, is_least=left.is_least)
    fits = sum(not cell.in_blocks for cell in cells) if steps.fit_steps is None else 0
    each = f"{counted(fits, 'fit')} of {counted(steps.epochs, 'epoch')} per round"
    return f"{takes} plus {each}" if fits else takes


def plan_report(
    plan: RunPlan, left: TimeNeeded, earlier: tuple[Path, Ahead] | None = None, budget_s: float | None = None
) -> Report:
    """Return the groups with their members as tables name them, the baseline marked, under the summary.

    `earlier`: a profile, and what it foresees; null: none was found.
    """
    suite, by_key = plan.suite, {cell.key: cell for cell in plan.cells}
    members_of = [[by_key[key] for key in group.cells] for group in plan.groups]
    rows = []
    for group, title, cells in zip(plan.groups, titles(members_of), members_of, strict=True):
        names = label_members({cell.key: cell for cell in cells}, suite.compare)
        members = [f"{names[key]}{' (baseline)' if key == group.baseline else ''}" for key in group.cells]
        rows.append([" · ".join(title), ", ".join(members)])
    document = {
        "suite": suite.name,
        "rounds": suite.rounds,  # with `precision_pct` the first look
        "precision_pct": suite.precision_pct,
        "cycles": suite.plan.cycles,
        "estimated_s": round(left.seconds),
        "estimate_is_least": left.is_least,
        "foreseen_by": None if earlier is None else str(earlier[0]),
        "foreseen_half_widths_pct": [] if earlier is None else widths_pct(earlier[1].half_widths),
        "groups": [{"key": group.key, "baseline": group.baseline, "cells": group.cells} for group in plan.groups],
    }
    headlines = [one_line(f"{suite.name}: {summary(plan, left, budget_s)}")]
    if earlier is not None:
        path, ahead = earlier
        would = f"leave {precision_words(ahead.half_widths)}" if ahead.half_widths else "be too few for an interval"
        words = f"{counted(ahead.rounds, 'round')} would {would}"
        headlines.append(one_line(f"precision: {words}, by the rounds of {path}"))
    return Report("kit run --dry-run", headlines, [plain_table("", ("", ""), rows)], document=document)


def suites_report(suites: Sequence[tuple[Suite, Sequence[Cell], int, TimeNeeded]]) -> Report:
    """Return what `kit suites` prints: of each suite its cells, how many groups they make, and how long it takes."""
    rows, records = [], []
    for suite, cells, groups, left in suites:
        rounds = suite.measure.rounds
        takes = f"{counted(rounds, 'round')}, {_takes(left, cells, suite.measure.plan())}"
        size = f"{counted(len(cells), 'cell')} in {counted(groups, 'group')}, comparing {', '.join(suite.compared)}"
        rows.append([suite.name, f"{suite.title}: {size}, {takes}"])
        records.append(
            {"name": suite.name, "title": suite.title, "cells": len(cells), "groups": groups}
            | {"compares": " ".join(suite.compared), "rounds": rounds, "estimated_s": round(left.seconds)}
        )
    document = [suite for suite, *_ in suites]
    return Report("kit suites", [], [plain_table("", ("", ""), rows)], records=records, document=document)
