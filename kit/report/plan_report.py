"""What a run is going to do, before it does: a line as it begins, its cells for `--dry-run`, the list of suites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from kit.compare.naming import label_members, titles
from kit.profile.cell import Cell
from kit.profile.schema import StepPlan
from kit.profile.unfinished import RunPlan
from kit.report.report_table import Report, plain_table
from kit.report.values_in_words import about, counted, one_line

if TYPE_CHECKING:
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


def _takes(left: TimeNeeded, cells: Sequence[Cell], steps: StepPlan) -> str:
    """Return ``about 5 minutes plus 9 fits of 2 epochs per round``: nobody knows the time of whole fits before."""
    takes = about(left.seconds, is_least=left.is_least)
    fits = sum(not cell.in_blocks for cell in cells) if steps.fit_steps is None else 0
    each = f"{counted(fits, 'fit')} of {counted(steps.epochs, 'epoch')} per round"
    return f"{takes} plus {each}" if fits else takes


def plan_report(plan: RunPlan, left: TimeNeeded) -> Report:
    """Return the groups with their members as tables name them, the baseline marked, under the summary."""
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
        "groups": [{"key": group.key, "baseline": group.baseline, "cells": group.cells} for group in plan.groups],
    }
    headline = one_line(f"{suite.name}: {summary(plan, left)}")
    return Report("kit run --dry-run", [headline], [plain_table("", ("", ""), rows)], document=document)


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
