"""JUnit XML, for a CI server: its cases, and the notes in its properties."""

from __future__ import annotations

from typing import IO, Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from kit.report.plain import one_line
from kit.report.table import Report

OUTCOMES = {"failed": Failure, "error": Error, "skipped": Skipped}


class _Seconds(float):
    """Written with decimals: the schemas of CI servers know no exponents."""

    def __str__(self) -> str:
        return f"{self:.9f}"


def write(report: Report, _stream: IO[str]) -> str:
    """Return one suite."""
    suite = TestSuite(report.name)
    notes = {f"note.{place:02}": line for place, line in enumerate(report.notes, 1)}
    for name, value in {**report.properties, **notes}.items():
        suite.add_property(name, one_line(value))
    for case in report.cases:
        written = TestCase(one_line(case.name), one_line(case.group))
        if case.time_s is not None:
            written.time = _Seconds(case.time_s)
        if case.output:
            written.system_out = one_line(case.output)
        if case.outcome != "passed":
            kind = [case.kind] if case.kind else []
            written.result = [OUTCOMES[case.outcome](one_line(case.words), *kind)]
        suite.add_testcase(written)
    whole: Any = JUnitXml(report.name)
    # Not its update_statistics(): the schema of Jenkins (xunit-plugin, junit-10.xsd) knows no `skipped` here.
    whole.tests, whole.failures, whole.errors, whole.time = suite.tests, suite.failures, suite.errors, suite.time
    whole.append(suite)
    # ASCII, with references for the rest: right in every encoding that an output may be given.
    return str(whole.tostring().decode().encode("ascii", "xmlcharrefreplace").decode()) + "\n"
