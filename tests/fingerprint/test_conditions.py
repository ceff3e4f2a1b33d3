import pytest
from planted_files import plant

from kit.fingerprint.doctor_checks import conditions
from kit.report.sentences import REASONS, sentence


@pytest.fixture
def planted(tmp_path):
    """Plant files below a root and look: `planted({name: text}, cpus) -> {subject: Condition}`."""

    def look(files=None, cpus=(0, 1), threads=2):
        plant(tmp_path, files or {})
        return {condition.subject: condition for condition in conditions(cpus, threads, tmp_path, tmp_path)}

    return look


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
        ({"proc/stat": "cpu 900 0 0 0 0 0 0 100 0 0"}, "steal", False, "10"),
        ({"proc/stat": "cpu 9999 0 0 0 0 0 0 1 0 0"}, "steal", True, "0.01"),
        ({".dockerenv": ""}, "PID namespace", False, "--pid host"),
        ({".dockerenv": "", "proc/2/comm": "kthreadd"}, "PID namespace", True, "host"),
    ],
)  # fmt: skip
def test_each_condition_is_told_with_what_would_mend_it(planted, files, subject, fine, says):
    condition = planted(files)[subject]
    assert condition.fine is fine
    assert says in sentence(condition.what)


def test_a_machine_that_shows_nothing_is_no_error(planted):
    assert {condition.what.code for condition in planted().values()} <= REASONS.keys()
    assert planted(cpus=(0,), threads=1)["CPU quota"].fine
