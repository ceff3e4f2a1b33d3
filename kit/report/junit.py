"""A comparison as JUnit XML, for a CI server: one test case a row, failed where the row is slower than allowed.

slower by more than allowed       failure
failed cell, nothing comparable   error
unresolved, not compared          skipped, with what is known
all others, baselines too         passed
"""

from __future__ import annotations

from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from kit.compare.regression import limited_rows
from kit.compare.rows import Comparison, Row
from kit.report.answer import answer
from kit.report.plain import one_line
from kit.report.quantity import duration
from kit.report.words import RenderOptions, mismatch_lines, note_lines
from kit.stats.runs import SlowerBy

SUITE = "kit compare"


class _Seconds(float):
    """Written with decimals: the schemas of CI servers know no exponents."""

    def __str__(self) -> str:
        return f"{self:.9f}"


def render(comparison: Comparison, options: RenderOptions) -> str:
    """Return one suite, with the rule and the notes in its properties; without a limit a verdict "slower" fails."""
    allowed_pct = options.allowed_pct
    suite = TestSuite(SUITE)
    suite.add_property("rule", one_line(comparison.rule))
    if allowed_pct is not None:
        suite.add_property("allowed", f"{allowed_pct:g} %")
    for place, line in enumerate([*note_lines(comparison), *mismatch_lines(comparison)], 1):
        suite.add_property(f"note.{place:02}", one_line(line))
    limited = () if allowed_pct is None else limited_rows(comparison, allowed_pct)
    shown = {id(row): answer_to_limit for _, row, answer_to_limit in limited}
    for group in comparison.groups:
        for row in group.rows:
            case = TestCase(one_line(f"{row.name} {row.cell.key}"), one_line(" · ".join(group.title)))
            numbers, by_latency = row.numbers, comparison.by == "latency" and row.cell.task != "fit"
            time_ns = numbers.latency_ns if by_latency else numbers.step_ns
            if time_ns is not None:
                case.time = _Seconds(time_ns / 1e9)
                said = "" if row.is_baseline else f", {answer(row)}"
                case.system_out = one_line(f"{duration(time_ns, 4)} {'latency' if by_latency else 'a step'}{said}")
            alone = comparison.kind == "runs" and all(one is row for one in group.rows if one.cell == row.cell)
            case.result = _result(row, shown.get(id(row)), alone=alone)
            suite.add_testcase(case)
    return _written(suite)


def render_refusal(why: str) -> str:
    """Return one test case in error: a CI server that is given an empty file reports that, and not why."""
    suite, case = TestSuite(SUITE), TestCase("comparable", SUITE)
    case.result = Error(one_line(why), "not comparable")
    suite.add_testcase(case)
    return _written(suite)


def _result(row: Row, limited: SlowerBy | None, *, alone: bool) -> list[FinalResult]:
    """Return nothing where the row passed; `limited`: what is shown of it; `alone`: its cell has no other row."""
    said = one_line(answer(row))
    if row.numbers.step_ns is None:
        return [Error(said, "failed")]
    if row.is_baseline and alone:
        return [Skipped("nothing is compared with it")]
    if row.is_baseline:
        return []
    if row.versus is None:
        return [Skipped(said)]
    shown = limited or row.versus.verdict
    if shown == "slower":
        return [Failure(said, "slower")]
    unresolved = said if said.startswith("unresolved") else f"unresolved: {said}"
    return [Skipped(unresolved)] if shown == "unresolved" else []


def _written(suite: TestSuite) -> str:
    whole: Any = JUnitXml(SUITE)
    # Not its update_statistics(): the schema of Jenkins (xunit-plugin, junit-10.xsd) knows no `skipped` here.
    whole.tests, whole.failures, whole.errors, whole.time = suite.tests, suite.failures, suite.errors, suite.time
    whole.append(suite)
    # ASCII, with references for the rest: right in every encoding that an output may be given.
    return str(whole.tostring().decode().encode("ascii", "xmlcharrefreplace").decode()) + "\n"
