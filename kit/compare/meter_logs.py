"""A log of power, read into watts or joules by time: what counts together, in order, each reading once.

    lines ─► columns ─► times, values ─► series of each GPU, rail or event ─► those that were chosen, added up

Columns are cut a chunk at a time, which reads ten million rows in some seconds; where some row is no reading, row by
row. A log of means or of joules of intervals becomes a counter, which loses nothing between two rows.
"""

from __future__ import annotations

import io
import math
from array import array
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.compare.log_formats import HALF_SECOND_NS, Log, MeterFileError, cells_of, recognized
from kit.compare.log_times import CELL_MAX, SECOND_NS, Times, UnreadableError, utc_ns
from kit.files import open_limited
from kit.nearest import choices

# A year of a reading a second takes about this.
FILE_MAX_B = 1 << 30
# Turbostat writes up to a hundred lines before its header.
HEAD_LINES = 200
LINE_MAX_B = 1 << 16
CHUNK_B = 1 << 20
# Watts or joules: a power station in a year.
READING_MAX = 1e17
# The usual spacing is sought among so many: among all of a long log it would need as much memory as the log.
SPACINGS_MAX = 1_000_000
# Rows of several GPUs without a name come in bursts, so that most intervals are this much longer than others.
BURST_RATIO = 3.0
# A row after a longer time than usual is of its own interval, not of the hole before it.
HOLE_RATIO = 1.5

_TOO_FEW = "fewer than two readings; the file needs a header, and a whole line for each reading"
_OWN_ORDER = "its time is not later than that of the previous line; sort by time, each time once"
_ORDER = (
    "its time is not later than that of the row before it: the clock was set back (give a --meter-zone with its summer "
    "time, such as Europe/Berlin), or rows do not say which device they are of"
)

Key = tuple[str, ...]
Values = NDArray[np.float64]
Columns = Callable[[int], list[str]]


class MeterReadings(NamedTuple):
    """What a meter read, by time; lines without a reading are left out."""

    at_ns: Times  # UTC, of a run its raw clock
    values: Values  # watts; of a counter joules
    is_counter: bool
    spacing_ns: int  # the usual time between two readings
    covers: str = "wall"  # one of `log_formats.Covers`, or the names of columns that somebody chose
    gpus: int = 0  # that it covers, where it covers these alone
    error_ns: int = 0  # of `at_ns`
    period_ns: int = 0  # between fresh values of the sensor behind the log; at least the spacing
    lag_max_ns: int = 0  # by which it may show power later than it was drawn


def read_meter(
    file: Path, zone: tzinfo | None = None, names: Sequence[str] = (), *, has_others: bool = False
) -> MeterReadings:
    """Read a log of power.

    Args:
        file: of one of the tools of `log_formats`.
        zone: of times that do not say theirs.
        names: of columns, GPUs, rails or events that are added up; none: the usual ones.
        has_others: names may be those of another log.

    Raises:
        MeterFileError: it is none, or cannot be read; the line says where and what would be right.
    """
    try:
        with open_limited(file, FILE_MAX_B) as stream:
            # A shell of Windows writes UTF-16.
            encoding = "utf-16" if stream.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
            stream.seek(0)
            with io.TextIOWrapper(stream, encoding, errors="replace") as lines:
                chunk = [line for _ in range(HEAD_LINES) if (line := lines.readline(LINE_MAX_B))]
                log, count = recognized(file, chunk), 0
                wanted = [name for name in log.values if name in names] or [*log.usual]
                reader = _Reader(log, zone, wanted)
                while chunk:
                    following = lines.readlines(CHUNK_B)
                    # A last line without an end may have been cut.
                    reader.take(chunk if following or chunk[-1].endswith("\n") else chunk[:-1])
                    count, chunk = count + len(chunk), following
    except OSError as error:
        raise MeterFileError(f"{file} cannot be read: {error.strerror}") from None
    except UnreadableError as error:
        raise MeterFileError(f"{file}: line {count + error.index + 1}: {error}") from None
    if has_others:
        able = {*log.values, *(cell for key in reader.at_ns for cell in key)}
        names = [name for name in names if name in able]
    keys = _chosen(file, log, [*reader.at_ns], wanted, names)
    parts = [_part(file, log, reader, key, column) for key in keys for column in range(len(wanted))]
    at_ns, values = parts[0]
    if len(parts) > 1:
        for other_ns, _ in parts[1:]:
            after = np.searchsorted(other_ns, at_ns).clip(1, other_ns.size - 1)
            # Where one of them read nothing, the sum is not known.
            is_near = other_ns[after] - other_ns[after - 1] <= 2 * HOLE_RATIO * _spacing_ns(other_ns)
            is_known = is_near & (at_ns >= other_ns[0]) & (at_ns <= other_ns[-1])
            at_ns = at_ns[is_known]
        values = np.sum([np.interp(at_ns, *part) for part in parts], axis=0)
        if at_ns.size < 2:  # noqa: PLR2004
            raise MeterFileError(f"{file}: {_TOO_FEW}")
    is_usual = log.covers == "gpu" or not names or (wanted == [*log.usual] and not log.usual_key)
    return MeterReadings(
        at_ns=at_ns,
        values=values,
        is_counter=log.form != "power",
        spacing_ns=_spacing_ns(at_ns),
        covers=log.covers if is_usual else "+".join(dict.fromkeys(names)),
        gpus=len(keys) if log.covers == "gpu" else 0,
        error_ns=log.error_ns,
        lag_max_ns=log.lag_max_ns,
    )


