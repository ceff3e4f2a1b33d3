"""Counters at the edges of a block, against what was planted between two of them."""

import mmap
import os
import subprocess
import sys
import threading
import time

import pytest

import kit.sensors
from kit.sensors import machine_cpu, process
from kit.sensors.catalog import EdgeCounters

CPUS = sorted(os.sched_getaffinity(0))


@pytest.fixture
def counters():
    return EdgeCounters(CPUS)


def moved(counters, work):
    """What `work` did to each counter."""
    before = counters.read()
    work()
    return {name: later - earlier for name, earlier, later in zip(counters.names, before, counters.read(), strict=True)}


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_cpu_time_of_this_process_is_exact_and_its_split_sums_to_it(counters):
    begin_ns = time.process_time_ns()
    found = moved(counters, lambda: burn(0.2))
    assert 200e6 <= found["process.cpu_ns"] <= time.process_time_ns() - begin_ns
    assert found["process.user_ns"] + found["process.system_ns"] == pytest.approx(found["process.cpu_ns"], rel=0.05)
    assert found["machine.busy_ns"] >= 150e6  # in ticks of 10 ms


def test_all_threads_count(counters):
    def work():
        threads = [threading.Thread(target=burn, args=(0.1,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert moved(counters, work)["process.cpu_ns"] >= 95e6


def test_a_child_is_not_counted(counters):
    burns = "import time\nwhile time.process_time() < 0.5: pass"
    found = moved(counters, lambda: subprocess.run([sys.executable, "-c", burns], check=True))
    assert found["process.cpu_ns"] < 400e6 <= found["machine.busy_ns"]


def test_page_faults_and_growth_of_memory(counters):
    kept = []

    def touch():
        memory = mmap.mmap(-1, 64 << 20)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, 64 << 20, mmap.PAGESIZE):
            memory[page] = 1
        kept.append(memory)

    found = moved(counters, touch)
    pages = (64 << 20) // mmap.PAGESIZE
    assert found["process.minor_faults"] == pytest.approx(pages, rel=0.1)
    assert found["process.resident_b"] == pytest.approx(64 << 20, rel=0.1)


def test_voluntary_switches(counters):
    assert moved(counters, lambda: [time.sleep(0.001) for _ in range(50)])["process.voluntary_switches"] >= 50


def test_each_name_has_a_report_and_what_cannot_be_read_a_reason(counters):
    measured = [report.name for report in counters.reports if report.status == "measured"]
    assert tuple(measured) == counters.names
    assert len(set(counters.names)) == len(counters.names) == len(counters.read())
    assert all((report.status == "unavailable") == (report.reason is not None) for report in counters.reports)
    assert not any(report.sampled for report in counters.reports)


STAT = b"""cpu  100 0 0 0 0 0 0 90 0 0
cpu0 1 2 4 1000 2000 8 16 5 8000 9000
cpu1 10 0 0 0 0 0 0 7 0 0
cpu13 50 0 0 0 0 0 0 9 0 0
intr 7 7
"""


@pytest.mark.parametrize(
    ("cpus", "busy", "steal"), [([0], 31, 5), ([1], 10, 7), ([0, 13], 81, 14), ([0, 1, 13], 91, 21)]
)
def test_times_of_the_cpus_asked_for_alone(tmp_path, cpus, busy, steal):
    (tmp_path / "stat").write_bytes(STAT)
    source, _ = machine_cpu.open_edges(cpus, tmp_path)
    assert source.read() == (busy * machine_cpu.TICK_NS, steal * machine_cpu.TICK_NS)


@pytest.mark.parametrize(("content", "code"), [(STAT, "file_not_as_expected"), (None, "file_not_readable")])
def test_cpus_that_are_not_listed(tmp_path, content, code):
    if content:
        (tmp_path / "stat").write_bytes(content)
    source, _ = machine_cpu.open_edges([2], tmp_path)
    assert source.read is None
    assert {report.reason.code for report in source.reports} == {code}


def test_pressure(tmp_path):
    _, absent = machine_cpu.open_edges([], tmp_path)
    assert absent.reports[0].reason.code == "no_pressure"
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure/cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=5\n")
    _, source = machine_cpu.open_edges([], tmp_path)
    assert source.read() == (77_000,)


def test_a_source_that_fails_costs_only_itself(monkeypatch):
    def fail(cpus):
        raise RuntimeError("driver on fire")

    monkeypatch.setattr(machine_cpu, "open_edges", fail)
    counters = EdgeCounters(CPUS)
    assert "machine.busy_ns" not in counters.names
    assert "process.cpu_ns" in counters.names
    (report,) = [report for report in counters.reports if report.name == "machine_cpu"]
    assert report.status == "unavailable"
    assert "driver on fire" in report.reason.values["error"]


def test_a_single_failed_read_is_none(tmp_path, monkeypatch):
    (tmp_path / "stat").write_bytes(STAT)
    real = machine_cpu.open_edges
    monkeypatch.setattr(machine_cpu, "open_edges", lambda cpus: real([0], tmp_path))
    counters = EdgeCounters([0])
    (tmp_path / "stat").write_text("nothing\n")
    values = dict(zip(counters.names, counters.read(), strict=True))
    assert values["machine.busy_ns"] is values["machine.steal_ns"] is None
    assert values["process.cpu_ns"] > 0


def test_a_new_source_is_one_file(tmp_path, monkeypatch):
    """What `open_edges` of a file beside the others gives reaches the counters, with no list to extend."""
    code = (
        "from kit.profile.sensor import SensorReport\nfrom kit.sensors.protocol import EdgeSource\n"
        "report = SensorReport(name='new.count', quantity='q', unit='1', scope='', source='', status='measured')\n"
        "def open_edges(cpus):\n    return [EdgeSource([report], lambda: (42,))]\n"
    )
    (tmp_path / "new_sensor.py").write_text(code)
    monkeypatch.setattr(kit.sensors, "__path__", [*kit.sensors.__path__, str(tmp_path)])
    counters = EdgeCounters(CPUS)
    assert dict(zip(counters.names, counters.read(), strict=True))["new.count"] == 42


def test_peak_memory_holds_the_resident_set():
    assert process.peak_memory_b() >= 10 << 20
