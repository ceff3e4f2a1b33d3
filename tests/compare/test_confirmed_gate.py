"""A gate that confirms: which rows a second run is measured for, and what both runs come to."""

import itertools

import pytest

from kit.compare.fail_if_slower import Limit

SHOWN = ("slower", "not_slower", "unresolved")


def limit(more_rounds=None, **rows):
    """What a run shows of rows, by their names."""
    known = Limit([], [], [], {}, {}, {})
    for name, shown in rows.items():
        getattr(known, shown).append(name)
    known.more_rounds.update(more_rounds or {})
    return known


def test_a_second_run_is_for_rows_that_it_may_decide_otherwise():
    first = limit({"near": 8, "far": 9}, slow="slower", fast="not_slower", near="unresolved", far="unresolved")
    # Nothing says how many rounds would decide on the row of a cell that failed, or of one beside a neighbor.
    first.unresolved.append("failed")
    assert first.open_rows(8) == ["slow", "near"]
    assert limit(fast="not_slower").open_rows(8) == []


@pytest.mark.parametrize(("before", "after"), itertools.product(("slower", "unresolved"), SHOWN))
def test_a_row_is_slower_in_both_runs_or_not_slower_in_one_or_not_resolved(before, after):
    first, second = (
        limit({"row": 3}, row=before, fast="not_slower", other="unresolved"),
        limit(row=after, fast="slower"),
    )
    both = first.confirmed_by(second, ["row"])
    expected = {("slower", "slower"): "slower"}.get(
        (before, after), "not_slower" if after == "not_slower" else "unresolved"
    )
    assert "row" in getattr(both, expected)
    assert sum("row" in getattr(both, shown) for shown in SHOWN) == 1
    assert both.slower_in == {"row": (before == "slower") + (after == "slower")}
    # Rows that the first run left no question of keep their answer.
    assert "fast" in both.not_slower and "other" in both.unresolved
    assert both.exit_code == {"slower": 1}.get(expected, 5)


def test_the_exit_code_is_that_of_both_runs():
    both = limit(row="slower").confirmed_by(limit(row="not_slower"), ["row"])
    assert (both.exit_code, both.not_slower) == (0, ["row"])
