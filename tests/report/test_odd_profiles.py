"""Profiles whose numbers and lists are valid for the schema and odd otherwise: shown, or refused in one line."""

import copy
import io

import msgspec
import profile_builder as b
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.audit.finding import audit
from kit.compare.across import compare_runs
from kit.compare.runs import reduce_run
from kit.compare.within import compare_within
from kit.errors import KitError
from kit.profile.schema import Profile
from kit.report import csv, junit, markdown, table, why
from kit.report.plain import ascii_json
from kit.report.show import render_profile
from kit.report.words import RenderOptions

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
        for name, one in value.items():
            yield from leaves(one, (*path, name))
    elif isinstance(value, list):
        yield path
        for place, one in enumerate(value):
            yield from leaves(one, (*path, place))
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


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PATHS), ODD, st.integers(0, 3)), min_size=1, max_size=4))
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
    assert render_profile(built, io.StringIO(), parity_tolerance=1e-5)
    try:
        comparisons = [
            compare_within("p", built, findings=audit(built), parity_tolerance=1e-5),
            compare_runs([reduce_run("a", built), reduce_run("b", usual)], force=True, parity_tolerance=1e-5),
        ]
    except KitError as error:
        assert "\n" not in str(error)
        return
    for one in comparisons:
        for wide in (True, False):
            assert table.render(one, RenderOptions(stream=io.StringIO(), wide=wide))
        assert all(format.render(one, RenderOptions(allowed_pct=5.0)) for format in (csv, junit, markdown, why))
        assert ascii_json(one)
