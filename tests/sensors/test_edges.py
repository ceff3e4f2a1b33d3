"""Counters at the edges of a block, against what was planted between two of them."""

import mmap
import os
import subprocess
import sys
import threading
import time

import pytest
from planted_files import plant

import kit.sensors
from kit.sensors import machine_cpu, machine_memory, process
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


def test_cpu_time_is_that_of_all_threads_of_this_process(counters):
    def burn():
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass

    def work():
        thread = threading.Thread(target=burn)
        thread.start()
        thread.join()
        # Of a child nothing is counted.
        subprocess.run([sys.executable, "-c", ""], check=True)

    begin_ns = time.process_time_ns()
    grown = moved(counters, work)
    assert 100_000_000 <= grown["process.cpu_ns"] <= time.process_time_ns() - begin_ns
    assert grown["process.voluntary_switches"] >= 1


def test_page_faults_and_growth_of_memory(counters):
    kept = []

    def touch():
        memory = mmap.mmap(-1, 64 << 20)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(0, 64 << 20, mmap.PAGESIZE):
            memory[page] = 1
        kept.append(memory)

    grown = moved(counters, touch)
    assert grown["process.minor_faults"] == pytest.approx((64 << 20) // mmap.PAGESIZE, rel=0.1)
    assert grown["process.resident_b"] == pytest.approx(64 << 20, rel=0.1)
    assert process.peak_memory_b() >= 64 << 20


def test_each_name_has_a_report_and_what_cannot_be_read_a_reason(counters):
    measured = [report.name for report in counters.reports if report.status == "measured"]
    assert tuple(measured) == counters.names
    assert len(set(counters.names)) == len(counters.names) == len(counters.read())
    assert all((report.status == "unavailable") == (report.reason is not None) for report in counters.reports)


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


def test_memory_pressure_and_swap(tmp_path):
    lines = "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
    plant(tmp_path, {"pressure/memory": lines, "vmstat": "nr_free 1\npswpin 3\npswpout 4\nnuma_hit 5\n"})
    pressure, swapping = machine_memory.open_edges([], tmp_path)
    assert pressure.read() == (77_000, 5_000)
    assert swapping.read() == (3 * mmap.PAGESIZE, 4 * mmap.PAGESIZE)
    absent = machine_memory.open_edges([], tmp_path / "nowhere")
    assert [source.reports[0].reason.code for source in absent] == ["no_pressure", "file_not_readable"]


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
