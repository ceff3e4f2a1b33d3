from xml.etree import ElementTree

import msgspec
import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from profile_builder import MS, build_cell, build_failed, build_profile, build_result, six_cells

from kit.compare.comparison import compare
from kit.profile.launch import Threads
from kit.report import junit

HOSTILE = "\x00\x01\x1b[2J\ud800\ufffe\u202e]]>&<b a=\"'\r\n\té模"


def two(first, second, **fields):
    return compare([("a", build_profile(first)), ("b", build_profile(second, id="run-2", **fields))])


def read(comparison, allowed_pct=0.0):
    """As a consumer reads it: the one suite, and each case's name with its result."""
    (suite,) = JUnitXml.fromstring(junit.render(comparison, allowed_pct).encode())
    return suite, {(case.classname, case.name): case for case in suite}


def results(cases, label="b"):
    return {name.split("/")[1]: case.result for (profile, name), case in cases.items() if profile == label}


SLOWER = {"tensorflow": 4.4, "torch": 2.0, "jax": 1.5}


def test_slower_fails_with_its_numbers_and_the_rest_passes():
    suite, cases = read(two(six_cells()[:3], six_cells(medians_ms=SLOWER)[:3]))
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (6, 1, 0, 0)
    found = results(cases)
    assert (found["torch"], found["jax"]) == ([], [])
    (failure,) = found["tensorflow"]
    assert isinstance(failure, Failure)
    assert failure.type == "slower"
    assert failure.message.startswith("1.100× slower [1.097, 1.103]: ")
    assert "4.400 ms [" in failure.message and "against 4.000 ms [" in failure.message
    assert "10 launches a side, adjusted p " in failure.message
    assert all(not result for result in results(cases, "a").values())


def test_what_is_allowed_passes():
    comparison = two(six_cells()[:3], six_cells(medians_ms=SLOWER)[:3])
    assert read(comparison, 15)[0].failures == 0
    suite, cases = read(comparison, 5)
    assert suite.failures == 1
    assert results(cases)["tensorflow"][0].message.endswith("more than the 5 % allowed")
    assert {entry.name: entry.value for entry in suite.properties()}["allowed"] == "5 %"


def test_unresolved_is_skipped_with_the_launches_that_would_tell():
    first = [build_result(build_cell("torch"), [MS * (1 + 0.03 * (n % 3)) for n in range(10)])]
    second = [build_result(build_cell("torch"), [MS * (1.02 + 0.03 * (n % 3)) for n in range(10)])]
    comparison = two(first, second)
    wanted = comparison.rows[1].versus.launches_to_settle
    (skipped,) = results(read(comparison)[1])["torch"]
    assert isinstance(skipped, Skipped)
    assert skipped.message.startswith("unresolved [")
    assert skipped.message.endswith(f"about {wanted} launches a side would tell")


@pytest.mark.parametrize(
    ("other", "kind", "words"),
    [
        (build_failed(build_cell("jax"), "killed by signal 9"), Error, "failed in first_step: killed by signal 9"),
        (build_result(build_cell("jax"), [None, None]), Skipped, "no steady state in any of 2 launches"),
        (build_result(build_cell("jax"), [MS, MS], data="synthetic"), Skipped, "not compared: data synthetic against"),
        (build_result(build_cell("jax"), [MS]), Skipped, "unresolved: more launches are needed"),
        (build_result(build_cell("jax", "lstm"), [MS, MS]), Skipped, "only in b"),
    ],
)
def test_rows_without_a_verdict(other, kind, words):
    (result,) = results(read(two(six_cells()[:3], [*six_cells()[:2], other]))[1])["jax"]
    assert isinstance(result, kind)
    assert words in result.message


def test_the_suite_says_what_the_table_says_beside_it():
    comparison = two(six_cells(), six_cells())
    said = {entry.name: entry.value for entry in read(comparison)[0].properties()}
    assert (said["baseline"], said["band"]) == ("a", "1 %")
    assert [value for name, value in sorted(said.items()) if name.startswith("note.")] == comparison.notes


