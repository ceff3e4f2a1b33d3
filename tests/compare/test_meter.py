"""An external meter beside a run: a planted power in UTC, clocks that drift, and the joules of each block."""

import contextlib
import json
import math
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import numpy as np
import profile_builder as b
import pytest
from click.testing import CliRunner

from kit.cli.app import app
from kit.compare.energy import launch_energy
from kit.compare.meter import Meter
from kit.errors import KitError
from kit.profile.sensor import Energy
from kit.profile.store import read_profile

S = 1_000_000_000
BEGIN = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # half an hour before Europe's clocks go forward
RUN_S = 1_000
RAW_BEGIN = 500 * S
BLOCK_S, SAMPLES = 60, 6_000
STEPS = [("torch", 300.0, 100), ("jax", 180.0, 400)]  # watts in its blocks, and when the first begins


def watts(second):
    """What the machine draws: 100 W, and in each block what its member draws."""
    for _, power_w, first_s in STEPS:
        for number in range(3):
            if 0 <= second - first_s - 100 * number < BLOCK_S:
                return power_w * (1 + 0.002 * math.sin(40 * second))
    return 100.0


def profile(*, ppm=0.0, has_blocks=True, has_clock=True, begin=BEGIN, **more):
    """Three rounds of a long block each, `ppm`: by how much the raw clock goes faster than UTC."""

    def raw(second):
        return RAW_BEGIN + round(second * S * (1 + ppm / 1e6))

    def with_block(first_s):
        def change(launch):
            begin_ns = raw(first_s + 100 * launch.round)
            block = Energy(
                sensor="rapl.package-0", joules_j=None, window_ns=None, samples=SAMPLES, block_ns=BLOCK_S * S,
                begin_ns=begin_ns, steps=60, reason=b.reason("counter_stuck", block_s=60.0),
            )  # fmt: skip
            launch.energy = [block] if has_blocks else []
            launch.blocks.begin_ns = [begin_ns + number * S for number in range(len(launch.blocks.begin_ns))]

        return change

    members = [b.member(name, 2.0, change=with_block(first_s)) for name, _, first_s in STEPS]
    built = b.profile(b.group("mlp train", *members), rounds=3, cycles=6, **more)
    taken = [(begin + timedelta(seconds=second)).isoformat(timespec="microseconds") for second in (0, RUN_S)]
    anchors = [{"raw_ns": raw(second), "raw_width_ns": 200} if has_clock else {} for second in (0, RUN_S)]
    before, after = (
        msgspec.structs.replace(built.state.before, taken=at, **anchor)
        for at, anchor in zip(taken, anchors, strict=True)
    )
    built.state = msgspec.structs.replace(built.state, before=before, after=after)
    return built


def write_meter(path, spacing_s=1.0, *, zone=UTC, column="power_w", left_out=(), shift_s=0.0):
    rows, joules = [], 0.0
    for number in range(int((RUN_S + 20) / spacing_s)):
        second = number * spacing_s - 10
        joules += watts(second - spacing_s / 2) * spacing_s
        if not any(begin <= second < end for begin, end in left_out):
            at = (BEGIN + timedelta(seconds=second + shift_s)).astimezone(zone)
            rows.append(f"{at.isoformat()},{watts(second) if column == 'power_w' else joules}")
    path.write_text("\n".join([f"time,{column}", *rows]) + "\n")
    return path


def drawn(built):
    """Watts of each cell's blocks, null where there are none; and all entries of the meter."""
    powers = {
        result.cell.backend: [
            of and of.power_w for of in (launch_energy(result.cell, each) for each in result.launches)
        ]
        for result in built.cells
    }
    entries = [of for result in built.cells for each in result.launches for of in each.energy if of.sensor == "meter"]
    return powers, entries


@pytest.mark.parametrize("column", ["power_w", "energy_j"])
@pytest.mark.parametrize("ppm", [0.0, 80.0, -80.0])
@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=45))])
def test_each_block_has_the_planted_joules_within_the_error_that_is_told(tmp_path, column, ppm, zone):
    meter = Meter(write_meter(tmp_path / "m.csv", column=column, zone=zone))
    powers, entries = drawn(meter.added_to("run", profile(ppm=ppm)))
    assert len(entries) == 6
    for name, power_w, _ in STEPS:
        assert powers[name] == [pytest.approx(power_w, rel=entries[0].error_fraction)] * 3
    for entry in entries:
        assert entry.tier == "external_meter"
        # Half of the meter's spacing, and what a crystal's rate may have changed by; the rate itself is taken out.
        assert entry.align_error_ns / S == pytest.approx(0.5 + 2.5e-6 * RUN_S, abs=1e-4)
        assert entry.error_fraction < 0.05 + (0.5 + 2.5e-6 * RUN_S) / (BLOCK_S - 2)
        assert entry.samples == SAMPLES


