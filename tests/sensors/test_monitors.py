"""Hardware monitors and Cray's counters: what is planted comes out in watts and joules, under names that tell whose."""

import time

import profile_builder as b
import pytest
from planted_files import plant
from planted_monitors import CrayNode, plant_grace

from kit.compare.joules import device_entries, device_power_w
from kit.profile.sensor import Energy
from kit.sensors import cray, hwmon
from kit.sensors.samples import Samples, Series

SECOND = 1_000_000_000


@pytest.fixture(autouse=True)
def roots(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_HWMON_ROOT", str(tmp_path / "hwmon"))
    monkeypatch.setenv("KIT_CRAY_ROOT", str(tmp_path / "pm_counters"))


def monitors():
    return {sensor.report.name: sensor for sensor in hwmon.open_sampled()}


def test_grace_tells_its_sockets_in_watts_and_says_over_which_time(tmp_path):
    for socket in (0, 1):
        plant_grace(tmp_path / "hwmon", socket, Module_Power=197.1, Grace_Power=36.7, CPU_Power=35.1, SysIO_Power=0.17)
    sensors = monitors()
    assert sensors["hwmon.power_meter.grace_power_socket_1"].read().value == pytest.approx(36.7)
    reports = [sensor.report for sensor in sensors.values()]
    assert {(report.quantity, report.unit, report.mean_over_ns) for report in reports} == {("power", "W", 50_000_000)}
    assert len({report.scope for report in reports}) == 4
    blocks = [energy(name, 120.0) for name in sensors]
    assert device_energy_j(b.cell(device="cpu"), blocks) == pytest.approx(240.0)


def test_a_platform_meter_is_never_taken_for_the_cpu(tmp_path):
    plant_grace(tmp_path / "hwmon", meter=412.0)
    (sensor,) = hwmon.open_sampled()
    assert (sensor.report.name, sensor.read().value) == ("hwmon.power_meter.power1", 412.0)
    assert device_energy_j(b.cell(device="cpu"), [energy(sensor.report.name, 120.0)]) is None


def test_sockets_of_amd_energy_are_the_cpu_and_their_cores_are_left_out(tmp_path):
    files = {"name": "amd_energy\n"}
    for channel, label in enumerate(("Ecore000", "Ecore001", "Esocket0"), 1):
        files |= {f"energy{channel}_input": f"{channel}500000\n", f"energy{channel}_label": f"{label}\n"}
    plant(tmp_path / "hwmon/hwmon2", files)
    (sensor,) = hwmon.open_sampled()
    assert (sensor.report.unit, sensor.report.counter, sensor.read().value) == ("J", True, 3.5)
    assert (sensor.report.status, sensor.report.reason.code) == ("modelled", "energy_is_modelled")
    assert device_energy_j(b.cell(device="cpu"), [energy(sensor.report.name, 120.0)]) == pytest.approx(120.0)
    # The same registers by two drivers count once.
    assert device_energy_j(b.cell(), [energy(sensor.report.name), energy("rapl.package-0", 60.0)]) == pytest.approx(60)


def test_like_boards_are_told_apart_by_the_devices_and_no_cpu_has_their_joules(tmp_path):
    for number, address in enumerate(("0000:03:00.0", "0000:83:00.0")):
        board = plant(tmp_path / "devices" / address, {"vendor": "0x1002\n"})
        files = {"name": "amdgpu\n", "power1_average": "90000000\n", "power1_input": "1\n", "power1_label": "PPT\n"}
        plant(tmp_path / f"hwmon/hwmon{number}", files)
        (tmp_path / f"hwmon/hwmon{number}/device").symlink_to(board)
    sensors = monitors()
    assert list(sensors) == [f"hwmon.amdgpu.{address}.ppt" for address in ("0000:03:00.0", "0000:83:00.0")]
    assert [sensor.read().value for sensor in sensors.values()] == [90.0, 90.0]
    samples = Samples([Series(sensor.report, [], []) for sensor in sensors.values()])
    assert samples.of_boards(()).series == []
    assert [series.report.device_id for series in samples.of_boards(["0000:83:00.0"]).series] == ["0000:83:00.0"]


@pytest.mark.parametrize(
    ("files", "code"),
    [
        (None, "no_hwmon"),
        ({"hwmon0/name": "nvme\n", "hwmon0/temp1_input": "40000\n"}, "no_hwmon_power"),
        ({"hwmon0/name": "power_meter\n", "hwmon0/power1_average": "garbage\n"}, "file_not_as_expected"),
    ],
)
def test_each_obstacle_of_monitors_has_its_own_reason(tmp_path, files, code):
    if files is not None:
        plant(tmp_path / "hwmon", files)
    (sensor,) = hwmon.open_sampled()
    assert (sensor.is_available, sensor.report.reason.code) == (False, code)


def device_energy_j(cell, blocks):
    power_w = device_power_w(device_entries(cell, blocks))
    return None if power_w is None else 10 * power_w


def energy(sensor, joules_j=100.0):
    return Energy(sensor=sensor, joules_j=joules_j, window_ns=10 * SECOND, samples=1, block_ns=10 * SECOND)


def readings_of(sensors, seconds):
    """Read all of them twenty times a second; what succeeded, by name."""
    values = {name: [] for name in sensors}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, sensor in sensors.items():
            if (reading := sensor.read()).value is not None:
                values[name].append(reading)
        time.sleep(0.05)
    return values


def test_each_scan_of_a_cray_node_is_read_once_and_gives_its_joules(tmp_path):
    with CrayNode(tmp_path / "pm_counters", {"": lambda t: 400.0, "cpu": lambda t: 150.0, "accel0": lambda t: 90.0}):
        sensors = {sensor.report.name: sensor for sensor in cray.open_sampled()}
        values = readings_of(sensors, 1.5)
    assert {f"cray.{part}.{what}" for part in ("node", "cpu", "accel0") for what in ("energy", "power")} == set(sensors)
    first, last = values["cray.cpu.energy"][0], values["cray.cpu.energy"][-1]
    # Both ends are read up to two spacings after their scans.
    assert (last.value - first.value) / ((last.at_ns - first.at_ns) / 1e9) == pytest.approx(150.0, rel=0.15)
    assert all(len({reading.value for reading in of}) == len(of) for name, of in values.items() if "energy" in name)
    assert {reading.value for reading in values["cray.node.power"]} == {400.0}
    assert {sensor.report.update_period_ns for sensor in sensors.values()} == {100_000_000}
    whole = device_energy_j(b.cell(), [energy(name, 120.0) for name in sensors])
    assert whole == pytest.approx(120.0)
    assert device_energy_j(b.cell(device="gpu"), [energy(name) for name in sensors]) is None


def test_a_node_whose_scans_have_stopped_gives_no_readings(tmp_path):
    CrayNode(tmp_path / "pm_counters", {"": lambda t: 400.0})
    values = readings_of({sensor.report.name: sensor for sensor in cray.open_sampled()}, 0.2)
    assert all(of == [] for of in values.values())


@pytest.mark.parametrize(
    ("files", "code"),
    [
        (None, "no_cray"),
        ({"freshness": "1\n"}, "no_cray_counter"),
        ({"freshness": "1\n", "energy": "\n"}, "file_not_as_expected"),
        ({"energy": "1 J\n"}, "file_not_readable"),
    ],
)
def test_each_obstacle_of_a_cray_node_has_its_own_reason(tmp_path, files, code):
    if files is not None:
        plant(tmp_path / "pm_counters", files)
    (sensor,) = cray.open_sampled()
    assert (sensor.is_available, sensor.report.reason.code) == (False, code)
