"""An external meter beside a run: its file in every form, clocks that drift, and the planted joules of each block."""

import contextlib
import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone

import profile_builder as b
import pytest
from kit_process import invoke as kit
from metered import BLOCK_S, DRAWN, RUN_S, SAMPLES, meter_lines, metered_run
from msgspec.structs import replace
from refusals import refused

from kit.compare.joules import launch_energy
from kit.compare.meter import HEADERS, Meter, read_meter
from kit.compare.runs import run_of

AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, UTC)
AT_NS = 1_767_268_800_250_000_000
WAYS = {
    "UTC": datetime.isoformat,
    "Z": lambda at: at.isoformat().replace("+00:00", "Z"),
    "east, with a space": lambda at: at.astimezone(timezone(timedelta(hours=5, minutes=30))).isoformat(" "),
    "west": lambda at: at.astimezone(timezone(timedelta(hours=-8))).isoformat(),
    "zone without a colon": lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.%f%z"),
    "Unix seconds": lambda at: f"{at.timestamp():.6f}",
}


def written(folder, text):
    (folder / "m.csv").write_text(text if isinstance(text, str) else "\n".join(text), encoding="utf-8-sig")
    return folder / "m.csv"


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_a_time_gives_the_same_instants(tmp_path, way, header):
    rows = [f"{WAYS[way](AT + timedelta(seconds=n))},{400 + n}" for n in range(3)]
    readings = read_meter(written(tmp_path, [header, *rows, ""]))
    assert readings.at_ns.tolist() == pytest.approx([AT_NS + n * b.S for n in range(3)], abs=1000)
    assert (readings.values.tolist(), readings.is_counter) == ([400, 401, 402], header == "time,energy_j")
    assert readings.spacing_ns == pytest.approx(b.S, abs=1000)


def test_lines_without_a_reading_are_gaps(tmp_path):
    readings = read_meter(written(tmp_path, "time,power_w\r\n100,1.5\r\n101,\r\n\r\n102,nan\r\n103,2.5\r\n\r\n"))
    assert (readings.at_ns.tolist(), readings.values.tolist()) == ([100 * b.S, 103 * b.S], [1.5, 2.5])


W = "time,power_w\n"


def drawn(built):
    """Watts of each cell's blocks, null where there are none; and all entries of the meter."""
    blocks = {
        launches[0].cell.backend: [launch_energy(launch) for launch in launches]
        for launches in run_of("p", built).table.by_cell.values()
    }
    powers = {name: [energy and energy.power_w for energy in energies] for name, energies in blocks.items()}
    launches = [launch for result in built.cells for launch in result.launches]
    return powers, [entry for launch in launches for entry in launch.energy if entry.sensor == "meter"]


def aligned(folder, run, *how, **lines):
    return drawn(Meter(written(folder, meter_lines(*how, **lines))).added_to("run", run))


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("ppm", [0.0, 80.0, -80.0])
@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=5, minutes=45))])
def test_each_block_has_the_planted_joules_within_the_stated_error(tmp_path, header, ppm, zone):
    powers, entries = aligned(tmp_path, metered_run(ppm=ppm), header, zone=zone)
    assert len(entries) == 6
    for name, (power_w, _) in DRAWN.items():
        assert powers[name] == [pytest.approx(power_w, rel=entries[0].error_fraction)] * 3
    for entry in entries:
        assert (entry.tier, entry.samples) == ("external_meter", SAMPLES)
        # Half of the meter's spacing, and what a crystal's rate may have changed by; the rate itself is taken out.
        assert entry.align_error_ns / b.S == pytest.approx(0.5 + 2.5e-6 * RUN_S, abs=1e-4)
        assert entry.error_fraction < 0.05 + (0.5 + 2.5e-6 * RUN_S) / (BLOCK_S - 2)


def test_a_gap_costs_the_block_that_it_is_in(tmp_path):
    powers, entries = aligned(tmp_path, metered_run(), left_out=[(220, 240)])
    assert [power is None for power in (*powers["torch"], *powers["jax"])] == [False, True, *[False] * 4]
    assert [entry.reason.code for entry in entries if entry.reason] == ["energy_gap"]