def test_a_gap_costs_the_block_that_it_is_in(tmp_path):
    meter = Meter(write_meter(tmp_path / "m.csv", left_out=[(220, 240)]))
    powers, entries = drawn(meter.added_to("run", profile()))
    assert [power is None for power in powers["torch"]] == [False, True, False]
    assert [power is None for power in powers["jax"]] == [False] * 3
    assert [entry.reason.code for entry in entries if entry.reason] == ["energy_gap"]


def test_without_long_blocks_only_a_fast_meter_tells_joules(tmp_path):
    fast = Meter(write_meter(tmp_path / "fast.csv", 0.01)).added_to("run", profile(has_blocks=False))
    powers, entries = drawn(fast)
    assert powers["torch"] == [pytest.approx(300.0, rel=0.02)] * 3
    steps = sum(fast.cells[0].launches[0].blocks.all_steps())
    assert (entries[0].samples, entries[0].method) == (steps * 128, "between_readings")
    slow = Meter(write_meter(tmp_path / "slow.csv")).added_to("run", profile(has_blocks=False))
    assert {entry.reason.code for entry in drawn(slow)[1]} == {"meter_misaligned"}


def test_clocks_that_went_apart_are_told_and_not_believed(tmp_path):
    built = profile()
    later = msgspec.structs.replace(built.state.after, raw_ns=built.state.after.raw_ns - 20 * S)  # slept, or set
    built.state = msgspec.structs.replace(built.state, after=later)
    entries = drawn(Meter(write_meter(tmp_path / "m.csv")).added_to("run", built))[1]
    assert {entry.reason.code for entry in entries} == {"meter_misaligned"}
    assert math.isclose(entries[0].reason.values["error_s"], 20.5, abs_tol=0.01)


def test_a_million_readings_are_aligned_whatever_lies_around_the_run(tmp_path):
    meter = Meter(write_meter(tmp_path / "m.csv"))
    around = np.arange(1, 1_000_000) * S
    at_ns, values = meter._readings.at_ns, meter._readings.values
    meter._readings = meter._readings._replace(
        at_ns=np.concatenate([at_ns[0] - around[::-1], at_ns, at_ns[-1] + around]),
        values=np.concatenate([around * 0.0 + 7, values, around * 0.0 + 7]),
    )
    assert drawn(meter.added_to("run", profile()))[0]["jax"] == [pytest.approx(180.0, rel=0.02)] * 3


@pytest.mark.parametrize(
    ("more", "shift_s", "says"),
    [
        ({"has_clock": False}, 0, "run: --meter needs the time of the run's clock"),
        (
            {},
            86_400,
            "the run took 2026-03-29 00:30:00 to 2026-03-29 00:46:40 UTC, the file covers 2026-03-30 00:29:50",
        ),
    ],
)
def test_what_cannot_be_aligned_is_one_line(tmp_path, more, shift_s, says):
    meter = Meter(write_meter(tmp_path / "m.csv", shift_s=shift_s))
    with pytest.raises(KitError) as caught:
        meter.added_to("run", profile(**more))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_meter_is_of_one_machine(tmp_path):
    meter = Meter(write_meter(tmp_path / "m.csv"))
    meter.added_to("run", profile())
    with pytest.raises(KitError, match="covers one machine"):
        meter.added_to("other", profile(identity=b.identity("Other CPU")))


def test_the_table_is_by_the_meter_and_says_how_it_is_aligned(tmp_path):
    b.write(tmp_path / "run.json", profile())
    write_meter(tmp_path / "m.csv")
    before = (tmp_path / "run.json").read_bytes()
    words = ["compare", "run.json", "--meter", "m.csv"]
    with contextlib.chdir(tmp_path):
        result, as_json = (
            CliRunner().invoke(app, [*words, more], standalone_mode=False) for more in ("--wide", "--json")
        )
    assert result.exception is as_json.exception is None, result.exception
    assert "by external meter (meter)" in result.stdout
    assert "1,000 readings, one every 1 s, aligned to the run's clock within 0.50" in " ".join(result.stdout.split())
    assert "no power sensor" not in result.stdout
    (torch,) = [row["numbers"] for row in json.loads(as_json.stdout)["groups"][0]["rows"] if row["name"] == "torch"]
    assert torch["energy_per_sample_j"] == pytest.approx(300 * BLOCK_S / SAMPLES, rel=0.01)
    assert (tmp_path / "run.json").read_bytes() == before
    assert not any(of.sensor == "meter" for of in read_profile(tmp_path / "run.json").cells[0].launches[0].energy)
