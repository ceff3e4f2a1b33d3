"""What an external meter or a management controller recorded: time-stamped watts, or joules that add up, in a CSV file.

    time,power_w                               a header; other columns are left out
    2026-01-01T12:00:00.000+01:00,412.5        ISO 8601 with its zone, or Unix seconds
    2026-01-01T12:00:01.000+01:00,             nothing was read: a gap

Ten million lines are read in some seconds, a part at a time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.errors import KitError

Texts = NDArray[np.bytes_]

LINES_AT_A_TIME = 200_000
# Longer cells are neither a time nor a number.
CELL_MAX = 48
TIMES = ("time", "timestamp", "datetime", "date", "ts", "utc")
# Nanoseconds of a unit of time; seconds unless the header names another.
TIME_UNITS = {"ns": 1, "us": 10**3, "ms": 10**6}
NS_PER_S = 10**9
# 64 bits of nanoseconds end in 2262: larger numbers are milliseconds under another name.
SECONDS_MAX = 9.2e9
POWER_UNITS = {"w": 1.0, "watt": 1.0, "watts": 1.0, "kw": 1e3, "kilowatts": 1e3, "mw": 1e-3, "milliwatts": 1e-3}
ENERGY_UNITS = {"j": 1.0, "joule": 1.0, "joules": 1.0, "kj": 1e3, "wh": 3.6e3, "kwh": 3.6e6, "mwh": 3.6}
# Watts times these are energy; quantities beside power that are none, or nobody drew.
HOURS, SECONDS_PER_HOUR = frozenset({"hour", "hours", "hr", "hrs"}), 3600.0
NO_WATTS = frozenset({"va", "kva", "var", "kvar", "apparent", "reactive", "factor", "pf", "limit", "cap", "rated"})
ZONE = re.compile(rb"Z|([+-])(\d\d):?(\d\d)")
MINUTE_NS = 60 * NS_PER_S
NAIVE = "has no zone; write it as 2026-01-01T12:00:00+01:00, with Z for UTC, or as Unix seconds"


class MeterFileError(KitError):
    """A file that cannot be read as a meter's."""


class _NaiveTimeError(ValueError):
    """A time without a zone."""


class _LineError(Exception):
    """What is wrong with a line, by its place in its part."""

    def __init__(self, place: int, words: str) -> None:
        super().__init__(words)
        self.place = place


class MeterReadings(NamedTuple):
    """What a meter's file holds, by time; lines without a reading are left out."""

    utc_ns: NDArray[np.int64]
    values: NDArray[np.float64]  # watts; of a counter joules
    is_counter: bool

    @property
    def spacing_ns(self) -> int:
        """Return the usual time between two readings."""
        return int(np.median(np.diff(self.utc_ns)))


class Columns(NamedTuple):
    """Where time and value stand in a line, and what they are."""

    time: int
    value: int
    time_unit_ns: int
    factor: float  # watts or joules a unit
    is_counter: bool
    delimiter: str