def test_a_cases_time_is_its_steady_step_in_seconds_without_an_exponent():
    quick = {"tensorflow": 0.004, "torch": 0.002, "jax": 0.002}
    comparison = two(six_cells(medians_ms=quick), six_cells(medians_ms=quick))
    times = [case.get("time") for case in ElementTree.fromstring(junit.render(comparison)).iter("testcase")]
    assert times[0] == "0.000004000"
    assert all(set(time) <= set("0123456789.") for time in times)


# Attributes that the schema of Jenkins allows (xunit-plugin, model/xsd/junit-10.xsd).
ALLOWED = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "skipped"},
    "testcase": {"name", "time", "classname"},
    "property": {"name", "value"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
}


def test_attributes_are_those_that_jenkins_knows():
    shown = two([*six_cells(), build_failed(build_cell("torch", "lstm"))], six_cells(medians_ms=SLOWER))
    for element in ElementTree.fromstring(junit.render(shown)).iter():
        assert set(element.attrib) <= ALLOWED.get(element.tag, set())


def test_one_profile_has_its_backends_as_cases():
    suite, cases = read(compare([("run", build_profile(six_cells()[:3]))]))
    assert suite.tests == 3
    assert all(not case.result for case in cases.values())


def test_an_empty_comparison_is_an_empty_suite():
    empty = compare([("run", build_profile([]))])
    suite, cases = read(empty, None)
    assert (suite.tests, cases) == (0, {})
    assert read(empty)[0].errors == 1, "a gate that compared nothing"


def test_no_name_breaks_the_xml_or_adds_to_it():
    cells = [build_result(build_cell(HOSTILE, HOSTILE), [MS, MS]), build_failed(build_cell("jax", HOSTILE), HOSTILE)]
    profiles = [(HOSTILE, build_profile(cells)), (f"{HOSTILE}2", build_profile(cells, id="run-2"))]
    rendered = junit.render(compare(profiles))
    assert rendered.isascii()
    tree = ElementTree.fromstring(rendered)
    assert {element.tag for element in tree.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped", "error", "system-out",
    }  # fmt: skip
    assert len(list(tree.iter("testcase"))) == 4
    for element in tree.iter():
        for text in (element.text or "", *element.attrib.values()):
            assert text.isprintable()


def test_tens_of_thousands_of_rows_end():
    # Its library counts anew with every case that is added singly: that would take an hour.
    few = two(six_cells()[:1], six_cells()[:1])
    many = msgspec.structs.replace(few, rows=few.rows * 15_000)
    assert junit.render(many).count("<testcase") == 30_000


def test_a_cell_that_the_candidate_lacks_does_not_pass():
    cases = read(two(six_cells()[:3], six_cells()[:2]))[1]
    (result,) = results(cases, label="a")["jax"]
    assert isinstance(result, Skipped)
    assert result.message == "only in a"


def test_a_forced_row_says_so_whatever_its_verdict():
    """CI servers show the message, not the notes."""
    threads = Threads(requested=1, reported=1, reported_reason=None, cpus=[0])
    for medians in ([MS], [MS, 1.1 * MS, 0.9 * MS]):
        first, second = (
            build_profile([build_result(build_cell("torch"), medians, **fields)], id=str(fields))
            for fields in ({}, {"threads": threads})
        )
        (result,) = results(read(compare([("a", first), ("b", second)], force=True))[1])["torch"]
        assert result.message.count("FORCED: threads 1 against 2") == 1


def test_profiles_that_cannot_be_compared_are_one_error():
    (suite,) = JUnitXml.fromstring(junit.render_refusal("no cell in common \x1b[2J").encode())
    (case,) = suite
    (result,) = case.result
    assert isinstance(result, Error)
    assert result.message.startswith("no cell in common")
    assert "\x1b" not in result.message
    assert suite.errors == 1
