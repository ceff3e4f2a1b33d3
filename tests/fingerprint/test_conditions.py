import psutil
import pytest
from planted_files import plant

from kit.compare.clean import OTHERS_MOST
from kit.fingerprint.doctor_checks import conditions
from kit.report.reasons_in_words import REASONS, sentence


def look(root, files=(), cpus=(0, 1)):
    """Return the conditions of planted files by subject."""
    plant(root, dict(files))
    return {condition.subject: condition for condition in conditions(cpus, len(cpus), OTHERS_MOST, root, root)}


THREAD = f"2 ({{}}) S 0 0 0 0 -1 2129984 {'0 ' * 12}1 0 5 0 0 {'0 ' * 28}\n"
KINDS = ("MemFree", "Buffers", "Cached", "Shmem", "Active", "Inactive", "SReclaimable")
MEMORY = "MemTotal: 9999 kB\nMemAvailable: 2048 kB\n" + "".join(f"{kind}: 9 kB\n" for kind in KINDS)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder whose /proc is psutil's, too."""
    plant(tmp_path, {"proc/stat": "cpu 9 0 0 0 0 0 0 0 0 0\nbtime 9\n", "proc/meminfo": MEMORY})
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / "proc"))
    monkeypatch.setattr(psutil, "pid_exists", lambda pid: (tmp_path / f"proc/{pid}").exists())
    return tmp_path


SIBLINGS = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@pytest.mark.parametrize(
    ("files", "subject", "fine", "says"),
    [
        ({".dockerenv": "", "sys/fs/cgroup/cgroup.controllers": "cpu", "proc/self/cgroup": "0::/",
          "sys/fs/cgroup/cpu.max": "150000 100000"}, "CPU quota", False, "--cpuset-cpus"),
        ({SIBLINGS.format(0): "0-1", SIBLINGS.format(1): "0-1"}, "SMT", False, "0 (taskset"),
        ({SIBLINGS.format(0): "0,4", SIBLINGS.format(1): "1,5"}, "SMT", True, "no two usable CPUs share a core"),
        ({"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave"}, "governor", False, "cpupower"),
        ({"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance"}, "governor", True, "performance"),
        ({"sys/devices/system/cpu/intel_pstate/no_turbo": "0"}, "turbo", False, "no_turbo"),
        ({"sys/devices/system/cpu/intel_pstate/no_turbo": "1"}, "turbo", True, "off"),
        ({"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}, "clocksource", False, "tsc"),
        ({"proc/stat": "cpu 900 0 0 0 0 0 0 100 0 0\nbtime 9\n"}, "steal", False, "10"),
        ({"proc/stat": "cpu 9999 0 0 0 0 0 0 1 0 0\nbtime 9\n"}, "steal", True, "0.01"),
        ({".dockerenv": "", "proc/2/stat": THREAD.format("bash")}, "PID namespace", False, "--pid host"),
        ({".dockerenv": "", "proc/2/stat": THREAD.format("kthreadd")}, "PID namespace", True, "host"),
    ],
)  # fmt: skip
def test_each_condition_says_what_would_help(root, files, subject, fine, says):
    condition = look(root, files)[subject]
    assert condition.fine is fine
    assert says in sentence(condition.what)


def test_a_machine_that_shows_nothing_is_no_error(tmp_path):
    assert {condition.what.code for condition in look(tmp_path).values()} <= REASONS.keys()
    assert look(tmp_path, cpus=(0,))["CPU quota"].fine
