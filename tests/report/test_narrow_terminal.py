"""The comparison table in a terminal that has no room for all of its columns."""

import re

import pytest
from comparison_text import body, comparison
from profile_builder import MS, NO_RAPL, build_cell, build_failed, build_result, six_cells
from rich.cells import cell_len

from kit.report import text
from kit.report.columns import DISPENSABLE, table_of


@pytest.mark.parametrize("width", [60, 80, 100, 130, 159, 400])
def test_a_narrow_terminal_gets_fewer_columns_and_is_told(width):
    shown = comparison([*six_cells(), build_failed(build_cell("torch", "lstm"))])
    whole, narrow = text.render(shown), text.render(shown, width=width)
    needed = max(map(cell_len, body(whole)))
    fitting = max(map(cell_len, body(narrow)))
    left_out = re.search(r"Not shown, as the terminal is too narrow: (.*?);", " ".join(narrow.split()))
    assert (left_out is None) == (needed <= width) == (body(narrow) == body(whole))
    # What stays in any case: the backend, the step with its interval and the verdict.
    assert fitting <= max(width, 78)
    for line, short in zip(body(whole), body(narrow), strict=True):
        assert short.split()[0] == line.split()[0]
        for words in re.findall(r"\S+ ms \[.*?\]|\S+ faster|baseline|failed", line):
            assert words in short
    titles = {column.name for column in table_of(shown).columns}
    assert left_out is None or set(left_out[1].split(", ")) < titles


def test_a_column_without_numbers_goes_first():
    shown = comparison()
    widest = max(map(cell_len, body(text.render(shown))))
    assert "too narrow: energy /sample;" in " ".join(text.render(shown, width=widest - 1).split())


def test_of_the_columns_left_out_those_that_fit_come_back():
    """A narrow one goes early; once a wide one had to go, too, there may be room for it."""
    shown = comparison([build_result(build_cell(name), [2_000_000 * MS] * 3) for name in ("torch", "jax")])
    for width in range(70, 160):
        left_out = re.search(r"too narrow: (.*?);", " ".join(text.render(shown, width=width).split()))
        names = left_out[1].split(", ") if left_out else []
        widest = max(map(cell_len, body(text.render(shown, width=width))))
        assert widest <= width or set(names) == set(DISPENSABLE)
        spare = width - widest
        assert all(spare < column_width(shown, name) for name in names), (width, names)


def column_width(shown, name):
    """With the gap before it."""
    table = table_of(shown)
    place = next(place for place, column in enumerate(table.columns) if column.name == name)
    cells = [line.cells[place] for group in table.groups for line in group.lines]
    column = table.columns[place]
    return 2 + max(map(cell_len, [*cells, column.title, column.subtitle]))


def test_without_a_table_nothing_is_left_out_of_it():
    assert "too narrow" not in text.render(comparison([]), width=20)


def test_a_column_that_is_not_shown_has_no_footnote():
    assert NO_RAPL in text.render(comparison())
    assert NO_RAPL not in text.render(comparison(), width=90)


def test_every_column_that_may_be_left_out_is_one():
    assert set(DISPENSABLE) < {column.name for column in table_of(comparison()).columns}
