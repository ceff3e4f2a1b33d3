"""A report as every format takes it: tables with what stands above and below them, built once and then written.

Text, Markdown, CSV and so on are in `kit.report.formats`, HTML is in `kit.report.page_tables_and_charts`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from string import ascii_lowercase
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

from kit.report.values_in_words import one_line

T = TypeVar("T")
# Digits of a machine's hash, where it tells machines apart.
HOST_SHOWN = 8


class TableCell(NamedTuple):
    """A cell of a table: its number in words."""

    words: str
    style: str = ""  # on a terminal, as rich calls it
    because: str = ""  # why nothing stands here: a letter does, and the reason below all tables
    is_empty: bool = False  # a row of such cells says nothing and is left out
    mark: str = ""  # name of the metric whose letter stands behind the words


class Column(NamedTuple):
    """One column; the title of the first one is the table's where it has none of its own.

    Records derive from the same columns: a column with a name is a field.
    """

    title: str
    read: Callable[[Any], str | None] = str  # the words of what a row is made from; null: it has nothing
    name: str = ""  # of the metric that it shows, and of its field
    value: Callable[[Any], object] | None = None  # its field's value; a dictionary: several fields; null: the words
    is_wide: bool = False  # only --wide has it
    right: bool = True  # numbers are aligned at their right end
    over: str = ""  # above the title, alike in columns that belong together
    hides: int = 0  # where a table is too wide, the columns with the smallest number are hidden first; 0: never
    folds: bool = False  # goes on below where it is too long
    width_max: int | None = None


def record_field(name: str, value: Callable[[Any], object] = str) -> Column:
    """Return a column that only records have; `value` may return a dictionary of several fields.

    Without `value`, the field is given to `record_of`.
    """
    return Column("", lambda _: None, name, value)


def record_of(
    columns: Iterable[Column], row: object, given: Mapping[str, object] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the fields of what a row is made from; those that it does not know itself are `given`."""
    record = dict[str, Any]()
    for column in columns:
        if column.name or column.value is not None:
            known = given[column.name] if column.name in given else (column.value or column.read)(row)
            record |= known if isinstance(known, dict) else {column.name: known}
    return record


class Footnotes:
    """Letters for the reasons of blank cells, in order of their first appearance."""

    def __init__(self) -> None:
        self._letters: dict[str, str] = {}  # by reason

    def words(self, cell: TableCell) -> str:
        """Return what stands in a cell, and keep its reason."""
        if not cell.because:
            return cell.words
        letter = self._letters.setdefault(cell.because, _letters(len(self._letters)))
        return f"{cell.words} {letter}"

    def lines(self) -> list[str]:
        """Return a line for each reason."""
        return [f"– {letter}  {because}" for because, letter in self._letters.items()]


def _letters(index: int) -> str:
    """Return ``a`` to ``z``, then ``aa``, ``ab`` and so on."""
    rest, last = divmod(index, len(ascii_lowercase))
    return f"{_letters(rest - 1) if rest else ''}{ascii_lowercase[last]}"


class Table(NamedTuple):
    """Rows under one title; `sentences` stand below them."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[TableCell]]
    sentences: Sequence[str] = ()

    @property
    def has_header(self) -> bool:
        """Whether any column has a title."""
        return any(column.title for column in self.columns)


class Loud(str):
    """A note that is printed in bold."""

    __slots__ = ()


class Case(NamedTuple):
    """One test case of a CI server: what was asked, and how it ended."""

    name: str
    group: str
    outcome: Literal["passed", "failed", "error", "skipped"] = "passed"
    words: str = ""  # why it did not pass
    kind: str = ""  # of failure or error
    output: str = ""
    time_s: float | None = None


class Later(Sequence[T]):
    """What is computed when a format asks for it."""

    def __init__(self, compute: Callable[[], Sequence[T]]) -> None:
        self._compute = compute

    @cached_property
    def _known(self) -> Sequence[T]:
        return self._compute()

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as of any sequence
        return self._known[index]

    def __len__(self) -> int:
        return len(self._known)


class Report(NamedTuple):
    """Everything that a format may write; each takes what it can show."""

    name: str  # of the command, ``kit compare``
    headline: Sequence[str]
    tables: Sequence[Table]
    notes: Sequence[str] = ()  # said once, below all tables
    legend: Sequence[tuple[str, str]] = ()  # what explains a column, by its title; signs, by none
    hint: str = ""  # the next commands, in one piece: their paths are copied
    records: Sequence[Mapping[str, object]] = ()  # of CSV: plain numbers, units in their names
    # Of Prometheus: what tells the series of a record from others', of each record; none: all of its words.
    labels: Sequence[Mapping[str, str]] = ()
    states: Mapping[str, Sequence[str]] = MappingProxyType({})  # of Prometheus: a record's words that change, and all
    cases: Sequence[Case] = ()  # of JUnit
    properties: Mapping[str, str] = MappingProxyType({})  # of JUnit
    document: object = None  # of JSON; a function returns it
    is_wide: bool = False  # as wide as it needs to be
    rows_max: int | None = None  # a table with more rows is not read on a terminal; other formats have all

    def below(self, hidden: Collection[str] = ()) -> list[str]:
        """Return the lines below the tables: notes, and a legend of the columns that are not hidden."""
        parts = [words for title, words in self.legend if title not in hidden]
        return [*self.notes, *([" · ".join(parts)] if parts else [])]


def plain_table(
    title: str, titles: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1, last_right: bool = False
) -> Table:
    """Return a table of words: `left` columns that name a row, then numbers; the last is a text unless `last_right`.

    `titles` are those of the columns; where all are empty, there is no header.
    """
    last = len(titles) - 1
    columns = [
        Column(name, right=left <= index < last + last_right, folds=index == last and not last_right)
        for index, name in enumerate(titles)
    ]
    return Table(one_line(title), columns, [[TableCell(one_line(words)) for words in row] for row in rows])


def words_table(title: str, rows: Iterable[Sequence[str]]) -> Table:
    """Return a table without a header and without numbers."""
    listed = [*rows]
    columns = len(listed[0]) if listed else 1
    return plain_table(title, ("",) * columns, listed, left=columns)