def read_meter(file: Path) -> MeterReadings:
    """Read a meter's file.

    Raises:
        MeterFileError: it is not one; the line says where and what would be right.
    """
    parts, last_ns = [(np.array([], np.int64), np.array([], np.float64))], np.array([], np.int64)
    first_line = 2
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            columns = _columns(lines.readline())
            while part := list(islice(lines, LINES_AT_A_TIME)):
                utc_ns, values = _readings(part, columns, last_ns)
                is_read = ~np.isnan(values)
                parts.append((utc_ns[is_read], values[is_read] * columns.factor))
                last_ns, first_line = utc_ns[-1:], first_line + len(part)
    except OSError as error:
        raise MeterFileError(f"{file} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise MeterFileError(f"{file}: {error}") from None
    except _LineError as error:
        raise MeterFileError(f"{file}: line {first_line + error.place}: {error}") from None
    utc_ns, values = (np.concatenate(of) for of in zip(*parts, strict=True))
    if utc_ns.size < 2:  # noqa: PLR2004 - energy is of the time between two
        raise MeterFileError(f"{file}: fewer than two readings; the file needs a header, and a line for each reading")
    return MeterReadings(utc_ns, values, columns.is_counter)


def _columns(header: str) -> Columns:
    """Find the columns by their titles.

    Raises:
        ValueError: there are none, or too many.
    """
    if not header.strip():
        raise ValueError("the file is empty; give a CSV file with a header, such as time,power_w")
    delimiter = max(",;\t", key=header.count)
    titles = [title.strip().strip('"') for title in header.strip().split(delimiter)]
    words = [re.findall(r"[a-z]+", title.lower().replace("µ", "u")) for title in titles]
    times = [place for place, of in enumerate(words) if any(word in TIMES for word in of)]
    others = [place for place in range(len(titles)) if place not in times]
    powers = {place: factor for place in others if (factor := _factor(words[place], POWER_UNITS, "power"))}
    energies = {place: factor for place in others if (factor := _factor(words[place], ENERGY_UNITS))}
    # A meter with both: its watts are finer than its watt-hours.
    of_value = powers or energies
    if not times or not of_value:
        lacking = "watts, joules or Wh" if times else "time"
        raise ValueError(f"no column of {lacking} in the header {header.strip()[:80]!r}; name them as time,power_w")
    if len(of_value) > 1:
        listed = ", ".join(titles[place] for place in of_value)
        raise ValueError(f"several columns could be the machine's: {listed}; keep one of them")
    ((value, factor),) = of_value.items()
    unit_ns = next((TIME_UNITS[word] for word in words[times[0]] if word in TIME_UNITS), NS_PER_S)
    return Columns(times[0], value, unit_ns, factor, not powers, delimiter)


def _factor(words: Sequence[str], units: dict[str, float], quantity: str = "") -> float | None:
    """Return the factor of the unit that is named last; 1 for a quantity that is named without one."""
    if NO_WATTS.intersection(words):
        return None
    named = [units[word] for word in words if word in units]
    if HOURS.intersection(words):  # "watt hours" are no watts
        of_power = [POWER_UNITS[word] for word in words if word in POWER_UNITS]
        return SECONDS_PER_HOUR * of_power[-1] if of_power and units is ENERGY_UNITS else None
    return named[-1] if named else 1.0 if quantity in words and not set(words) & set(ENERGY_UNITS) else None


def _readings(
    part: Sequence[str], columns: Columns, last_ns: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return times and numbers of some lines, which come after `last_ns`; NaN where nothing was read."""
    used = columns.time, columns.value
    dtype = np.dtype([("time", f"S{CELL_MAX}"), ("value", f"S{CELL_MAX}")])
    try:
        texts = np.loadtxt(
            part, dtype, comments=None, delimiter=columns.delimiter, quotechar='"', usecols=used, ndmin=1
        )
    except ValueError:
        short = (place for place, line in enumerate(part) if line.count(columns.delimiter) < max(used))
        raise _LineError(next(short, 0), "it has fewer columns than the header, or an open quote") from None
    utc_ns = _times(texts["time"], columns) if texts.size else last_ns[:0]
    values = _values(texts["value"], columns)
    back = np.flatnonzero(np.diff(utc_ns, prepend=last_ns) <= 0)
    if back.size:
        place = int(back[0]) + 1 - last_ns.size
        raise _LineError(place, "its time is not later than that of the previous line; sort by time, each time once")
    return utc_ns, values


def _times(texts: Texts, columns: Columns) -> NDArray[np.int64]:
    """Return the nanoseconds since 1970."""
    if not re.fullmatch(rb"[0-9.eE+]+", texts[0]):
        return _parsed(texts, _of_iso, "not a time in ISO 8601, such as 2026-01-01T12:00:00+01:00")
    units: NDArray[np.float64] = _parsed(
        texts, lambda cells: cells.astype(np.float64), "not a number, unlike the first line"
    )
    if columns.time_unit_ns == NS_PER_S and np.any(units > SECONDS_MAX):
        raise _LineError(
            0, f"{_shown(texts[0])} is too large for Unix seconds; for milliseconds name the column time_ms"
        )
    whole = np.floor(units)
    utc_ns: NDArray[np.int64] = whole.astype(np.int64) * columns.time_unit_ns
    return utc_ns + ((units - whole) * columns.time_unit_ns).astype(np.int64)


def _of_iso(texts: Texts) -> NDArray[np.int64]:
    """Return the nanoseconds since 1970 of texts of ISO 8601 with their zones.

    Raises:
        ValueError: one is none, or has no zone.
    """
    utc_ns, lengths = np.empty(len(texts), np.int64), np.strings.str_len(texts)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        for suffix, of_suffix in _suffixes(texts[rows].astype(f"S{max(1, length)}")):
            zone = ZONE.fullmatch(suffix)
            if zone is None:
                raise _NaiveTimeError
            minutes = 0 if zone[1] is None else int(zone[1] + b"1") * (60 * int(zone[2]) + int(zone[3]))
            at = texts[rows[of_suffix]].astype(f"S{max(1, length - len(suffix))}").astype("datetime64[ns]")
            if np.isnat(at).any():
                raise ValueError
            utc_ns[rows[of_suffix]] = at.astype(np.int64) - minutes * MINUTE_NS
    return utc_ns


def _suffixes(texts: Texts) -> Iterable[tuple[bytes, NDArray[np.bool_]]]:
    """Yield what texts of one length end with, a zone where there is one, and which of them do."""
    is_utc = np.strings.endswith(texts, b"Z")
    if is_utc.any():
        yield b"Z", is_utc
    length = texts.dtype.itemsize
    tails = texts.view("S1").reshape(len(texts), length)[:, -6:].copy().view(f"S{min(6, length)}").ravel()
    for tail in np.unique(tails[~is_utc]):
        yield tail if tail[:1] in (b"+", b"-") else tail[1:], tails == tail


def _values(cells: Texts, columns: Columns) -> NDArray[np.float64]:
    """Return the numbers, NaN where nothing was read."""
    if columns.delimiter != ",":
        cells = np.strings.replace(cells, b",", b".")
    cells = np.where(np.strings.str_len(np.strings.strip(cells)) == 0, b"nan", cells)
    values: NDArray[np.float64] = _parsed(cells, lambda cells: cells.astype(np.float64), "not a number")
    wrong = np.flatnonzero((values < 0) | np.isinf(values))
    if wrong.size:
        what = "joules" if columns.is_counter else "watts"
        drawn = f"{_shown(cells[wrong[0]])} {what} is not possible; leave out what the meter did not read"
        raise _LineError(int(wrong[0]), drawn)
    return values


def _parsed(cells: Texts, parse: Callable[[Texts], NDArray[Any]], what: str) -> NDArray[Any]:
    """Return parsed cells.

    Raises:
        _LineError: of the first that cannot be.
    """
    try:
        return parse(cells)
    except ValueError:
        for place in range(len(cells)):
            try:
                parse(cells[place : place + 1])
            except _NaiveTimeError:
                raise _LineError(place, f"{_shown(cells[place])} {NAIVE}") from None
            except ValueError:
                raise _LineError(place, f"{_shown(cells[place])} is {what}") from None
        raise


def _shown(cell: bytes) -> str:
    return repr(cell.decode(errors="replace"))