class _Reader:
    """The readings of a log's chunks.

    Attributes:
        at_ns: times of each key.
        values: of each key, those of each column that is wanted.
    """

    def __init__(self, log: Log, zone: tzinfo | None, wanted: Sequence[str]) -> None:
        self._log, self._zone, self._wanted = log, zone, [log.values[name] for name in wanted]
        self.at_ns: dict[Key, array[int]] = {}
        self.values: dict[Key, list[array[float]]] = {}
        self._begin_ns = 0  # of seconds that count from it
        self._is_first = True
        if log.begin is not None:
            try:
                moment = datetime.strptime(log.begin, "%a %b %d %H:%M:%S %Y")
            except ValueError:
                raise UnreadableError(
                    0, f"{log.begin[:CELL_MAX]!r} is not a time such as Sat Jan 31 12:00:00 2026"
                ) from None
            self._begin_ns = int(utc_ns([moment.isoformat()], zone, -1)[0]) + HALF_SECOND_NS  # its second is cut

    def take(self, lines: list[str]) -> None:
        """Add the readings of a chunk.

        Raises:
            UnreadableError: a line is none.
        """
        plain = self._plain(lines)
        try:
            if plain is not None:
                self._add(len(lines) - plain[0], plain[1])
        except UnreadableError:
            plain = None  # row by row, what is no reading is left out
        if plain is None:
            indices, column = self._row_by_row(lines)
            try:
                self._add(len(indices), column)
            except UnreadableError as error:
                raise UnreadableError(indices[error.index], str(error)) from None
        self._is_first = False

    def _plain(self, lines: list[str]) -> tuple[int, Columns] | None:
        """Return how many lines a header takes, and the columns of lines that all have as many: cut in one go."""
        log = self._log
        if log.pattern is not None or log.only is not None or not lines:
            return None
        begin = int(self._is_first and (log.is_own or lines[0].strip() == log.header))
        widths = {*map(str.count, lines[begin:], repeat(log.separator))}
        if len(widths) != 1 or (last := widths.pop()) < max(log.values.values()) or (log.is_own and last > 1):
            return None
        text = "".join(lines[begin:]).replace("\n", log.separator).replace(f"{log.separator} ", log.separator)
        texts = (text.replace(log.unit + log.separator, log.separator) if log.unit else text).split(log.separator)
        return begin, lambda column: texts[column : -1 : last + 1]

    def _row_by_row(self, lines: list[str]) -> tuple[list[int], Columns]:
        """Return the indices of lines that are readings, and their columns."""
        rows, log = dict[int, list[str]](), self._log
        for index, line in enumerate(lines):
            if log.pattern is not None and log.named_values is not None:
                if (parts := log.pattern.match(line)) is not None and parts[1]:
                    named = dict(log.named_values.findall(parts[2]))
                    rows[index] = [parts[1], *(named.get(name, "") for name in log.values)]
                continue
            cells = cells_of(line, log.separator)
            if log.is_own:
                if cells != [""] and (index or not self._is_first):
                    rows[index] = cells
                    if len(cells) != 2:  # noqa: PLR2004 - time and value
                        raise UnreadableError(index, f"it has {len(cells)} columns, and two are needed")
                continue
            is_counted = log.only is None or cells[log.only[0] :][:1] == [log.only[1]]
            if is_counted and "".join(cells[log.time : log.time + 1])[:1].isdigit():
                rows[index] = cells
        return [*rows], lambda column: [row[column] if column < len(row) else "" for row in rows.values()]

    def _add(self, count: int, column: Columns) -> None:
        """Add rows; an error has the index of its row."""
        if not count:
            return
        log = self._log
        texts, values, by_key = column(log.time), [*map(column, self._wanted)], dict[Key, list[int]]()
        if log.fraction is not None:
            values = [[*map(".".join, zip(values[0], column(log.fraction), strict=True))]]
        for row, key in enumerate(zip(*map(column, log.keys), strict=True)):
            by_key.setdefault(key, []).append(row)
        added = []
        for key in by_key or [()]:
            rows = by_key.get(key, range(count))
            known = self.at_ns.get(key)
            last_ns = known[-1] if known else -1
            of_key = texts if len(by_key) < 2 else [texts[row] for row in rows]  # noqa: PLR2004
            try:
                at_ns = utc_ns(of_key, self._zone, last_ns) + self._begin_ns
                is_late = np.diff(at_ns, prepend=last_ns) < (0 if log.pattern is not None else 1)
                if is_late.any():
                    raise UnreadableError(int(is_late.argmax()), _OWN_ORDER if log.is_own else _ORDER)
                numbers = [
                    _numbers(log, cells if len(by_key) < 2 else [cells[row] for row in rows])  # noqa: PLR2004
                    for cells in values
                ]
            except UnreadableError as error:
                raise UnreadableError(rows[error.index], str(error)) from None
            added.append((key, at_ns, numbers))
        for key, at_ns, numbers in added:
            self.at_ns.setdefault(key, array("q")).frombytes(at_ns.tobytes())
            for each, read in zip(self.values.setdefault(key, [array("d") for _ in values]), numbers, strict=True):
                each.frombytes(read.tobytes())


