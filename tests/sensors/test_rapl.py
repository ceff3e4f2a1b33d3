import os
import tempfile
import time
from pathlib import Path

import pytest
from planted_powercap import RANGE_UJ, PowerCurve, plant_zone

from kit.sensors import rapl


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


def test_wrap_is_exact(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 900_000, 1_000_000)
    (sensor,) = rapl.open_sampled()
    before = sensor.read().value
    with (folder / "energy_uj").open("r+") as file:
        file.write(f"{100_000:015d}")
    assert sensor.read().value - before == pytest.approx(0.2)


def test_zones_by_name_with_parts_of_the_package_left_out(tmp_path):
    plant_zone(tmp_path, "intel-rapl:0", "package-0")
    plant_zone(tmp_path, "intel-rapl:0:0", "core")
    plant_zone(tmp_path, "intel-rapl:0:1", "dram")
    plant_zone(tmp_path, "intel-rapl:1", "package-1")
    plant_zone(tmp_path, "intel-rapl:1:1", "dram")
    plant_zone(tmp_path, "intel-rapl:2", "psys")
    plant_zone(tmp_path, "intel-rapl-mmio:0", "package-0")
    reports = [sensor.probe() for sensor in rapl.open_sampled()]
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
    assert all(report.counter and report.sampled for report in reports)


def obstacle():
    (sensor,) = rapl.open_sampled()
    assert (sensor.probe().status, sensor.is_available) == ("unavailable", False)
    return sensor.probe().reason


def test_no_powercap_tree_and_a_tree_without_rapl(tmp_path, monkeypatch):
    assert obstacle().code == "no_rapl_zone"
    monkeypatch.setenv("KIT_POWERCAP_ROOT", str(tmp_path / "absent"))
    assert obstacle().code == "no_powercap"


def test_masked_in_a_container(tmp_path):
    (tmp_path / "intel-rapl:0").symlink_to("../../devices/virtual/powercap/intel-rapl/intel-rapl:0")
    assert obstacle().code == "powercap_masked"


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
def closed_tree(monkeypatch):
    """Zone whose counter its reader may not open, in a folder that everybody may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (plant_zone(Path(name), "intel-rapl:0", "package-0") / "energy_uj").chmod(0o000)
        monkeypatch.setenv("KIT_POWERCAP_ROOT", name)
        yield Path(name)


def test_readable_by_root_alone(closed_tree, as_another_user):
    found = obstacle()
    assert (found.code, found.values["file"]) == ("root_only", f"{closed_tree}/intel-rapl:0/energy_uj")


def test_not_a_number(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0")
    (folder / "energy_uj").write_text("garbage\n")
    assert obstacle().code == "file_not_as_expected"


def test_a_single_failed_read_is_none_and_the_next_goes_on(tmp_path):
    folder = plant_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000, RANGE_UJ)
    (sensor,) = rapl.open_sampled()
    with (folder / "energy_uj").open("r+") as file:
        file.write("x" * 15)
    assert sensor.read().value is None
    with (folder / "energy_uj").open("r+") as file:
        file.write(f"{3_000_000:015d}")
    assert sensor.read().value == pytest.approx(2.0)
