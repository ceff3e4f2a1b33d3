"""Profiles whose numbers and lists are valid for the schema and odd otherwise: shown, or refused in one line."""

import copy
import io

import msgspec
import profile_builder as b
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kit.audit.audit import findings_of as audit
from kit.compare.compare import compare, compare_within
from kit.compare.notes import read_run
from kit.errors import KitError
from kit.profile.schema import Profile
from kit.report.comparison_report import comparison_report, why_report
from kit.report.formats import FORMATS, write
from kit.report.machine_report import machine_lines
from kit.report.page import page
from kit.report.profile_report import profile_report

PLAIN = msgspec.to_builtins(
    b.profile(
        b.group("g", b.member("torch", 2.0, launch={"energy": b.energy(3.0), "sensors": b.sampled(x=(1.0, 2.0, "W"))})),
        b.group("h", b.member("torch", 1.0, task="infer"), b.member("jax", 2.0, task="infer")),
        rounds=3,
        cycles=6,
    )
)


def leaves(value, path=()):
    """The path of every number, and of every list."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        yield path
        for index, inner in enumerate(value):
            yield from leaves(inner, (*path, index))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


PATHS = list(leaves(PLAIN))
ODD = st.sampled_from([0, -1, 1, 2**63 - 1, -(2**63), 1e308, -1e-300, 0.0])


def changed(plain, path, odd, cut):
    holder = plain
    for name in path[:-1]:
        holder = holder[name]
    old = holder[path[-1]]
    if isinstance(old, list):
        holder[path[-1]] = old[:cut]
    else:
        holder[path[-1]] = odd if isinstance(old, float) or isinstance(odd, int) else 0


OF_RECORDS = ("prometheus", "jsonl")


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PATHS), ODD, st.integers(0, 3)), min_size=1, max_size=4))
@example([(("cells", 0, "launches", 1, "energy", 0, "window_ns"), 0, 0)])
@example([(("cells",), 0, 0)])
def test_odd_numbers_and_short_lists_are_shown_or_refused(changes):
    plain = copy.deepcopy(PLAIN)
    for path, odd, cut in changes:
        try:
            changed(plain, path, odd, cut)
        except IndexError:  # an earlier change has cut it off
            continue
    try:
        built = msgspec.convert(plain, Profile)
    except msgspec.ValidationError:  # refused when it is read
        return
    usual = msgspec.structs.replace(msgspec.convert(PLAIN, Profile), id="usual")
    # A profile without cells has no record.
    assert all(write(profile_report(built), name, io.StringIO()) or name in OF_RECORDS for name in FORMATS)
    try:
        comparisons = [
            compare_within("p", built, findings=audit(read_run("", built))),
            compare([read_run("a", built), read_run("b", usual)], force=True),
        ]
    except KitError as error:
        assert "\n" not in str(error)
        return
    assert "</html>" in page([("p", built)], comparisons[0], (), {})
    for comparison in comparisons:
        reports = [comparison_report(comparison, {}, wide=wide, allowed_pct=5.0) for wide in (True, False)]
        written = ((name, write(report, name, io.StringIO())) for report in reports for name in FORMATS)
        assert all(text or name in OF_RECORDS for name, text in written)
        assert write(why_report(comparison), "text", io.StringIO())


def test_a_counter_that_fell_during_a_run_has_no_growth():
    before, after = (b.State(taken=b.CREATED, facts={"steal_ns": value, "numa_misses": 1}) for value in (10**9, 5))
    assert not [line for line in machine_lines(before, after).values() if "-" in line]
