"""An external meter's file: the same instants and watts in every way that people write them, and what is wrong."""

import re
import time
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from kit.profile.meter_file import MeterFileError, read_meter

BEGIN = datetime(2026, 1, 1, 12, 0, 0, 250_000, UTC)
BEGIN_NS = 1_767_268_800_250_000_000


def iso(zone, sep="T"):
    return lambda at: at.astimezone(zone).isoformat(sep)


WAYS = {
    "UTC": (iso(UTC), "time,watts", 1),
    "Z": (lambda at: iso(UTC)(at).replace("+00:00", "Z"), "Timestamp,Power (W)", 1),
    "east, with a space": (iso(timezone(timedelta(hours=5, minutes=30)), " "), "datetime;power_w", 1),
    "west": (iso(timezone(timedelta(hours=-8))), "time\tpower", 1),
    "zone without a colon": (lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.%f%z"), '"date","kW"', 1e-3),
    "Unix seconds": (lambda at: f"{at.timestamp():.6f}", "time,W", 1),
    "Unix milliseconds": (lambda at: f"{at.timestamp() * 1e3:.0f}", "time_ms,mW", 1e3),
    "joules": (iso(UTC), "time,energy_J", 1),
    "watt-hours": (iso(UTC), "time,Energy (Wh)", 1 / 3600),
    "kWh": (iso(UTC), "ts,kWh total", 1 / 3.6e6),
    "watt-hours in words": (iso(UTC), "time,Watt hours", 1 / 3600),
    "watts beside watt-hours": (iso(UTC), "time,power W,Wh", 1),
    "other columns": (iso(UTC), "time,W,V,comment", 1),
}


def test_each_title_that_the_page_names_is_read(request, tmp_path):
    page = (request.config.rootpath / "docs" / "how-to" / "energy-meter.md").read_text(encoding="utf-8")
    titles = {
        quantity: re.findall("`([^`]+)`", cell)
        for quantity, cell in re.findall(r"^\| ([\w ]+) \|([^|]+)\|", page, re.MULTILINE)
    }
    for time_title in titles["time"]:
        for value_title in (*titles["power"], *titles["or energy that adds up"]):
            (tmp_path / "meter.csv").write_text(f"{time_title},{value_title}\n1767268800,1\n1767268801,2\n")
            assert len(read_meter(tmp_path / "meter.csv").values) == 2


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_gives_the_same_instants_and_values(tmp_path, way):
    show, header, per_unit = WAYS[way]
    delimiter = next((mark for mark in ";\t" if mark in header), ",")
    more = delimiter.join([""] * (header.count(delimiter)))
    rows = [f"{show(BEGIN + timedelta(seconds=n))}{delimiter}{(400 + n) * per_unit:.9g}{more}" for n in range(3)]
    file = tmp_path / "meter.csv"
    file.write_text("\n".join([header, *rows, ""]), encoding="utf-8-sig")
    readings = read_meter(file)
    assert readings.utc_ns.tolist() == pytest.approx([BEGIN_NS + n * 10**9 for n in range(3)], abs=1000)
    assert readings.values.tolist() == pytest.approx([400, 401, 402], rel=1e-6)
    assert readings.is_counter == ("ratt" in way or way in ("joules", "watt-hours", "kWh", "watt-hours in words"))


def test_decimal_commas_and_lines_without_a_reading(tmp_path):
    file = tmp_path / "meter.csv"
    file.write_text("time;W\n100;1,5\n101;\n102;nan\n103;2,5\n\n")
    readings = read_meter(file)
    assert readings.utc_ns.tolist() == [100 * 10**9, 103 * 10**9]
    assert readings.values.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("time,W\n", "fewer than two readings"),
        ("\x00\x01\x02\n\x00", "no column of time"),
        ("time,volts\n1,230\n", "no column of watts, joules or Wh"),
        ("time,energy\n1,230\n", "no column of watts, joules or Wh"),
        ("time,apparent_power_va\n1,230\n", "no column of watts, joules or Wh"),
        ("time,reactive power\n1,230\n", "no column of watts, joules or Wh"),
        ("time,W in,W out\n1,2,3\n", "W in, W out"),
        ("time,W\n2026-01-01T12:00:00Z,1\n2026-01-01T12:00:01,2\n", "line 3: '2026-01-01T12:00:01' has no zone"),
        ("time,W\n2026-01-01,1\n", "has no zone"),
        ("time,W\n2026-13-01T12:00:00Z,1\n", "line 2: '2026-13-01T12:00:00Z' is not a time"),
        ("time,W\n1,1\nyesterday,2\n", "line 3: 'yesterday' is not a number"),
        ("time,W\n1767268800250,1\n", "time_ms"),
        ("time,W\n1,1\n2,-3\n", "line 3: '-3' watts"),
        ("time,W\n1,1\n2,inf\n", "line 3"),
        ("time,W\n1,1\n2,n/a\n", "line 3: 'n/a' is not a number"),
        ("time,W\n1,1\n2\n", "line 3: it has fewer columns"),
        ("time,W\n2,1\n1,1\n", "line 3: its time is not later"),
        ("time,W\n1,1\n2,1\n2,1\n", "line 4: its time is not later"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_it(tmp_path, text, words):
    file = tmp_path / "meter.csv"
    file.write_text(text)
    with pytest.raises(MeterFileError, match=words.replace("(", r"\(")) as caught:
        read_meter(file)
    assert "\n" not in str(caught.value)


def test_lines_of_later_parts_are_named_and_have_to_come_later(tmp_path, monkeypatch):
    monkeypatch.setattr("kit.profile.meter_file.LINES_AT_A_TIME", 10)
    file = tmp_path / "meter.csv"
    file.write_text("time,W\n" + "".join(f"{n},1\n" for n in [*range(10), 9]))
    with pytest.raises(MeterFileError, match="line 12: its time"):
        read_meter(file)
    file.write_text("time,W\n" + "".join(f"{n},1\n" for n in range(25)))
    assert read_meter(file).utc_ns.tolist() == [n * 10**9 for n in range(25)]


def test_a_million_lines_take_seconds(tmp_path):
    file = tmp_path / "meter.csv"
    seconds = np.arange(1_000_000) / 10
    np.savetxt(file, np.column_stack([seconds, 100 + seconds % 7]), "%.1f", ",", header="time,W", comments="")
    begin = time.monotonic()
    readings = read_meter(file)
    assert time.monotonic() - begin < 10
    assert (readings.values.size, readings.spacing_ns) == (1_000_000, pytest.approx(100_000_000, abs=100))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(MeterFileError, match="cannot be read"):
        read_meter(tmp_path / "absent.csv")
