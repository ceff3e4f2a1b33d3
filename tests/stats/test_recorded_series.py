"""The steady-state rule against launches that an eye has judged before it; the counts stand in docs/steady-state.md."""

from collections import Counter

import numpy as np
import pytest
from recorded_series import FOLDER, recorded_series
from strict_recipe import strict_steady_state

from kit.stats.steady_state import SEGMENT_STEPS_MIN, find_steady_state

SERIES = recorded_series()
FOUND = {series.name: find_steady_state(series.step_ns) for series in SERIES}


def agreements(series_list, found=FOUND):
    """(of those with a steady state, of those without): how many the rule calls as the eye does, and how many."""
    counts = Counter()
    for series in series_list:
        found_steady = found[series.name].verdict != "no_steady_state"
        counts[series.has_steady_state] += 1
        counts[series.has_steady_state, "agree"] += found_steady == series.has_steady_state
    return (counts[True, "agree"], counts[True]), (counts[False, "agree"], counts[False])


def test_there_are_many_series_and_every_one_has_its_label():
    archives = {path.stem: set(np.load(path).files) for path in FOLDER.glob("*.npz")}
    assert {f"{archive}.{name}" for archive, names in archives.items() for name in names} == set(FOUND)
    assert len(SERIES) >= 36
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000


def test_labels_say_where_a_steady_part_begins_and_only_there():
    for series in SERIES:
        assert (series.start is not None) == series.has_steady_state, series.name
        assert series.start is None or 1 <= series.start[0] <= series.start[1] < series.step_ns.size, series.name


@pytest.mark.parametrize(
    ("aside", "steady", "none"),
    [
        pytest.param(False, (7, 9), (17, 19), id="examined"),
        pytest.param(True, (7, 9), (11, 13), id="aside"),
    ],
)
def test_the_rule_agrees_with_a_sure_eye_as_often_as_is_stated(aside, steady, none):
    sure = [series for series in SERIES if series.sure and series.aside == aside]
    assert agreements(sure) == (steady, none)


def test_where_both_see_a_steady_state_its_name_is_the_same_and_its_start_never_too_early():
    both = [series for series in SERIES if series.sure and series.has_steady_state and FOUND[series.name].start]
    assert all(series.verdict == FOUND[series.name].verdict for series in both)
    # A shortest level, and what the median filter blurs.
    assert all(FOUND[series.name].start >= series.start[0] - SEGMENT_STEPS_MIN - 1 for series in both)


def test_the_strict_recipe_leaves_fewer_of_the_steady_launches_a_number():
    sure = [series for series in SERIES if series.sure]
    strict = {series.name: strict_steady_state(series.step_ns) for series in SERIES}
    assert agreements(sure, strict) == ((4, 18), (25, 32))


def test_the_steady_parts_keep_their_level():
    # Not by eye: the medians of a steady part's two halves, which a wandering launch would hold apart.
    apart = [
        abs(np.log(np.median(first) / np.median(second)))
        for series in SERIES
        if (start := FOUND[series.name].start) is not None
        for first, second in [np.array_split(series.step_ns[start:], 2)]
    ]
    assert np.median(apart) < 0.02
    assert np.quantile(apart, 0.9) < 0.06
