import os
from datetime import UTC, datetime
from types import SimpleNamespace

import psutil
import pytest
from planted_files import plant

from kit.fingerprint.machine_state import state
from kit.profile.facts import UNKNOWN, fact_of
from kit.sensors.sources import now_ns


@pytest.mark.parametrize("is_here", [True, False])
def test_a_field_is_null_exactly_where_there_is_a_reason(tmp_path, monkeypatch, is_here):
    if not is_here:
        monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    look = state() if is_here else state(tmp_path)
    assert {name for name, value in look.facts.items() if value is None} == look.reasons.keys()
    assert all(fact_of(name) is not UNKNOWN for name in look.facts)
    if not is_here:
        unknown = {"cpu.governor", "steal_ns", "context_switches", "memory_available_b", "cgroup_throttled_ns"}
        assert unknown <= look.reasons.keys()
    else:
        assert datetime.fromisoformat(look.taken).utcoffset().total_seconds() == 0
        assert 0 < look.facts["memory_available_b"] <= psutil.virtual_memory().total


def test_the_moment_is_given_on_both_clocks():
    before_ns, utc_before, look = now_ns(), datetime.now(UTC), state()
    assert before_ns < look.raw_ns < now_ns()
    taken = datetime.fromisoformat(look.taken)
    between_s = (look.raw_ns - before_ns) / 1e9
    # The clocks tell the same time passed, to what lies between the two readings of this test.
    assert (taken - utc_before).total_seconds() == pytest.approx(between_s, abs=0.05)
    assert 0 < look.raw_width_ns < 10_000_000


def test_planted_machine(tmp_path, monkeypatch):
    cpu = "sys/devices/system/cpu"
    plant(
        tmp_path,
        {
            "proc/stat": "cpu  1 2 3 4 5 6 7 50 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nintr 9\nctxt 4711\nsoftirq 8\n",
            "proc/meminfo": "MemTotal: 9999 kB\nMemAvailable:    2048 kB\n"
            + "".join(f"{kind}: 9 kB\n" for kind in ("MemFree", "Buffers", "Cached", "Shmem", "Active", "Inactive")),
            "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=0\n",
            "proc/self/cgroup": "0::/box\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu\n",
            "sys/fs/cgroup/box/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/box/cpu.stat": "nr_throttled 4\nthrottled_usec 5\n",
            f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave\n",
            f"{cpu}/intel_pstate/no_turbo": "1\n",
            f"{cpu}/cpu0/thermal_throttle/core_throttle_count": "3\n",
            f"{cpu}/cpu1/thermal_throttle/core_throttle_count": "4\n",
            f"{cpu}/cpu0/thermal_throttle/package_throttle_count": "1\n",
            "sys/devices/system/node/node0/numastat": "numa_hit 9\nnuma_miss 5\nnuma_foreign 6\n",
            "sys/devices/system/node/node1/numastat": "numa_hit 9\nnuma_miss 6\nnuma_foreign 5\n",
        },
    )
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    monkeypatch.setattr(psutil, "getloadavg", lambda: (1.25, 1.0, 0.5))
    monkeypatch.setattr(psutil, "cpu_freq", lambda percpu: [SimpleNamespace(current=2400.0, min=800.0, max=3000.0)])
    look = state(tmp_path)
    planted = {
        "load_1min": 1.25, "context_switches": 4711, "memory_available_b": 2 << 20, "pressure_cpu_some_ns": 77_000,
        "steal_ns": 50 * 1_000_000_000 // os.sysconf("SC_CLK_TCK"), "core_throttled": 7, "package_throttled": 1,
        "numa_misses": 11, "cgroup_throttled": 4, "cgroup_throttled_ns": 5_000, "cpu.governor": "powersave",
        "cpu.frequency_mhz": 2400.0, "cpu.turbo": False,
    }  # fmt: skip
    assert look.facts.items() >= planted.items()
