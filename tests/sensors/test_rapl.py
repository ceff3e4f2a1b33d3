import os
import tempfile
import time
from pathlib import Path

import pytest
from planted_powercap import RANGE_UJ, PowerCurve, plant_zone

from kit.report.reasons_in_words import sentence
from kit.sensors import rapl
from kit.sensors.sampler import Sampled, SensorSeries
from kit.stats.window_energy import block_energy

SECOND = 1_000_000_000


def mean_power_w(sensor, seconds):
    first = sensor.read()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
        last = sensor.read()
    return (last.value - first.value) / ((last.at_ns - first.at_ns) / 1e9), last.value - first.value


@pytest.fixture(autouse=True)
def powercap_root(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_POWERCAP_ROOT", str(tmp_path))


@pytest.mark.parametrize("wraps", [False, True])
def test_joules_follow_the_planted_power_across_a_wrap(tmp_path, wraps):
    start_uj = RANGE_UJ - 5_000_000 if wraps else 1_000_000  # 5 J before the end of the range: wraps after 0.1 s
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", start_uj, RANGE_UJ)
    with PowerCurve(folder, lambda t: 50 * t, start_uj):
        (sensor,) = rapl.open_sampled()
        power_w, joules = mean_power_w(sensor, 0.5)
    assert power_w == pytest.approx(50.0, rel=0.1)
    assert joules > 15
    if wraps:
        assert int((folder / "energy_uj").read_text()) < start_uj


def test_zones_by_name_with_parts_of_the_package_left_out(tmp_path):
    zones = {"0": "package-0", "0:0": "core", "0:1": "dram", "1": "package-1", "1:1": "dram", "2": "psys"}
    for zone, domain in zones.items():
        plant_zone(tmp_path, f"intel-rapl:{zone}", domain)
    plant_zone(tmp_path, "intel-rapl-mmio:0", "package-0")
    reports = [sensor.report for sensor in rapl.open_sampled(tmp_path / "no cpuinfo")]
    names = ["package-0", "package-0.dram", "package-1", "package-1.dram", "psys"]
    assert [report.name for report in reports] == [f"rapl.{name}" for name in names]
    assert {report.status for report in reports} == {"measured"}
    assert {report.update_period_ns for report in reports} == {1_000_000}
    assert "packages included" in reports[-1].scope
    assert all(report.counter and report.sampled for report in reports)


@pytest.mark.parametrize(
    ("vendor", "family", "model", "status"),
    [
        ("GenuineIntel", 6, 42, "modelled"),  # Sandy Bridge
        ("GenuineIntel", 6, 62, "modelled"),  # Ivy Bridge, server
        ("GenuineIntel", 6, 63, "measured"),  # Haswell, server
        ("GenuineIntel", 6, 143, "measured"),
        ("AuthenticAMD", 25, 1, "modelled"),
        ("HygonGenuine", 24, 0, "modelled"),
    ],
)
def test_the_tier_of_joules_is_that_of_the_processor_with_its_source(tmp_path, vendor, family, model, status):
    for zone, domain in {"0": "package-0", "0:1": "dram", "1": "psys"}.items():
        plant_zone(tmp_path, f"intel-rapl:{zone}", domain)
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\n")
    sensors = rapl.open_sampled(cpuinfo)
    assert [sensor.report.status for sensor in sensors] == [status, status, "measured"]
    package = sensors[0]
    assert package.is_available
    assert (package.report.reason is None) == (status == "measured")
    if package.report.reason is not None:
        assert package.report.reason.values["source"]
        assert vendor in sentence(package.report.reason)
    series = SensorSeries(
        package.report, list(range(0, 12 * SECOND, SECOND // 10)), [6.5 * tick for tick in range(120)]
    )
    (entry,) = Sampled([series]).energy("steady", [(0, 12 * SECOND)], 1, 1)
    assert entry.joules_j > 0
    assert entry.tier == {"modelled": "modelled", "measured": "device_counter"}[status]


def obstacle(root):
    os.environ["KIT_POWERCAP_ROOT"] = str(root)
    (sensor,) = rapl.open_sampled()
    assert (sensor.report.status, sensor.is_available) == ("unavailable", False)
    return sensor.report.reason


def test_each_obstacle_has_its_own_reason(tmp_path):
    assert obstacle(tmp_path).code == "no_rapl_zone"
    assert obstacle(tmp_path / "absent").code == "no_powercap"
    (tmp_path / "container").mkdir()
    (tmp_path / "container" / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    assert obstacle(tmp_path / "container").code == "powercap_masked"
    (plant_zone(tmp_path, "intel-rapl:0", "package-0") / "energy_uj").write_text("garbage\n")
    assert obstacle(tmp_path).code == "file_not_as_expected"


def test_readable_by_root_alone():
    """Root can read everything, so it asks as nobody, who can enter the folder but not open the counter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        file = plant_zone(Path(folder), "intel-rapl:0", "package-0") / "energy_uj"
        file.chmod(0o000)
        is_root = os.geteuid() == 0
        try:
            if is_root:
                os.seteuid(65534)
            why = obstacle(folder)
        finally:
            if is_root:
                os.seteuid(0)
    assert (why.code, why.values["file"]) == ("root_only", str(file))


def write_counter(folder, energy_uj):
    with (folder / "energy_uj").open("r+") as file:
        file.write(f"{energy_uj:015d}")


@pytest.mark.parametrize("after_uj", [0, 40_000, 90_000_000])
def test_a_counter_that_is_reset_falls_and_gives_no_joules(tmp_path, after_uj):
    """It falls from 100 J in a range of 262 kJ: no package draws what a wrap would mean."""
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 0, RANGE_UJ)
    (sensor,) = rapl.open_sampled()
    at_ns, joules = [], []
    for tick in range(120):
        write_counter(folder, tick * 1_000_000 if tick < 100 else after_uj + (tick - 100) * 1_000_000)
        at_ns.append(tick * 100_000_000)
        joules.append(sensor.read().value)
        time.sleep(0.0002)
    assert joules[99] == pytest.approx(99.0)
    assert block_energy(at_ns, joules, at_ns[0], at_ns[-1], 1_000_000, is_counter=True).code == "counter_reset"
    assert Sampled([SensorSeries(sensor.report, at_ns, joules)]).summaries([(at_ns[0], at_ns[-1])]) == {}
    # The counter goes on after the reset.
    after = block_energy(at_ns[101:], joules[101:], at_ns[0], at_ns[-1], 1_000_000, is_counter=True)
    assert (after.code, joules[-1] - joules[101]) == ("energy_low_coverage", pytest.approx(18.0))


@pytest.mark.parametrize("range_text", ["0", "-1", "", "unknown", None])
def test_a_zone_that_does_not_say_where_it_wraps_is_read(tmp_path, range_text):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    (folder / "max_energy_range_uj").unlink() if range_text is None else (folder / "max_energy_range_uj").write_text(
        range_text
    )
    (sensor,) = rapl.open_sampled()
    readings = []
    for energy_uj in (2_000_000, 5_000_000, 500_000, 1_500_000):
        write_counter(folder, energy_uj)
        readings.append(sensor.read().value)
    # A fall is a reset: nobody knows whether it is a wrap.
    assert (sensor.is_available, readings) == (True, [pytest.approx(joules) for joules in (1.0, 4.0, 0.0, 1.0)])


def test_a_single_failed_read_is_none_and_the_next_goes_on(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000, RANGE_UJ)
    (sensor,) = rapl.open_sampled()
    (folder / "energy_uj").write_text("x" * 15)
    assert sensor.read().value is None
    write_counter(folder, 3_000_000)
    assert sensor.read().value == pytest.approx(2.0)
