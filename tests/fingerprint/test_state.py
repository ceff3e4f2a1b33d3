import os
import time
from datetime import datetime

import psutil

from kit.fingerprint.state import state


def test_this_machine_null_exactly_where_there_is_a_reason():
    found = state()
    for field in found.__struct_fields__:
        if field not in ("taken", "reasons"):
            assert (getattr(found, field) is None) == (field in found.reasons), field
    assert datetime.fromisoformat(found.taken).utcoffset().total_seconds() == 0
    assert 0 < found.memory_available_b <= psutil.virtual_memory().total
    assert found.load_1min >= 0


def test_counters_grow():
    before = state()
    for _ in range(50):
        time.sleep(0.001)
    after = state()
    assert after.context_switches > before.context_switches


def plant(root, files):
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_planted_machine(tmp_path):
    cpu = "sys/devices/system/cpu"
    plant(
        tmp_path,
        {
            "proc/loadavg": "1.25 1.0 0.5 1/100 99\n",
            "proc/stat": "cpu  1 2 3 4 5 6 7 50 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\nctxt 4711\n",
            "proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    2048 kB\n",
            "proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0.00 total=0\n",
            "proc/self/cgroup": "0::/box\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu\n",
            "sys/fs/cgroup/box/cpu.max": "50000 100000\n",
            "sys/fs/cgroup/box/cpu.stat": "nr_throttled 4\nthrottled_usec 5\n",
            f"{cpu}/cpu0/cpufreq/scaling_governor": "powersave\n",
            f"{cpu}/cpu0/cpufreq/scaling_cur_freq": "2400000\n",
            f"{cpu}/intel_pstate/no_turbo": "1\n",
        },
    )
    found = state(tmp_path)
    assert (found.load_1min, found.context_switches, found.memory_available_b) == (1.25, 4711, 2 << 20)
    assert found.steal_ns == 50 * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    assert found.pressure_cpu_some_ns == 77_000
    assert (found.cgroup_throttled, found.cgroup_throttled_ns) == (4, 5_000)
    assert (found.governor, found.frequency_mhz, found.turbo) == ("powersave", 2400.0, False)


def test_a_machine_that_shows_nothing_is_null_with_reasons(tmp_path):
    found = state(tmp_path)
    for field in (
        "load_1min",
        "governor",
        "turbo",
        "frequency_mhz",
        "steal_ns",
        "cgroup_throttled",
        "cgroup_throttled_ns",
        "pressure_cpu_some_ns",
    ):
        assert getattr(found, field) is None
        assert found.reasons[field]
