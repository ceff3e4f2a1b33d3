"""Counters and gauges of the kernel, against what was planted between two reads or in files."""

import mmap
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import profile_builder as b
import psutil
import pytest
from planted_files import plant

import kit.sensors
from kit.compare.joules import device_entries, device_power_w
from kit.profile.instruments import Energy
from kit.sensors import cgroup, linux
from kit.sensors.sources import EdgeCounters

CPUS = sorted(os.sched_getaffinity(0))
STAT = """cpu  100 0 0 0 0 0 0 90 0 0
cpu0 1 2 4 1000 2000 8 16 5 8000 9000
cpu1 10 0 0 0 0 0 0 7 0 0
cpu13 50 0 0 0 0 0 0 9 0 0
intr 7 7
"""
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"


def grown(work):
    """What `work` did to each counter of this process."""
    counters = EdgeCounters(CPUS)
    before = counters.read()
    work()
    return {name: later - earlier for name, earlier, later in zip(counters.names, before, counters.read(), strict=True)}


def read(root, cpus=(), files=None):
    """The counters of planted files by name; the code of its reason for one that is unavailable."""
    plant(root, files or {})
    values = {}
    for source in linux.open_edges(cpus, root):
        names = [report.name for report in source.reports]
        read = source.read() if source.read else [report.reason.code for report in source.reports]
        values |= dict(zip(names, read, strict=True))
    return values


def test_cpu_time_is_that_of_all_threads_of_this_process():
    def burn():
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            pass

    def work():
        thread = threading.Thread(target=burn)
        thread.start()
        thread.join()
        subprocess.run([sys.executable, "-c", ""], check=True)  # a child counts apart

    begin_ns = time.process_time_ns()
    did = grown(work)
    assert 100_000_000 <= did["process.cpu_ns"] <= time.process_time_ns() - begin_ns
    assert did["process.voluntary_switches"] >= 1
    assert did["process.children_ns"] > 0


def test_page_faults_and_growth_of_memory():
    kept = mmap.mmap(-1, 64 << 20)
    kept.madvise(mmap.MADV_NOHUGEPAGE)

    def touch():
        for page in range(0, 64 << 20, mmap.PAGESIZE):
            kept[page] = 1

    did = grown(touch)
    assert did["process.minor_faults"] == pytest.approx((64 << 20) // mmap.PAGESIZE, rel=0.1)
    assert did["process.resident_b"] == pytest.approx(64 << 20, rel=0.1)
    assert linux.peak_memory_b() >= 64 << 20


@pytest.mark.parametrize(
    ("cpus", "busy", "steal"), [([0], 31, 5), ([1], 10, 7), ([0, 13], 81, 14), ([0, 1, 13], 91, 21)]
)
def test_times_of_the_chosen_cpus_alone(tmp_path, cpus, busy, steal):
    values = read(tmp_path, cpus, {"proc/stat": STAT})
    assert (values["machine.busy_ns"], values["machine.steal_ns"]) == (busy * linux.TICK_NS, steal * linux.TICK_NS)


def test_pressure_and_swap(tmp_path):
    vmstat = "nr_free 1\npswpin 3\npswpout 4\nnuma_hit 5\n"
    values = read(
        tmp_path, [], {"proc/pressure/cpu": PRESSURE, "proc/pressure/memory": PRESSURE, "proc/vmstat": vmstat}
    )
    stalled = [values[f"pressure.{name}_ns"] for name in ("cpu_some", "memory_some", "memory_full")]
    assert stalled == [77_000, 77_000, 5_000]
    assert (values["machine.swapped_in_b"], values["machine.swapped_out_b"]) == (3 * linux.PAGE_B, 4 * linux.PAGE_B)


def test_what_is_not_shown_has_a_reason_and_costs_itself_alone(tmp_path):
    values = read(tmp_path, [2], {"proc/stat": STAT})
    codes = {
        "machine.busy_ns": "file_not_as_expected",
        "machine.swapped_in_b": "file_not_readable",
        "pressure.cpu_some_ns": "no_pressure",
        "pressure.memory_full_ns": "no_pressure",
        "cgroup.throttled_ns": "no_cpu_controller",
    }
    assert values.items() >= codes.items()
    assert values["process.cpu_ns"] > 0


def test_a_single_failed_read_is_none(tmp_path, monkeypatch):
    plant(tmp_path, {"proc/stat": STAT})
    real = linux.open_edges
    monkeypatch.setattr(linux, "open_edges", lambda cpus: real([0], tmp_path))
    counters = EdgeCounters([0])
    plant(tmp_path, {"proc/stat": "nothing\n"})
    values = dict(zip(counters.names, counters.read(), strict=True))
    assert values["machine.busy_ns"] is values["machine.steal_ns"] is None
    assert values["process.cpu_ns"] > 0


GROUP = "sys/fs/cgroup"
V2_STAT = "usage_usec 9\nnr_periods 20\nnr_throttled {}\nthrottled_usec {}\n"
V2 = {
    "proc/self/cgroup": "0::/box/inner\n",
    f"{GROUP}/cgroup.controllers": "cpu memory\n",
    f"{GROUP}/box/cpu.max": "150000 100000\n",
    f"{GROUP}/box/cpu.stat": V2_STAT.format(3, 4000),
    f"{GROUP}/box/memory.max": "2147483648\n",
    f"{GROUP}/box/inner/cpu.max": "max 100000\n",
    f"{GROUP}/box/inner/cpu.stat": V2_STAT.format(0, 0),
    f"{GROUP}/box/inner/memory.max": "max\n",
}
V1 = {
    "proc/self/cgroup": "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n",
    f"{GROUP}/cpu,cpuacct/box/cpu.cfs_quota_us": "50000\n",
    f"{GROUP}/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
    f"{GROUP}/cpu,cpuacct/box/cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_time 12345\n",
    f"{GROUP}/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
    f"{GROUP}/memory/box/memory.limit_in_bytes": "9223372036854771712\n",
}
# The path that the kernel names lies above what is mounted: the mount is the group.
ABOVE = V2 | {"proc/self/cgroup": "0::/../../elsewhere\n", f"{GROUP}/cpu.max": "200000 100000\n"}


@pytest.mark.parametrize(
    ("files", "limits", "throttled"),
    [
        (V2, (1.5, 2 << 30), (4_000_000, 3)),
        (V2 | {f"{GROUP}/cpu.max": "100000 100000\n"}, (1.0, 2 << 30), (4_000_000, 3)),
        (V1, (0.5, None), (12345, 2)),
        (ABOVE, (2.0, None), ("no_throttling_count",) * 2),
        ({"proc/self/cgroup": "0::/\n"}, (None, None), ("no_cpu_controller",) * 2),
    ],
    ids=["version 2", "a tighter parent", "version 1", "above the mount", "none"],
)
def test_limits_of_the_tightest_parent_and_throttling_where_the_quota_is(tmp_path, files, limits, throttled):
    values = read(tmp_path, [], files)
    assert (values["cgroup.throttled_ns"], values["cgroup.throttled_periods"]) == throttled
    assert (cgroup.cpu_limit(tmp_path), cgroup.memory_limit_b(tmp_path)) == limits


# As psutil gives them: current, least and most MHz. Without cpufreq there are no limits; a CPU that is offline has 0.
CPUFREQ = [(2000.0, 800.0, 3500.0), (3000.0, 800.0, 3500.0), (0.0, 0.0, 0.0)]
CPUINFO = [(2000.0, 0.0, 0.0), (3000.0, 0.0, 0.0)]


@pytest.mark.parametrize(
    ("known", "flags", "mhz"),
    [
        (CPUFREQ, "fpu", 2500.0),
        (CPUINFO, "fpu aperfmperf", 2500.0),
        (CPUINFO, "fpu hypervisor", None),  # a nominal frequency is not a measured one
        ([], "fpu aperfmperf", None),
        (NotImplementedError("can't find current frequency file"), "fpu", None),
        (FileNotFoundError("/proc/cpuinfo"), "fpu", None),
    ],
)
def test_frequency_is_the_mean_of_what_measures_it(tmp_path, monkeypatch, known, flags, mhz):
    plant(tmp_path, {"proc/cpuinfo": f"flags\t\t: {flags}\n"})
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))

    def cpu_freq(percpu):
        if isinstance(known, Exception):
            raise known
        return [SimpleNamespace(current=now, min=least, max=most) for now, least, most in known]

    monkeypatch.setattr(psutil, "cpu_freq", cpu_freq)
    linux._counts_cycles.cache_clear()
    (sensor,) = linux.open_sampled(tmp_path)
    linux._counts_cycles.cache_clear()
    assert (sensor.read().value if sensor.is_available else None) == mhz
    assert (sensor.report.reason is None) == (mhz is not None)


