"""Machine CPU time, frequency, TPU, catalog."""

import os
import time

import psutil
import pytest

from kit.sensors import catalog, frequency, machine_cpu, names, nvml, tpu


def test_machine_time_matches_psutil_and_moves():
    (sensor,) = machine_cpu.open_all()
    times = psutil.cpu_times()
    reference = times.user + times.nice + times.system + times.irq + times.softirq
    first = sensor.read()
    assert first.value == pytest.approx(reference, abs=0.5)
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    assert sensor.read().value - first.value >= 0.15
    sensor.close()


def test_busy_leaves_idle_iowait_and_steal_out():
    ticks = os.sysconf("SC_CLK_TCK")
    assert machine_cpu.busy_s(b"cpu  1 2 4 1000 2000 8 16 4000 8000 9000\ncpu0 0") == 31 / ticks


def test_machine_time_without_proc(tmp_path):
    (sensor,) = machine_cpu.open_all(tmp_path / "stat")
    assert sensor.probe().status == "unavailable"
    assert sensor.read().value is None


def test_frequency_is_the_mean_of_cpufreq(tmp_path):
    for cpu, khz in enumerate(("2000000", "3000000", "<unknown>")):
        folder = tmp_path / f"cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(khz + "\n")
    (sensor,) = frequency.open_all(tmp_path)
    assert sensor.read().value == 2500.0


@pytest.mark.parametrize(("flags", "mhz"), [("fpu aperfmperf", 2500.0), ("fpu hypervisor", None)])
def test_nominal_frequency_is_not_taken_for_a_measured_one(tmp_path, flags, mhz):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"flags\t\t: {flags}\ncpu MHz\t\t: 2000.0\n\nflags\t\t: {flags}\ncpu MHz\t\t: 3000.0\n")
    (sensor,) = frequency.open_all(tmp_path, cpuinfo)
    assert sensor.read().value == mhz
    assert (sensor.probe().reason is None) == (mhz is not None)


def test_tpu_absent_and_present(tmp_path):
    (absent,) = tpu.open_all(tmp_path, tmp_path)
    assert "no TPU here" in absent.probe().reason
    (tmp_path / "accel0").touch()
    (present,) = tpu.open_all(tmp_path, tmp_path)
    assert "accel0" in present.probe().reason
    assert present.probe().status == "unavailable"


def test_google_network_card_is_no_tpu(tmp_path):
    for address, pci_class in (("0000:00:04.0", "0x020000"), ("0000:00:05.0", "0x120000")):
        folder = tmp_path / "pci" / address
        folder.mkdir(parents=True)
        (folder / "vendor").write_text("0x1ae0\n")
        (folder / "class").write_text(pci_class + "\n")
    assert tpu.devices(tmp_path, tmp_path / "pci") == ["0000:00:05.0"]


def test_every_report_of_the_catalog_is_complete():
    reports = catalog.probe_all()
    found = [report.name for report in reports]
    assert len(found) == len(set(found))
    assert {
        names.PROCESS_TIME,
        names.MACHINE_TIME,
        names.RESIDENT_MEMORY,
        names.FREQUENCY,
        names.THROTTLED_TIME,
    } <= set(found)
    assert all(report.reason for report in reports if report.status == "unavailable")
    assert {"energy", "utilization", "memory", "frequency", "throttling"} <= {report.quantity for report in reports}


def test_a_source_that_fails_in_an_unforeseen_way_costs_only_itself(monkeypatch):
    def fail():
        raise RuntimeError("driver on fire")

    monkeypatch.setattr(nvml, "open_all", fail)
    reports = {report.name: report for report in catalog.probe_all()}
    assert "driver on fire" in reports["nvml.energy"].reason
    assert reports[names.PROCESS_TIME].status == "measured"
