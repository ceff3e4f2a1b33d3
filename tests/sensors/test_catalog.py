"""Frequency, TPU, and that every sensor and every reason is reported whole."""

import sys
from pathlib import Path

import pytest
from planted_files import plant

from kit.sensors import catalog, frequency, machine_cpu, nvml, tpu


def test_frequency_is_the_mean_of_cpufreq(tmp_path):
    for cpu, khz in enumerate(("2000000", "3000000", "<unknown>")):
        plant(tmp_path, {f"cpu{cpu}/cpufreq/scaling_cur_freq": f"{khz}\n"})
    (sensor,) = frequency.open_sampled(tmp_path)
    assert sensor.read().value == 2500.0


@pytest.mark.parametrize(("flags", "mhz"), [("fpu aperfmperf", 2500.0), ("fpu hypervisor", None)])
def test_nominal_frequency_is_not_taken_for_a_measured_one(tmp_path, flags, mhz):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"flags\t\t: {flags}\ncpu MHz\t\t: 2000.0\n\nflags\t\t: {flags}\ncpu MHz\t\t: 3000.0\n")
    (sensor,) = frequency.open_sampled(tmp_path, cpuinfo)
    assert (sensor.read().value if sensor.is_available else None) == mhz
    assert (sensor.report.reason is None) == (mhz is not None)


def test_tpu_absent_and_present(tmp_path):
    (absent,) = tpu.open_sampled(tmp_path, tmp_path)
    assert absent.report.reason.code == "no_tpu"
    (tmp_path / "accel0").touch()
    (present,) = tpu.open_sampled(tmp_path, tmp_path)
    assert "accel0" in present.report.reason.values["devices"]
    assert not present.is_available


@pytest.fixture
def libtpu(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "standins"))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "libtpu"]:
        del sys.modules[name]


@pytest.mark.parametrize(("state", "readings"), [("", [87.5, 1 << 30]), ("idle", [None, None])])
def test_each_chip_tells_its_duty_cycle_and_memory_while_it_is_used(libtpu, monkeypatch, tmp_path, state, readings):
    monkeypatch.setenv("TPU_STAND_IN", state)
    for name in ("accel0", "accel1"):
        (tmp_path / name).touch()
    sensors = {sensor.report.name: sensor for sensor in tpu.open_sampled(tmp_path, tmp_path)}
    assert sensors["tpu.energy"].report.reason.code == "tpu_without_counter"
    assert [sensors[f"tpu.0.{name}"].read().value for name in ("utilization", "memory")] == readings
    assert {"tpu.1.utilization", "tpu.1.memory"} <= set(sensors)


def test_google_network_card_is_no_tpu(tmp_path):
    for address, pci_class in (("0000:00:04.0", "0x020000"), ("0000:00:05.0", "0x120000")):
        plant(tmp_path / address, {"vendor": "0x1ae0\n", "class": f"{pci_class}\n"})
    assert tpu.devices(tmp_path / "dev", tmp_path) == ["0000:00:05.0"]


def test_every_report_of_the_catalog_is_complete_and_in_a_stable_order():
    reports = catalog.probe_all()
    names = [report.name for report in reports]
    assert len(names) == len(set(names))
    assert names == [report.name for report in catalog.probe_all()]
    assert {"process.cpu_ns", "machine.busy_ns", "cgroup.throttled_ns", "cpu.frequency", "tpu.energy"} <= set(names)
    assert all((report.status == "unavailable") == (report.reason is not None) for report in reports)
    assert {"energy", "utilization", "memory", "frequency", "throttling", "faults"} <= {
        report.quantity for report in reports
    }


@pytest.mark.parametrize(
    ("source", "name", "opens"), [(nvml, "nvml", "open_sampled"), (machine_cpu, "machine_cpu", "open_edges")]
)
def test_a_source_that_fails_in_an_unforeseen_way_costs_only_itself(monkeypatch, source, name, opens):
    def fail(*_):
        raise RuntimeError("driver on fire")

    monkeypatch.setattr(source, opens, fail)
    reports = {report.name: report for report in catalog.probe_all()}
    assert "driver on fire" in reports[name].reason.values["error"]
    assert reports["process.cpu_ns"].status == "measured"
