"""A comparison as JUnit XML, for a CI server: one test case a row, failed where the row is slower than allowed.

slower beyond what is allowed   failure, with the numbers
failed cell                     error
nothing compared by a gate      error, in a test case of its own
no verdict, unresolved          skipped, with why, and how many launches would tell; so a cell only one profile has
all others, baselines too       passed

A test case's time is its steady step, in seconds: CI servers draw it from build to build.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from kit.compare.counted import percent
from kit.compare.gate import work_of
from kit.compare.not_compared import NOTHING_PASSED, is_empty, rows_alone
from kit.compare.regression import slower_rows
from kit.compare.rows import Comparison, Row, Versus
from kit.report.footnotes import Footnotes
from kit.report.plain import one_line, sentence
from kit.report.quantity import duration_estimate
from kit.report.verdict_words import verdict_words
from kit.stats.verdict import LAUNCHES_TO_PLAN, LAUNCHES_TO_SETTLE_MAX

SUITE = "kit compare"
NANOSECONDS_PER_S = 1e9


def render(comparison: Comparison, allowed_pct: float | None = None) -> str:
    """One suite; what has to be said beside the table is in its properties.

    Args:
        comparison: any.
        allowed_pct: as for `kit.compare.regression.slower_rows`; without it every row with the verdict "slower" fails.
    """
    suite = TestSuite(SUITE)
    for name, value in _properties(comparison, allowed_pct).items():
        suite.add_property(name, sentence(value))
    allowed = allowed_pct or 0.0
    failing = {id(row) for row in slower_rows(comparison, allowed)}
    alone = rows_alone(comparison)
    baselines = {_work(comparison, row): row for row in comparison.rows if row.is_baseline}
    suite.add_testcases(
        [
            _case(
                row,
                baselines.get(_work(comparison, row)),
                fails=id(row) in failing,
                alone=id(row) in alone,
                allowed_pct=allowed,
            )
            for row in comparison.rows
        ]
    )
    if allowed_pct is not None and is_empty(comparison):
        suite.add_testcase(_refusal(NOTHING_PASSED))
    return _written(suite)


def render_refusal(reason: str) -> str:
    """Of profiles that cannot be compared: one test case, in error, so that a CI server shows why."""
    suite = TestSuite(SUITE)
    suite.add_testcase(_refusal(reason))
    return _written(suite)


def _refusal(reason: str) -> TestCase:
    case = TestCase("comparable", SUITE)
    case.result = Error(one_line(reason), "not comparable")
    return case


def _written(suite: TestSuite) -> str:
    whole: Any = JUnitXml(SUITE)
    # Not its update_statistics(): the schema of Jenkins (xunit-plugin, junit-10.xsd) knows no `skipped` here.
    whole.tests, whole.failures, whole.errors, whole.time = suite.tests, suite.failures, suite.errors, suite.time
    whole.append(suite)
    # ASCII, with references for the rest: right in every encoding that an output may be given.
    return str(whole.tostring().decode().encode("ascii", "xmlcharrefreplace").decode()) + "\n"


def _properties(comparison: Comparison, allowed_pct: float | None) -> Mapping[str, str]:
    said = {
        "baseline": comparison.baseline or "none",
        "band": percent(100 * comparison.band),
    }
    if allowed_pct is not None:
        said["allowed"] = f"{allowed_pct:g} %"
    said |= {f"profile.{number}": line for number, line in enumerate(comparison.headline, 1)}
    return said | {f"note.{number:02}": note for number, note in enumerate(comparison.notes, 1)}


def _work(comparison: Comparison, row: Row) -> object:
    """What a row shares with its baseline."""
    return row.cell.key if comparison.kind == "profiles" else work_of(row.cell)


class _Seconds(float):
    """Written with decimals: the schemas know no exponents."""

    def __str__(self) -> str:
        return f"{self:.9f}"


def _case(row: Row, baseline: Row | None, *, fails: bool, alone: bool, allowed_pct: float) -> TestCase:
    case = TestCase(one_line(row.cell.key), one_line(row.profile))
    result = _result(row, baseline, fails=fails, alone=alone, allowed_pct=allowed_pct)
    if result is not None:
        case.result = result
    if row.summary.step_ns is not None:
        case.time = _Seconds(row.summary.step_ns.value / NANOSECONDS_PER_S)
    case.system_out = one_line(_numbers(row, baseline))
    return case


def _result(
    row: Row, baseline: Row | None, *, fails: bool, alone: bool, allowed_pct: float
) -> Error | Failure | Skipped | None:
    """Null: passed."""
    if row.problem is not None:
        return Error(one_line(row.problem), "failed") if row.status == "failed" else Skipped(one_line(row.problem))
    if alone:
        return Skipped(one_line(f"only in {row.profile}"))
    if row.versus is None:
        return None if row.is_baseline else Skipped(one_line(row.no_verdict or "no verdict"))
    if fails:
        beyond = f", more than the {allowed_pct:g} % allowed" if allowed_pct else ""
        return Failure(one_line(f"{_numbers(row, baseline)}{beyond}"), "slower")
    if row.versus.verdict == "unresolved":
        shown = _verdict(row).partition(" (")[0].partition(" FORCED")[0]
        forced = "" if row.forced is None else f" FORCED: {row.forced}"
        return Skipped(one_line(f"{shown}: {_wanted(row.versus)}{forced}"))
    return None


def _numbers(row: Row, baseline: Row | None) -> str:
    """``1.11× slower [1.03, 1.19]: 1.058 ms [0.989, 1.133] against 956.9 µs [913.3, 1002.6], 8 launches a side …``."""
    own = row.summary.step_ns
    if own is None or row.is_baseline:
        return f"{_verdict(row)}: {'no step time' if own is None else duration_estimate(own)}"
    theirs = None if baseline is None else baseline.summary.step_ns
    against = "" if theirs is None else f" against {duration_estimate(theirs)}"
    shown = f"{_verdict(row)}: {duration_estimate(own)}{against}"
    if row.versus is None or row.versus.p_adjusted is None:
        return shown
    of = "common rounds" if row.versus.paired else "launches a side"
    return f"{shown}, {row.versus.launches} {of}, adjusted p {row.versus.p_adjusted:.2g}"


def _verdict(row: Row) -> str:
    """The verdict without a footnote's mark: its text is beside it."""
    if row.problem is not None or (row.versus is None and not row.is_baseline):
        return "no verdict"
    if row.versus is not None and row.versus.time_ratio is None:
        return row.versus.verdict + ("" if row.forced is None else f" FORCED: {row.forced}")
    return verdict_words(row, Footnotes())


def _wanted(versus: Versus) -> str:
    if versus.launches_to_settle is not None:
        return f"about {versus.launches_to_settle} launches a side would tell"
    if versus.launches < LAUNCHES_TO_PLAN:
        return "more launches are needed"
    return f"not even {LAUNCHES_TO_SETTLE_MAX} launches a side would tell"
