"""An external meter beside a run: its file in every form, clocks that drift, and the planted joules of each block."""

import contextlib
import csv
import io
import json
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import profile_builder as b
import pytest
from kit_process import invoke as kit
from metered import BLOCK_S, DRAWN, RUN_S, SAMPLES, meter_lines, metered_run
from msgspec.structs import replace
from refusals import refused

import kit as kit_of_python
from kit.compare.joules import launch_energy
from kit.compare.meter import Meter, MeterChoice
from kit.compare.meter_logs import read_meter
from kit.compare.runs import run_of
from kit.stats.window_energy import refresh_ns

AT = datetime(2026, 1, 1, 12, 0, 0, 250_000, UTC)
AT_NS = 1_767_268_800_250_000_000
HEADERS = ("time,power_w", "time,energy_j")
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
    return powers, [entry for launch in launches for entry in launch.energy if entry.sensor == "meter.wall"]


def meter_of(folder, lines):
    return Meter(MeterChoice([written(folder, lines)]))


def aligned(folder, run, *how, **lines):
    return drawn(meter_of(folder, meter_lines(*how, **lines)).added_to("run", run))


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


# How a meter fails in one of torch's blocks, or in all: lines of its file, and why there are no joules.
FAILURES = {
    "gaps": ({"left_out": [(120 + 100 * n, 140 + 100 * n) for n in range(3)]}, {"energy_gap"}),
    "restarts": ({"header": "time,energy_j", "restarts_s": [130, 230, 330]}, {"counter_reset"}),
    "constant": ({"constant": True, "spacing_s": 0.5}, {"constant_power"}),
    "coarse": ({"spacing_s": 5.0}, {"energy_block_too_short"}),
    "a sensor of 6 s, written 20 times a second": ({"spacing_s": 0.05, "refresh_s": 6.0}, {"energy_block_too_short"}),
    "milliwatts": ({"scale": 1000.0}, {"meter_implausible"}),
    "kilowatts": ({"scale": 0.001}, {"meter_implausible"}),
}


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_meter_that_fails_leaves_a_reason_and_never_another_sensors_joules(tmp_path, failure, device):
    lines, codes = FAILURES[failure]
    run = metered_run(own_w=50.0, device=device)
    meter = meter_of(tmp_path, meter_lines(**lines))
    powers, entries = drawn(meter.replaces_joules_of("run", run))
    assert powers["torch"] == [None] * 3
    assert {entry.reason.code for entry in entries[:3]} == codes
    # The other framework's joules are the meter's, or there are none.
    assert powers["jax"] == [None] * 3 or powers["jax"] == [pytest.approx(180.0, rel=0.05)] * 3


@pytest.mark.parametrize(("spacing_s", "refresh_s"), [(0.05, 1.0), (0.1, 0.5), (0.5, 1.0), (1.0, 1.0)])
def test_the_error_is_of_the_period_that_the_values_show(tmp_path, spacing_s, refresh_s):
    powers, entries = aligned(tmp_path, metered_run(), spacing_s=spacing_s, refresh_s=refresh_s)
    for name, (power_w, _) in DRAWN.items():
        assert powers[name] == [pytest.approx(power_w, rel=entries[0].error_fraction)] * 3
    assert entries[0].error_fraction >= refresh_s / BLOCK_S
    assert entries[0].updates <= BLOCK_S / refresh_s + 2


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_a_steady_load_that_repeats_its_watts_does_not_make_a_fast_meter_slow(share):
    fresh = np.random.default_rng(7).random(2_000) < share
    watts = 200.0 + np.cumsum(fresh) % 2
    assert refresh_ns(np.arange(2_000) * 1e9, watts) <= 2e9


def test_a_meter_that_changed_once_or_never_has_no_known_period():
    at_ns = np.arange(100) * 1e9
    assert refresh_ns(at_ns, np.full(100, 200.0)) == 99e9
    assert refresh_ns(at_ns, np.repeat([100.0, 200.0], [30, 70])) == 69e9


def test_an_entry_that_does_not_say_when_it_ran_keeps_no_other_sensors_joules(tmp_path):
    run = metered_run(own_w=50.0)
    first = run.cells[0].launches[0]
    first.energy = [replace(first.energy[0], begin_ns=None)]
    powers, entries = aligned(tmp_path, run)
    assert (powers["torch"][0], entries[0].reason.code) == (None, "energy_block_without_time")


@pytest.mark.parametrize(
    ("facts", "power_w"),
    [
        ({"cpu.cores_logical": 2, "hypervisor": "none"}, 6_000.0),
        ({"cpu.cores_logical": 384, "hypervisor": "none"}, 16_000.0),
        # A guest does not see the machine that is metered.
        ({"cpu.cores_logical": 2, "hypervisor": "kvm"}, 40_000.0),
    ],
)
def test_what_is_believed_of_a_machine_grows_with_it(tmp_path, facts, power_w):
    run = metered_run(identity=b.changed(b.identity(), facts))
    scale = power_w / 300
    _, entries = drawn(meter_of(tmp_path, meter_lines(scale=scale)).added_to("run", run))
    assert {entry.reason.code for entry in entries[:3]} == {"meter_implausible"}
    _, entries = drawn(
        meter_of(tmp_path, meter_lines(scale=scale / 2)).added_to(
            "run", metered_run(**{"identity": b.changed(b.identity(), facts)})
        )
    )
    assert entries[0].reason is None


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
    meter = meter_of(tmp_path, [lines[0], f"{years[0]},7", *lines[1:], f"{years[1]},7", ""])
    assert drawn(meter.added_to("run", metered_run()))[0]["jax"] == [pytest.approx(180.0, rel=0.02)] * 3


