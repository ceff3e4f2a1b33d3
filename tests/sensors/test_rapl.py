import os
import tempfile
import time
from pathlib import Path

import pytest
from planted_powercap import PowerCurve, plant_zone

from kit.sensors import rapl
from kit.sensors.stamp import now_ns
from kit.worker.sampler_process import SamplerProcess

RANGE_UJ = 262_143_328_850


def mean_power_w(sensor, seconds):
    first = sensor.read()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
        last = sensor.read()
    return (last.value - first.value) / ((last.at_ns - first.at_ns) / 1e9), last.value - first.value


@pytest.mark.parametrize("wraps", [False, True])
def test_joules_follow_the_planted_power_across_a_wrap(tmp_path, wraps):
    start_uj = RANGE_UJ - 5_000_000 if wraps else 1_000_000  # 5 J before the end of the range: wraps after 0.1 s
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", start_uj, RANGE_UJ)
    with PowerCurve(folder, 50.0, start_uj, RANGE_UJ):
        (sensor,) = rapl.open_all(tmp_path)
        power_w, joules = mean_power_w(sensor, 0.5)
        sensor.close()
    assert power_w == pytest.approx(50.0, rel=0.1)
    assert joules > 15
    if wraps:
        assert int((folder / "energy_uj").read_text()) < start_uj


def test_wrap_is_exact(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 900_000, 1_000_000)
    (sensor,) = rapl.open_all(tmp_path)
    before = sensor.read().value
    with (folder / "energy_uj").open("r+") as file:
        file.write(f"{100_000:015d}")
    time.sleep(0.002)  # 0.2 J within this is a plausible power
    assert sensor.read().value - before == pytest.approx(0.2)


def test_a_reset_counter_is_not_taken_for_a_wrap(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000, RANGE_UJ)
    (sensor,) = rapl.open_all(tmp_path)
    with (folder / "energy_uj").open("r+") as file:
        file.write(f"{0:015d}")
    assert sensor.read().value is None
    assert sensor.read().value is None


def test_zones_by_name_with_parts_of_the_package_left_out(tmp_path):
    plant_zone(tmp_path, "intel-rapl:0", "package-0")
    plant_zone(tmp_path, "intel-rapl:0:0", "core")
    plant_zone(tmp_path, "intel-rapl:0:1", "dram")
    plant_zone(tmp_path, "intel-rapl:1", "package-1")
    plant_zone(tmp_path, "intel-rapl:1:1", "dram")
    plant_zone(tmp_path, "intel-rapl:2", "psys")
    plant_zone(tmp_path, "intel-rapl-mmio:0", "package-0")
    reports = [sensor.probe() for sensor in rapl.open_all(tmp_path)]
    assert [report.name for report in reports] == [
        "rapl.package-0",
        "rapl.package-0.dram",
        "rapl.package-1",
        "rapl.package-1.dram",
        "rapl.psys",
    ]
    assert {report.status for report in reports} == {"measured"}
    assert {report.update_period_ns for report in reports} == {1_000_000}
    assert "packages included" in reports[-1].scope


def reason(root):
    (report,) = [sensor.probe() for sensor in rapl.open_all(root)]
    assert report.status == "unavailable"
    return report.reason


def test_no_powercap_tree(tmp_path):
    assert "CONFIG_POWERCAP" in reason(tmp_path / "absent")


def test_tree_without_rapl(tmp_path):
    assert "modprobe intel_rapl_msr" in reason(tmp_path)


def test_masked_in_a_container(tmp_path):
    (tmp_path / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    assert "masks the powercap tree" in reason(tmp_path)


@pytest.fixture
def as_another_user():
    """Root reads everything: ask as nobody."""
    if os.geteuid() == 0:
        os.seteuid(65534)
        yield
        os.seteuid(0)
    else:
        yield


@pytest.fixture
def closed_tree():
    """Zone whose counter its reader may not open, in a folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (plant_zone(Path(name), "intel-rapl:0", "package-0") / "energy_uj").chmod(0o000)
        yield Path(name)


def test_readable_by_root_alone(closed_tree, as_another_user):
    said = reason(closed_tree)
    assert "CVE-2020-8694" in said
    assert f"chmod a+r {closed_tree}/intel-rapl:0/energy_uj" in said


def test_not_a_number(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0")
    (folder / "energy_uj").write_text("garbage\n")
    assert "does not hold a number" in reason(tmp_path)


def test_a_single_failed_read_is_none_and_the_next_goes_on(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000, RANGE_UJ)
    (sensor,) = rapl.open_all(tmp_path)
    with (folder / "energy_uj").open("r+") as file:
        file.write("x" * 15)
    assert sensor.read().value is None
    with (folder / "energy_uj").open("r+") as file:
        file.write(f"{3_000_000:015d}")
    assert sensor.read().value == pytest.approx(2.0)


def test_the_sampler_carries_the_planted_power_through_a_wrap(tmp_path, monkeypatch):
    start_uj = RANGE_UJ - 10_000_000
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", start_uj, RANGE_UJ)
    monkeypatch.setenv("KIT_POWERCAP_ROOT", str(tmp_path))
    with PowerCurve(folder, 80.0, start_uj, RANGE_UJ), SamplerProcess() as watching:
        begin_ns = now_ns()
        time.sleep(0.8)
        end_ns = now_ns()
    assert int((folder / "energy_uj").read_text()) < start_uj
    series = watching.samples.series("rapl.package-0")
    seconds = (series[-1].at_ns - series[0].at_ns) / 1e9
    assert (series[-1].value - series[0].value) / seconds == pytest.approx(80.0, rel=0.1)
    entries = {entry.sensor: entry for entry in watching.energies(begin_ns, end_ns)}
    assert entries["rapl.package-0"].joules_j is None
    assert "10 s are needed" in entries["rapl.package-0"].reason