def test_a_new_gauge_is_one_entry_and_joules_of_a_cpu_come_from_it(tmp_path, monkeypatch):
    """As docs/reference/add-ons.md has it: a Grace socket by its power, a Cray node's processors by their counter."""
    socket = linux.Gauge("hwmon.power_meter.grace_power_socket_0", "W", "power1_average", "socket", per_unit=1e6)
    cray = linux.Gauge("cray.cpu.energy", "J", "cpu_energy", "processors", update_period_ns=100_000_000)
    monkeypatch.setattr(linux, "GAUGES", (*linux.GAUGES, socket, cray))
    plant(tmp_path, {"power1_average": "36700000\n", "cpu_energy": "8871934 J 1700000000123456 us\n"})
    sensors = {sensor.report.name: sensor for sensor in linux.open_sampled(tmp_path)}
    assert [sensors[name].read().value for name in (socket.name, cray.name)] == [36.7, 8871934.0]
    reports = [sensors[name].report for name in (socket.name, cray.name)]
    assert [(report.quantity, report.unit, report.counter) for report in reports] == [
        ("power", "W", False), ("energy", "J", True),
    ]  # fmt: skip
    absent = linux.open_sampled(tmp_path / "nowhere")[1:]
    assert {sensor.report.reason.code for sensor in absent} == {"file_not_as_expected"}
    for name in (socket.name, cray.name):
        energy = Energy(sensor=name, joules_j=120.0, window_ns=10**10, samples=1, block_ns=10**10)
        assert device_power_w(device_entries(b.cell(device="cpu"), [energy])) == pytest.approx(12.0)
        assert device_power_w(device_entries(b.cell(device="gpu"), [energy])) is None


def test_a_new_source_is_one_file(tmp_path, monkeypatch):
    code = (
        "from kit.profile.instruments import SensorReport\nfrom kit.sensors.sources import EdgeSource\n"
        "report = SensorReport(name='new.count', quantity='q', unit='1', scope='', source='', status='measured')\n"
        "def open_edges(cpus):\n    return [EdgeSource([report], lambda: (42,))]\n"
    )
    (tmp_path / "new_sensor.py").write_text(code)
    monkeypatch.setattr(kit.sensors, "__path__", [*kit.sensors.__path__, str(tmp_path)])
    counters = EdgeCounters(CPUS)
    assert dict(zip(counters.names, counters.read(), strict=True))["new.count"] == 42
