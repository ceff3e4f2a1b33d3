"""TPUs, and that every sensor and every reason is reported whole."""

import sys
from pathlib import Path

import pytest
from planted_files import plant

from kit.sensors import linux, nvml, sources, tpu_chips


def test_tpu_absent_and_present(tmp_path):
    (absent,) = tpu_chips.open_sampled(tmp_path, tmp_path)
    assert absent.report.reason.code == "no_tpu"
    (tmp_path / "accel0").touch()
    (present,) = tpu_chips.open_sampled(tmp_path, tmp_path)
    assert "accel0" in present.report.reason.values["devices"]
    assert not present.is_available


@pytest.fixture
def libtpu(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "standins"))
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "libtpu"]:
        del sys.modules[name]


@pytest.mark.parametrize(("state", "readings"), [("", [87.5, 1 << 30]), ("idle", [None, None])])
def test_duty_cycle_and_memory_of_each_chip_while_it_is_used(libtpu, monkeypatch, tmp_path, state, readings):
    monkeypatch.setenv("TPU_STAND_IN", state)
    plant(tmp_path, {"accel0": "", "accel1": ""})
    sensors = {sensor.report.name: sensor for sensor in tpu_chips.open_sampled(tmp_path, tmp_path)}
    assert sensors["tpu.energy"].report.reason.code == "tpu_without_counter"
    assert [sensors[f"tpu.0.{name}"].read().value for name in ("utilization", "memory")] == readings
    assert {"tpu.1.utilization", "tpu.1.memory"} <= set(sensors)


def test_google_network_card_is_no_tpu(tmp_path):
    for address, pci_class in (("0000:00:04.0", "0x020000"), ("0000:00:05.0", "0x120000")):
        plant(tmp_path / address, {"vendor": "0x1ae0\n", "class": f"{pci_class}\n"})
    assert tpu_chips.devices(tmp_path / "dev", tmp_path) == ["0000:00:05.0"]


def test_every_report_of_the_catalog_is_complete_and_in_a_stable_order():
    reports, counters = sources.probe_all(), sources.EdgeCounters([0])
    names = [report.name for report in reports]
    assert len(names) == len(set(names))
    assert names == [report.name for report in sources.probe_all()]
    assert {"process.cpu_ns", "machine.busy_ns", "cgroup.throttled_ns", "cpu.frequency", "tpu.energy"} <= set(names)
    assert all((report.status == "unavailable") == (report.reason is not None) for report in reports)
    assert len(counters.names) == len(counters.read())


@pytest.mark.parametrize(("source", "name", "opens"), [(nvml, "nvml", "open_sampled"), (linux, "linux", "open_edges")])
def test_a_source_that_fails_in_an_unforeseen_way_costs_only_itself(monkeypatch, source, name, opens):
    def fail(*_):
        raise RuntimeError("driver on fire")

    monkeypatch.setattr(source, opens, fail)
    reports = {report.name: report for report in sources.probe_all()}
    assert "driver on fire" in reports[name].reason.values["error"]
    assert reports["cpu.frequency"].source