def test_what_cannot_be_aligned_is_one_line(tmp_path):
    meter = meter_of(tmp_path, meter_lines())
    says = refused(meter.added_to, "run", metered_run(has_clock=False))
    assert "run: --meter needs the time of the run's clock" in says
    meter.added_to("run", metered_run())
    assert "covers one machine" in refused(meter.added_to, "other", metered_run(identity=b.identity("Other CPU")))
    tomorrow = meter_of(tmp_path, meter_lines(shift_s=86_400))
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


@pytest.fixture
def half_metered(folder):
    """A run with joules of its own, and a meter that lost the blocks of torch."""
    b.write(folder / "run.json", metered_run(own_w=50.0))
    written(folder, meter_lines(left_out=[(120 + 100 * n, 140 + 100 * n) for n in range(3)]))
    return folder


WHY = "energy of torch: no valid reading of meter.wall: the sensor gave nothing for 21 s; the limit is 3 s"


@pytest.mark.parametrize("wide", [(), ("--wide",), ("--why",), ("--format", "markdown", "--wide")])
def test_the_tables_have_a_dash_and_say_why(half_metered, wide):
    text = " ".join(kit("compare", "run.json", "--meter", "m.csv", *wide).stdout.replace("\n", " ").split())
    assert WHY in text and "rapl" not in text
    if wide != ("--why",):
        assert "of the whole machine by external meter" in text


def test_a_meter_that_failed_in_all_blocks_leaves_a_column_of_dashes(folder):
    b.write(folder / "run.json", metered_run(own_w=50.0))
    written(folder, meter_lines(scale=1000.0))
    lines = kit("compare", "run.json", "--meter", "m.csv").stdout.splitlines()
    begin = next(line for line in lines if "J/1k" in line).index("J/1k")
    rows = [line for line in lines if line.startswith(("  torch ", "  jax "))]
    assert [line[begin : begin + 4].strip() for line in rows] == ["–", "–"]
    assert "no valid reading of meter.wall" in " ".join(lines)


def test_the_other_formats_have_no_joules_and_the_reason(half_metered):
    command = ("compare", "run.json", "--meter", "m.csv", "--format")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(kit(*command, "csv").stdout))}
    joules = [name for name in rows["torch"] if name.startswith("energy_") and name.endswith(("_j", "_w", "_js"))]
    assert {rows["torch"][name] for name in joules} == {""} and len(joules) > 5
    assert rows["torch"]["energy_refusal"] == "energy_gap" and rows["jax"]["energy_refusal"] == ""
    assert float(rows["jax"]["energy_power_w"]) == pytest.approx(180.0, rel=0.02)
    document = json.loads(kit(*command, "json").stdout)
    (note,) = [note for note in document["notes"] if note["what"]["code"] == "energy_refused"]
    assert (note["what"]["values"], note["because"]["code"]) == (
        {"rows": "torch", "sensor": "meter.wall"},
        "energy_gap",
    )
    assert 'row="torch"' not in "".join(
        line for line in kit(*command, "prometheus").stdout.splitlines() if "energy_per_sample" in line
    )


def test_frames_plots_and_pages_are_of_the_meter(half_metered):
    compared = kit_of_python.load("run.json").compare(meter="m.csv")
    frame = compared.to_columns()
    known = dict(zip(frame["name"], frame["energy_power_w"], strict=True))
    assert (known["torch"], known["jax"]) == (None, pytest.approx(180.0, rel=0.02))
    assert WHY in " ".join(str(compared).split()) and WHY in compared._repr_html_()
    pytest.importorskip("matplotlib")
    power = ("plot", "run.json", "--kind", "times", "--metric", "energy_power_w", "-o", "power.svg", "--force")
    assert kit(*power).stderr == ""
    assert "not drawn: mlp/torch" in kit(*power, "--meter", "m.csv").stderr
    assert kit("report", "run.json", "-o", "page.html", "--meter", "m.csv").exit_code == 0
    page = (half_metered / "page.html").read_text()
    assert WHY in page and "300 W" not in page.partition("Findings")[0]


def test_a_log_of_another_time_is_an_error_alone_and_a_reason_beside_others(folder):
    b.write(folder / "run.json", metered_run(own_w=50.0))
    b.write(folder / "late.json", metered_run(own_w=50.0, id="late", after_s=86_400))
    alone = kit("compare", "late.json", "--meter", "m.csv")
    assert "has no reading during late" in str(alone.exception)
    both = " ".join(kit("compare", "run.json", "late.json", "--meter", "m.csv").stdout.split())
    assert "energy of torch · late, jax · late: no valid reading of meter: the meter's file has no reading" in both
    assert "rapl" not in both
    assert "has no reading during late" in str(kit("plot", "late.json", "-o", "a.svg", "--meter", "m.csv").exception)


def test_the_audit_sees_the_meter_and_names_profiles_that_it_cannot_be_aligned_to(folder):
    # The other machine's, which comes first, keeps nothing from the one that the file is of.
    result = kit("audit", "old.json", "run.json", "--rule", "few-updates", "--json", "--meter", "m.csv")
    document = json.loads(result.stdout)
    assert {(finding["profile"], finding["values"]["sensor"]) for finding in document["findings"]} == {
        ("run", "meter.wall")
    }
    (unread,) = [profile for profile in document["profiles"] if profile.get("error")]
    assert (result.return_value, unread["label"], "run's clock" in unread["error"]) == (2, "old", True)
