"""An external meter's file: the same instants in every way that people write them, and what is wrong."""

import time
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from kit.compare.meter import HEADERS, MeterFileError, read_meter

BEGIN = datetime(2026, 1, 1, 12, 0, 0, 250_000, UTC)
BEGIN_NS = 1_767_268_800_250_000_000


def iso(zone, sep="T"):
    return lambda at: at.astimezone(zone).isoformat(sep)


WAYS = {
    "UTC": iso(UTC),
    "Z": lambda at: iso(UTC)(at).replace("+00:00", "Z"),
    "east, with a space": iso(timezone(timedelta(hours=5, minutes=30)), " "),
    "west": iso(timezone(timedelta(hours=-8))),
    "zone without a colon": lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.%f%z"),
    "Unix seconds": lambda at: f"{at.timestamp():.6f}",
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_a_time_gives_the_same_instants(tmp_path, way, header):
    rows = [f"{WAYS[way](BEGIN + timedelta(seconds=n))},{400 + n}" for n in range(3)]
    file = tmp_path / "meter.csv"
    file.write_text("\n".join([header, *rows, ""]), encoding="utf-8-sig")
    readings = read_meter(file)
    assert readings.at_ns.tolist() == pytest.approx([BEGIN_NS + n * 10**9 for n in range(3)], abs=1000)
    assert (readings.values.tolist(), readings.is_counter) == ([400, 401, 402], header == "time,energy_j")


def test_lines_without_a_reading_are_gaps(tmp_path):
    file = tmp_path / "meter.csv"
    file.write_text("time,power_w\r\n100,1.5\r\n101,\r\n\r\n102,nan\r\n103,2.5\r\n\r\n")
    readings = read_meter(file)
    assert readings.at_ns.tolist() == [100 * 10**9, 103 * 10**9]
    assert readings.values.tolist() == [1.5, 2.5]


W = "time,power_w\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        (W, "fewer than two readings"),
        ("\x00\x01\x02\n\x00", "begin it with time,power_w or time,energy_j"),
        ("time,volts\n1,230\n", "the header is 'time,volts'; begin it with time,power_w or time,energy_j"),
        (f"{W}2026-01-01T12:00:00Z,1\n2026-01-01T12:00:01,2\n", "line 3: '2026-01-01T12:00:01' has no zone"),
        (f"{W}2026-01-01,1\n", "has no zone"),
        (f"{W}2026-13-01T12:00:00Z,1\n", "line 2: '2026-13-01T12:00:00Z' is not a time"),
        (f"{W}1,1\nyesterday,2\n", "line 3: 'yesterday' is not a time"),
        (f"{W}1767268800250,1\n", "milliseconds have to be divided"),
        (f"{W}nan,1\n", "line 2: 'nan' is not a time"),
        (f"{W}1,1\n2,-3\n", "line 3: '-3' is not possible"),
        (f"{W}1,1\n2,inf\n", "line 3"),
        (f"{W}1,1\n2,n/a\n", "line 3: 'n/a' is not a number"),
        (f"{W}1,1\n2\n", "line 3: it has 1 columns"),
        (f"{W}1,1,230\n", "line 2: it has 3 columns"),
        (f"{W}2,1\n1,1\n", "line 3: its time is not later"),
        (f"{W}1,1\n2,\n2,1\n", "line 4: its time is not later"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(tmp_path, text, words):
    file = tmp_path / "meter.csv"
    file.write_text(text)
    with pytest.raises(MeterFileError, match=words) as caught:
        read_meter(file)
    assert "\n" not in str(caught.value)


def test_a_million_lines_take_seconds(tmp_path):
    file = tmp_path / "meter.csv"
    seconds = np.arange(1_000_000) / 10
    np.savetxt(file, np.column_stack([seconds, 100 + seconds % 7]), "%.1f", ",", header="time,power_w", comments="")
    begin = time.monotonic()
    readings = read_meter(file)
    assert time.monotonic() - begin < 10
    assert (readings.values.size, readings.spacing_ns) == (1_000_000, pytest.approx(100_000_000, abs=100))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MeterFileError, match="cannot be read"):
        read_meter(tmp_path / "absent.csv")
