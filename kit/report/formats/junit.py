"""JUnit XML, for a CI server: its cases, and the notes in its properties."""

from __future__ import annotations

from typing import IO
from xml.etree import ElementTree as ET

from kit.report.report_table import Report
from kit.report.values_in_words import one_line

ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def write(report: Report, _stream: IO[str]) -> str:
    """Return one suite, in ASCII with references for the rest: right in every encoding that an output may be given.

    The schema of Jenkins (xunit-plugin, junit-10.xsd) knows no `skipped` on the outermost element.
    """
    outcomes = [case.outcome for case in report.cases]
    counts = {"failures": str(outcomes.count("failed")), "errors": str(outcomes.count("error"))}
    seconds = {"time": f"{round(sum(case.time_s or 0 for case in report.cases), 3):g}"}
    name, tests = {"name": report.name}, {"tests": str(len(outcomes))}
    whole = ET.Element("testsuites", name | tests | counts | seconds)
    skipped = {"skipped": str(outcomes.count("skipped"))}
    suite = ET.SubElement(whole, "testsuite", name | tests | dict(reversed(counts.items())) | skipped | seconds)
    notes = {f"note.{index:02}": line for index, line in enumerate(report.below(), 1)}
    if listed := {**report.properties, **notes}:
        properties = ET.SubElement(suite, "properties")
        for key, value in listed.items():
            ET.SubElement(properties, "property", {"name": key, "value": one_line(value)})
    for case in report.cases:
        # Schemas of CI servers know no exponents.
        time = {} if case.time_s is None else {"time": f"{case.time_s:.9f}"}
        names = {"name": one_line(case.name), "classname": one_line(case.group)}
        written = ET.SubElement(suite, "testcase", names | time)
        if case.output:
            ET.SubElement(written, "system-out").text = one_line(case.output)
        if case.outcome != "passed":
            kind = {"type": case.kind} if case.kind else {}
            ET.SubElement(written, ELEMENTS[case.outcome], {"message": one_line(case.words), **kind})
    encoded: bytes = ET.tostring(whole, encoding="us-ascii", xml_declaration=False)
    return encoded.decode().replace(" />", "/>") + "\n"