def test_without_long_blocks_only_a_fast_meter_gives_joules(tmp_path):
    run = metered_run(has_blocks=False)
    steps = sum(run.cells[0].launches[0].blocks.all_steps())
    powers, entries = aligned(tmp_path, run, spacing_s=0.01)
    assert powers["torch"] == [pytest.approx(300.0, rel=0.02)] * 3
    assert (entries[0].samples, entries[0].method) == (steps * 128, "between_readings")
    _, entries = aligned(tmp_path, metered_run(has_blocks=False))
    assert {entry.reason.code for entry in entries} == {"meter_misaligned"}


def test_clocks_that_went_apart_are_not_believed(tmp_path):
    run = metered_run()
    later = replace(run.state.after, raw_ns=run.state.after.raw_ns - 20 * b.S)  # slept, or set
    run.state = replace(run.state, after=later)
    _, entries = aligned(tmp_path, run)
    assert {entry.reason.code for entry in entries} == {"meter_misaligned"}
    assert entries[0].reason.values["error_s"] == pytest.approx(20.5, abs=0.01)


def test_readings_of_days_before_and_after_a_run_do_not_matter(tmp_path):
    lines = [*meter_lines()]
    years = [datetime(year, 1, 1, tzinfo=UTC).isoformat() for year in (2025, 2027)]
    meter = Meter(written(tmp_path, [lines[0], f"{years[0]},7", *lines[1:], f"{years[1]},7"]))
    assert drawn(meter.added_to("run", metered_run()))[0]["jax"] == [pytest.approx(180.0, rel=0.02)] * 3


def test_what_cannot_be_aligned_is_one_line(tmp_path):
    meter = Meter(written(tmp_path, meter_lines()))
    says = refused(meter.added_to, "run", metered_run(has_clock=False))
    assert "run: --meter needs the time of the run's clock" in says
    meter.added_to("run", metered_run())
    assert "covers one machine" in refused(meter.added_to, "other", metered_run(identity=b.identity("Other CPU")))
    tomorrow = Meter(written(tmp_path, meter_lines(shift_s=86_400)))
    assert (
        "the run took 2026-03-29 00:30:00 to 2026-03-29 00:46:40 UTC, the file covers 2026-03-30 00:29:50"
        in refused(tomorrow.added_to, "run", metered_run())
    )


@pytest.fixture
def folder(tmp_path):
    b.write(tmp_path / "run.json", metered_run())
    b.write(tmp_path / "old.json", metered_run(has_clock=False, id="old", identity=b.identity("Other CPU")))
    written(tmp_path, meter_lines())
    (tmp_path / "bad.csv").write_text(f"{W}1,1\n2,-3\n")
    with contextlib.chdir(tmp_path):
        yield tmp_path


def test_the_table_and_the_price_are_of_the_metered_joules(folder):
    before = (folder / "run.json").read_bytes()
    assert "needs joules" in str(kit("compare", "run.json", "--price-kwh", "0.3").exception)
    done = kit("compare", "run.json", "--meter", "m.csv", "--price-kwh", "0.3", "--format", "csv")
    torch = next(row for row in csv.DictReader(io.StringIO(done.stdout)) if row["name"] == "torch")
    planted_j = 300 * BLOCK_S / SAMPLES
    assert float(torch["energy_per_sample_j"]) == pytest.approx(planted_j, rel=float(torch["energy_error_share"]))
    assert (torch["energy_tier"], torch["energy_launches"]) == ("external_meter", "3")
    assert float(torch["cost_per_million"]) == pytest.approx(planted_j * 1e6 / 3.6e6 * 0.3, rel=0.05)
    assert (folder / "run.json").read_bytes() == before


def test_the_audit_sees_the_meter_and_names_profiles_that_it_cannot_be_aligned_to(folder):
    # The other machine's, which comes first, keeps nothing from the one that the file is of.
    result = kit("audit", "old.json", "run.json", "--rule", "few-updates", "--json", "--meter", "m.csv")
    document = json.loads(result.stdout)
    assert {(finding["profile"], finding["values"]["sensor"]) for finding in document["findings"]} == {("run", "meter")}
    (unread,) = [profile for profile in document["profiles"] if profile.get("error")]
    assert (result.return_value, unread["label"], "run's clock" in unread["error"]) == (2, "old", True)