def _numbers(log: Log, cells: list[str]) -> Values:
    """Return values; nan: nothing was read."""
    try:
        values = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        values = np.array([_number(log, index, cell.removesuffix(log.unit)) for index, cell in enumerate(cells)])
    if log.is_own and (wrong := (values < 0) | (values > READING_MAX)).any():
        index = int(wrong.argmax())
        why = f"{cells[index][:CELL_MAX]!r} is not possible; leave out what the meter did not read"
        raise UnreadableError(index, why)
    values[np.isinf(values) | (values == log.nothing)] = math.nan
    return values * log.scale


def _number(log: Log, index: int, text: str) -> float:
    try:
        return float(text.replace(",", ".") or "nan")
    except ValueError:
        if log.is_own:
            raise UnreadableError(index, f"{text[:CELL_MAX]!r} is not a number") from None
        return math.nan  # `[N/A]`, `<not counted>`, and what else tools write where they read nothing


def _chosen(file: Path, log: Log, keys: list[Key], wanted: Sequence[str], names: Sequence[str]) -> list[Key]:
    """Return the keys that count.

    Raises:
        MeterFileError: the log has no such name, or nobody chose among several.
    """
    if not keys:
        raise MeterFileError(f"{file}: {_TOO_FEW}")
    able = dict.fromkeys([*log.values, *(cell for key in keys for cell in key)])
    for name in names:
        if name not in able:
            raise MeterFileError(f"{file}: --meter-column {name}: {choices(name, list(able))}")
    chosen = [key for key in keys if any(name in key for name in names)] or (keys if log.usual_key else [])
    if log.usual_key and not any(name in key[:1] for key in keys for name in names):
        # Who names a socket names all of its events, and means the usual one.
        chosen = [key for key in chosen if log.usual_key in key[0]]
    if wanted and (chosen or len(keys) == 1):
        return chosen or keys
    parts = list(dict.fromkeys(key[0] for key in keys)) if wanted else [*log.values]
    raise MeterFileError(
        f"{file}: it has values of {', '.join(parts)}; choose by --meter-column {parts[0]} (several are added up)"
    )


def _part(file: Path, log: Log, reader: _Reader, key: Key, column: int) -> tuple[Times, Values]:
    """Return times and watts, or joules that add up, of one column of a key.

    Raises:
        MeterFileError: there are fewer than two readings, or they are of several devices.
    """
    at_ns = np.frombuffer(reader.at_ns[key], np.int64)
    values = np.frombuffer(reader.values[key][column], np.float64)
    if log.pattern is not None:
        # Rows of one second, whose fraction was cut, are spread over it.
        _, first, counts = np.unique(at_ns, return_index=True, return_counts=True)
        place = np.arange(at_ns.size) - np.repeat(first, counts)
        at_ns = at_ns + ((place + 0.5) * SECOND_NS / np.repeat(counts, counts)).astype(np.int64)
    if log.form == "joules" and at_ns.size > 1:
        steps_ns, usual_ns = np.diff(at_ns, prepend=-1).astype(np.float64), _spacing_ns(at_ns)
        # After a hole, and in the first row, only the usual length of an interval is known.
        steps_ns[steps_ns > HOLE_RATIO * usual_ns] = usual_ns
        values = values / steps_ns * 1e9
    if (is_nothing := np.isnan(values)).any():
        at_ns, values = at_ns[~is_nothing], values[~is_nothing]
    if values.size < 2:  # noqa: PLR2004 - energy is of the time between two
        raise MeterFileError(f"{file}: {_TOO_FEW}")
    if log.form in {"mean", "joules"}:
        values = np.concatenate([[0.0], np.cumsum(values[1:] * np.diff(at_ns) / 1e9)])
    if log.covers == "gpu" and not log.keys:
        short_ns, long_ns = np.percentile(np.diff(at_ns[:SPACINGS_MAX]), (25, 95))
        if long_ns > BURST_RATIO * short_ns:
            raise MeterFileError(f"{file}: its rows may be of several GPUs; log the index beside power.draw")
    return at_ns, values


def _spacing_ns(at_ns: Times) -> int:
    return int(np.median(np.diff(at_ns[:SPACINGS_MAX])))
