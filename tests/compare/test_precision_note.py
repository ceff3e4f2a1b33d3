import msgspec
from profile_builder import MS, build_cell, build_profile, build_result

from kit.compare.comparison import compare
from kit.compare.precision_note import precision_notes
from kit.stats.precision import half_width


def asked(precision_pct, *results):
    profile = build_profile(results)
    profile.suite = msgspec.structs.replace(profile.suite, precision_pct=precision_pct)
    return profile


def narrow():
    return build_result(build_cell("torch"), [2 * MS, 2.001 * MS, 1.999 * MS, 2 * MS, 2 * MS])


WIDE_MEDIANS = [2 * MS, 2.2 * MS, 1.9 * MS, 2.1 * MS, 2 * MS]


def wide():
    return build_result(build_cell("jax"), WIDE_MEDIANS)


def test_cells_that_stayed_wider_than_asked_are_named_with_their_width():
    width = 100 * half_width(WIDE_MEDIANS)
    profile = asked(2.0, narrow(), wide())
    (note,) = precision_notes([("a", profile)])
    assert note == f"NOT AS PRECISE AS ASKED in a: ±2 % was asked for; {wide().key} has ±{width:.2g} %."
    assert note in compare([("a", profile)]).notes


def test_a_cell_without_an_interval_did_not_reach_it():
    alone = build_result(build_cell("tensorflow"), [None, None])
    (note,) = precision_notes([("a", asked(2.0, narrow(), alone))])
    assert f"; {alone.key} has no interval." in note


def test_a_narrow_interval_of_too_few_launches_is_named():
    """`kit run` goes on with such a cell, or gives it up: its launches seldom gave a number."""
    few = build_result(build_cell("jax"), [None, 2 * MS, None, 2 * MS, None])
    (note,) = precision_notes([("a", asked(2.0, narrow(), few))])
    assert note.endswith(f"; {few.key} rests on 2 launches.")


def test_every_such_cell_is_named():
    cells = [build_result(build_cell("jax", batch=batch), WIDE_MEDIANS) for batch in range(1, 21)]
    (note,) = precision_notes([("a", asked(2.0, *cells))])
    assert all(f"{cell.key} has ±" in note for cell in cells)


def test_nothing_is_said_where_it_was_reached_or_not_asked_for():
    assert precision_notes([("a", asked(2.0, narrow())), ("b", asked(None, wide()))]) == []
