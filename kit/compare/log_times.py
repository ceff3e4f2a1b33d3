"""Times as logs write them, in nanoseconds since 1970 by UTC.

    2026-01-31T12:00:00.5+01:00    2026/01/31 12:00:00.500    01-31-2026 12:00:00.500    1769857200.5

A chunk of a log is read at once where all its times are written as its first one is. A local time needs a zone; in the
hour that the end of summer time repeats, times go on from the one before them.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
from numpy.typing import NDArray

from kit.errors import KitError
from kit.nearest import nearest

Times = NDArray[np.int64]

# Longer cells are neither a time nor a number, and a message shows no more of them.
CELL_MAX = 48
EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
SECOND_NS = 10**9
# 64 bits of nanoseconds end in 2262; a larger number is in milliseconds.
SECONDS_MAX = 9.2e9
# The second of these is written in the United States; it is put in the order of the first.
_ZONE = r" ?(?P<zone>Z|[+-]\d\d:?\d\d)?"
_WRITTEN = re.compile(rf"(\d{{4}}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?){_ZONE}")
_MONTH_FIRST = re.compile(r"(\d\d)-(\d\d)-(\d{4})(?=[T ])")
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


class UnreadableError(ValueError):
    """A line of a log that is none; its number within the chunk goes with it."""

    def __init__(self, index: int, why: str) -> None:
        super().__init__(why)
        self.index = index


def since_epoch_ns(moment: datetime) -> int:
    """Return nanoseconds since 1970."""
    return (moment - EPOCH) // MICROSECOND * 1_000


def zone_named(name: str) -> tzinfo:
    """Return the zone of ``Europe/Berlin``, ``UTC`` or ``+01:00``.

    Raises:
        KitError: there is none of that name.
    """
    try:
        if _OFFSET.fullmatch(name):
            return timezone(timedelta(microseconds=_offset_ns(name) // 1_000))
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        known = available_timezones()
        near = nearest(name, known) or next((each for each in sorted(known) if each.endswith(f"/{name}")), None)
        remedy = "give an offset, +01:00, or install tzdata" if near is None else f"did you mean {near}?"
        raise KitError(f"--meter-zone {name[:CELL_MAX]}: no zone has this name here; {remedy}") from None


def utc_ns(texts: Sequence[str], zone: tzinfo | None, last_ns: int) -> Times:
    """Return nanoseconds by UTC of a chunk of times, the one before which was `last_ns`.

    Args:
        texts: at least one.
        zone: of times that do not say theirs; None: nobody said.
        last_ns: -1: there was none.

    Raises:
        UnreadableError: one of them is no time, or has no zone.
    """
    try:
        seconds = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        return _of_dates(texts, zone, last_ns)
    if (wrong := ~((seconds >= 0) & (seconds <= SECONDS_MAX))).any():
        index = int(wrong.argmax())
        why = f"{texts[index][:CELL_MAX]!r} is not a time in Unix seconds; milliseconds have to be divided by 1000"
        raise UnreadableError(index, why)
    return np.rint(seconds * 1e9).astype(np.int64)


def _of_dates(texts: Sequence[str], zone: tzinfo | None, last_ns: int) -> Times:
    first = _WRITTEN.fullmatch(_year_first(texts[0]))
    with suppress(ValueError):
        if first is not None and {*map(len, texts)} == {len(texts[0])}:
            return _utc_ns(0, first, _alike_ns(texts, first[0][first.end(1) :]), zone, last_ns)
    each = list[Times]()
    for index, text in enumerate(texts):
        if (written := _WRITTEN.fullmatch(_year_first(text))) is None:
            why = f"{text[:CELL_MAX]!r} is not a time in ISO 8601, such as 2026-01-01T12:00:00+01:00"
            raise UnreadableError(index, why)
        try:
            local_ns = _alike_ns([written[1]], "")
        except ValueError:
            raise UnreadableError(index, f"{text!r} is not a time of any day") from None
        each.append(_utc_ns(index, written, local_ns, zone, last_ns))
        last_ns = int(each[-1][0])
    return np.concatenate(each)


def _alike_ns(texts: Sequence[str], end: str) -> Times:
    """Return local times that all have this end, their zone. ValueError where one has another, or is no time."""
    lines = "\n".join([*texts, ""])
    if lines.count(f"{end}\n") != len(texts):
        raise ValueError
    if _MONTH_FIRST.match(lines):
        lines = _MONTH_FIRST.sub(r"\3-\1-\2", lines)
    bare = lines.replace(f"{end}\n", "\n").replace("/", "-").replace(",", ".")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy warns of a zone
        try:
            return np.array(bare.split("\n")[:-1], "datetime64[ns]").astype(np.int64)
        except UserWarning:
            raise ValueError from None


def _year_first(text: str) -> str:
    """Return a time that may be written as in the United States in the order of ISO 8601."""
    return _MONTH_FIRST.sub(r"\3-\1-\2", text)


def _utc_ns(index: int, written: re.Match[str], local_ns: Times, zone: tzinfo | None, last_ns: int) -> Times:
    """Return local times by UTC, each after the one before it also where the zone's clock was put back."""
    if written["zone"] is not None:
        return local_ns - _offset_ns(written["zone"])
    if zone is None:
        raise UnreadableError(
            index,
            f"{written[0][:CELL_MAX]!r} has no zone; write it as 2026-01-01T12:00:00+01:00, or with Z for UTC, or give "
            "it by --meter-zone Europe/Berlin (--meter-zone run: as the measured machine had it)",
        )
    first, last = (_offsets_ns(int(at_ns), zone) for at_ns in local_ns[[0, -1]])
    if first == last and first[0] == first[1]:
        return local_ns - first[0]
    ordered = list[int]()
    for at_ns in local_ns.tolist():
        early, late = sorted(at_ns - offset_ns for offset_ns in _offsets_ns(at_ns, zone))
        last_ns = early if early > last_ns else late
        ordered.append(last_ns)
    return np.array(ordered, np.int64)


def _offset_ns(zone: str) -> int:
    """Return what a zone is ahead of UTC, of ``+01:00`` or ``Z``."""
    offset = _OFFSET.fullmatch(zone)
    return 0 if offset is None else int(f"{offset[1]}1") * (3600 * int(offset[2]) + 60 * int(offset[3])) * SECOND_NS


def _offsets_ns(at_ns: int, zone: tzinfo) -> tuple[int, int]:
    """Return what a zone's clock is ahead of UTC at a local time; two where it shows that time twice."""
    moment = datetime(1970, 1, 1) + timedelta(microseconds=at_ns // 1_000)
    first, second = (moment.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta() for fold in (0, 1))
    return first // MICROSECOND * 1_000, second // MICROSECOND * 1_000
