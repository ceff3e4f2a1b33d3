"""What an external meter or a management controller recorded: time-stamped watts, or joules that add up, in a CSV file.

    time,power_w                               or time,energy_j
    2026-01-01T12:00:00.000+01:00,412.5        ISO 8601 with its zone, or Unix seconds
    2026-01-01T12:00:01.000+01:00,             nothing was read: a gap

A million lines take about two seconds.
"""

from __future__ import annotations

import math
from array import array
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.errors import KitError

# Header -> whether its values add up.
HEADERS = {"time,power_w": False, "time,energy_j": True}
RIGHT_HEADER = "begin it with time,power_w or time,energy_j"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND, NS_PER_US, NS_PER_S = timedelta(microseconds=1), 10**3, 10**9
# 64 bits of nanoseconds end in 2262; a larger number is in milliseconds.
SECONDS_MAX = 9.2e9
# Longer cells are neither a time nor a number, and a message shows no more of them.
CELL_MAX = 48


class MeterFileError(KitError):
    """A file that cannot be read as a meter's."""


class MeterReadings(NamedTuple):
    """What a meter's file holds, by time; lines without a reading are left out."""

    utc_ns: NDArray[np.int64]
    values: NDArray[np.float64]  # watts; of a counter joules
    is_counter: bool

    @property
    def spacing_ns(self) -> int:
        """Return the usual time between two readings."""
        return int(np.median(np.diff(self.utc_ns)))


def read_meter(file: Path) -> MeterReadings:
    """Read a meter's file.

    Raises:
        MeterFileError: it is none; the line says where and what would be right.
    """
    times_ns, values, last_ns = array("q"), array("d"), -1
    try:
        with file.open(encoding="utf-8-sig", errors="replace") as lines:
            header = next(lines, "").strip()
            if not header:
                raise MeterFileError(f"{file}: the file is empty; {RIGHT_HEADER}")
            if header not in HEADERS:
                raise MeterFileError(f"{file}: the header is {header[:CELL_MAX]!r}; {RIGHT_HEADER}")
            for number, line in enumerate(lines, 2):
                if line.isspace():
                    continue
                try:
                    at_ns, value = _reading(line.strip().split(","), last_ns)
                except ValueError as error:
                    raise MeterFileError(f"{file}: line {number}: {error}") from None
                last_ns = at_ns
                if value is not None:
                    times_ns.append(at_ns)
                    values.append(value)
    except OSError as error:
        raise MeterFileError(f"{file} cannot be read: {error.strerror}") from None
    if len(values) < 2:  # noqa: PLR2004 - energy is of the time between two
        raise MeterFileError(f"{file}: fewer than two readings; the file needs a header, and a line for each reading")
    return MeterReadings(np.array(times_ns, np.int64), np.array(values, np.float64), HEADERS[header])


def _reading(cells: list[str], last_ns: int) -> tuple[int, float | None]:
    """Return the time of a line, after `last_ns`, and its value; None where nothing was read.

    Raises:
        ValueError: what is wrong with the line.
    """
    if len(cells) != 2:  # noqa: PLR2004 - time and value
        raise ValueError(f"it has {len(cells)} columns, and two are needed")
    at_ns = _utc_ns(cells[0].strip())
    if at_ns <= last_ns:
        raise ValueError("its time is not later than that of the previous line; sort by time, each time once")
    text = cells[1].strip()
    try:
        value = float(text) if text else math.nan
    except ValueError:
        raise ValueError(f"{text[:CELL_MAX]!r} is not a number") from None
    if value < 0 or math.isinf(value):
        raise ValueError(f"{text[:CELL_MAX]!r} is not possible; leave out what the meter did not read")
    return at_ns, None if math.isnan(value) else value


def _utc_ns(text: str) -> int:
    """Return nanoseconds since 1970 of ISO 8601 with a zone, or of Unix seconds.

    Raises:
        ValueError: it is neither.
    """
    shown = repr(text[:CELL_MAX])
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{shown} is not a time in ISO 8601, such as 2026-01-01T12:00:00+01:00") from None
        if at.tzinfo is None:
            raise ValueError(f"{shown} has no zone; write it as 2026-01-01T12:00:00+01:00, or with Z for UTC") from None
        return (at - EPOCH) // MICROSECOND * NS_PER_US
    if not 0 <= seconds <= SECONDS_MAX:
        raise ValueError(f"{shown} is not a time in Unix seconds; milliseconds have to be divided by 1000")
    return round(seconds * NS_PER_S)
