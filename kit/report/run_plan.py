"""What a run is going to do, before it does: a line as it begins, its cells for `--dry-run`, the list of suites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from kit.compare.naming import label_members, titles
from kit.profile.cell import Cell
from kit.profile.launch import StepPlan
from kit.profile.unfinished import RunPlan
from kit.report.plain import one_line
from kit.report.quantity import about, counted
from kit.report.table import Case, Report, plain_table

TERMS = "terms: docs/words.md"


class PlannedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group of the JSON of `--dry-run`."""

    key: str
    baseline: str  # cell key
    cells: list[str]


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of `--dry-run`."""

    suite: str
    rounds: int  # with `precision_pct` the first look
    precision_pct: float | None
    cycles: int
    estimated_s: float  # where `estimate_is_least`, at least
    estimate_is_least: bool
    groups: list[PlannedGroup]


def summary(plan: RunPlan, left_s: float, *, is_least: bool) -> str:
    """Return ``12 cells in 4 groups, 4 rounds of 6 cycles, about 5 minutes (terms: docs/words.md)``."""
    suite = plan.suite
    cells = f"{counted(len(plan.cells), 'cell')} in {counted(len(plan.groups), 'group')}"
    rounds = f"{counted(suite.rounds, 'round')} of {counted(suite.plan.cycles, 'cycle')}"
    more = "" if suite.precision_pct is None else f" and more until differences are known to {suite.precision_pct:g} %"
    return f"{cells}, {rounds}{more}, {about(left_s, is_least=is_least)}{fits_words(plan.cells, suite.plan)} ({TERMS})"


def fits_words(cells: Sequence[Cell], steps: StepPlan) -> str:
    """Return `` and the time of 9 fits of 2 epochs``, which nobody knows before; nothing without whole fits."""
    fits = sum(cell.task == "fit" for cell in cells) if steps.fit_steps is None else 0
    epochs = f" of {counted(steps.epochs, 'epoch')}, in each round that repeats them"
    return f" and the time of {counted(fits, 'fit')}{epochs}" if fits else ""


def plan_report(plan: RunPlan, left_s: float, *, is_least: bool) -> Report:
    """Return the groups with their members as tables name them, the baseline marked, under the summary."""
    by_key = {cell.key: cell for cell in plan.cells}
    groups = [[by_key[key] for key in group.cells] for group in plan.groups]
    rows = []
    for group, title, cells in zip(plan.groups, titles(groups), groups, strict=True):
        names = label_members({cell.key: cell for cell in cells}, plan.suite.compare)
        members = [f"{names[key]}{' (baseline)' if key == group.baseline else ''}" for key in group.cells]
        rows.append([" · ".join(title), ", ".join(members)])
    document = PlannedRun(
        suite=plan.suite.name,
        rounds=plan.suite.rounds,
        precision_pct=plan.suite.precision_pct,
        cycles=plan.suite.plan.cycles,
        estimated_s=round(left_s),
        estimate_is_least=is_least,
        groups=[PlannedGroup(key=group.key, baseline=group.baseline, cells=group.cells) for group in plan.groups],
    )
    headline = one_line(f"{plan.suite.name}: {summary(plan, left_s, is_least=is_least)}")
    return Report("kit run --dry-run", [headline], [plain_table("", ("", ""), rows)], document=document)


class ListedSuite(NamedTuple):
    """A built-in suite and what it takes."""

    name: str
    title: str
    cells: Sequence[Cell]
    groups: int
    compared: Sequence[str]
    rounds: int
    steps: StepPlan
    estimated_s: float
    estimate_is_least: bool


def suites_report(suites: Sequence[ListedSuite], document: object) -> Report:
    """Return what `kit suites` prints."""
    rows, records = [], []
    for suite in suites:
        takes = f"{about(suite.estimated_s, is_least=suite.estimate_is_least)}{fits_words(suite.cells, suite.steps)}"
        size = f"{counted(len(suite.cells), 'cell')} in {counted(suite.groups, 'group')}"
        words = (
            f"{suite.title}: {size}, comparing {', '.join(suite.compared)}, {counted(suite.rounds, 'round')}, {takes}"
        )
        rows.append([suite.name, words])
        records.append(
            {"name": suite.name, "title": suite.title, "cells": len(suite.cells), "groups": suite.groups}
            | {"compares": " ".join(suite.compared), "rounds": suite.rounds, "estimated_s": round(suite.estimated_s)}
        )
    cases = [Case(name, "suites", output=words) for name, words in rows]
    return Report("kit suites", [], [plain_table("", ("", ""), rows)], records=records, cases=cases, document=document)
