import pytest
from planted_files import plant

from kit.compare.clean import OTHERS_MOST
from kit.fingerprint.doctor_checks import conditions
from kit.report.reasons_in_words import REASONS, sentence


def look(root, files=(), cpus=(0, 1)):
    """Return the conditions of planted files by subject."""
    plant(root, dict(files))
    return {condition.subject: condition for condition in conditions(cpus, len(cpus), OTHERS_MOST, root, root)}


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
def test_each_condition_says_what_would_help(tmp_path, files, subject, fine, says):
    condition = look(tmp_path, files)[subject]
    assert condition.fine is fine
    assert says in sentence(condition.what)


def test_a_machine_that_shows_nothing_is_no_error(tmp_path):
    assert {condition.what.code for condition in look(tmp_path).values()} <= REASONS.keys()
    assert look(tmp_path, cpus=(0,))["CPU quota"].fine
