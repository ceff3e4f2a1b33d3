"""The sampler as a process of its own, watching real processes."""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

import psutil
import pytest

from kit.sensors import names
from kit.sensors.stamp import now_ns
from kit.worker import sampler, sampler_process
from kit.worker.sampler_process import SamplerProcess
from kit.worker.samples import read_samples

# Busy for 30 ms of each 100 ms for so many seconds; says when it begins and what CPU time it took, by its own rusage.
DUTY_CYCLE = """
import resource, sys, time
def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
begin, before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), cpu_s()
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    busy = time.process_time() + 0.03
    while time.process_time() < busy:
        pass
    time.sleep(0.07)
print(begin, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), cpu_s() - before, flush=True)
input()
"""


def start_sampler(pid, out, *more):
    return subprocess.Popen(
        [sys.executable, "-m", "kit.worker.sampler", f"--pid={pid}", f"--out={out}", *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_utilization_of_a_known_load():
    child = subprocess.Popen(
        [sys.executable, "-c", DUTY_CYCLE, "1.5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with SamplerProcess(child.pid) as watching:
        begin_ns, end_ns, cpu_s = (float(word) for word in child.stdout.readline().split())
    child.communicate("\n")
    # The child ran while the sampler started: look from the first sample on, at the same duty cycle.
    samples = watching.samples
    found = watching.utilization(max(int(begin_ns), samples.ticks[0].at_ns), int(end_ns))
    expected_pct = 100 * cpu_s / ((end_ns - begin_ns) / 1e9)
    assert found.process_cpu_pct == pytest.approx(expected_pct, rel=0.35)
    assert found.machine_cpu_pct > 0
    assert found.rss_peak_b > 1 << 20
    assert 0 < found.sampler_cpu_pct < 100
    assert found.samples >= 5


def test_the_window_of_this_process_and_its_unavailable_sensors():
    with SamplerProcess() as watching:
        begin_ns, begin_cpu_ns = now_ns(), time.process_time_ns()
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            pass
        end_ns, spent_ns = now_ns(), time.process_time_ns() - begin_cpu_ns
    found = watching.utilization(begin_ns, end_ns)
    # Other work of the machine leaves this process less than a whole CPU.
    assert found.process_cpu_pct == pytest.approx(100 * spent_ns / (end_ns - begin_ns), rel=0.5)
    assert set(found.reasons) == {
        field
        for field in ("frequency_mhz", "throttled_ns", "rss_peak_b", "gpu_throttled_by")
        if getattr(found, field) is None
    }
    named = {report.name for report in watching.reports if report.quantity == "energy"}
    energies = watching.energies(begin_ns, end_ns)
    assert named <= {entry.sensor for entry in energies}
    assert all(entry.joules_j is None and entry.reason for entry in energies)


def test_ticks_keep_to_absolute_deadlines(tmp_path):
    process = start_sampler(os.getpid(), tmp_path / "out", "--period-s=0.05")
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 0
    samples = read_samples(tmp_path / "out")
    assert samples.ended == "the sampler ended: told to end"
    periods = [(tick.at_ns - samples.ticks[0].at_ns) / samples.period_ns for tick in samples.ticks]
    assert statistics.median(abs(period - round(period)) for period in periods) < 0.2
    assert 7 <= samples.missed(0, 2**63) <= 13  # ten deadlines in half a second
    spent = [tick.sampler_cpu_ns for tick in samples.ticks]
    assert spent == sorted(spent)
    assert spent[0] > 0


def test_ends_when_standard_input_closes(tmp_path):
    process = start_sampler(os.getpid(), tmp_path / "out", "--until-stdin-closes")
    process.stdout.readline()
    process.stdin.close()
    assert process.wait(5) == 0
    assert "standard input closed" in read_samples(tmp_path / "out").ended


@pytest.mark.skipif(sys.platform != "linux", reason="no prctl")
def test_a_stopped_sampler_ends_with_its_worker():
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import time; from kit.worker.sampler_process import SamplerProcess; sampler = SamplerProcess()\n"
            "sampler.start(); print(sampler.pid if sampler.pause() else None, flush=True); time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    watching = psutil.Process(int(worker.stdout.readline()))
    assert watching.status() == psutil.STATUS_STOPPED
    worker.kill()
    worker.wait()
    try:
        _, alive = psutil.wait_procs([watching], timeout=20)
        assert not alive
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            watching.kill()


def test_ends_with_the_process_it_watches(tmp_path):
    watched = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = start_sampler(watched.pid, tmp_path / "out")
    process.stdout.readline()
    watched.kill()  # nobody waits for it yet: a zombie is gone, too
    assert process.wait(5) == 0
    watched.wait()
    assert f"process {watched.pid} is gone" in read_samples(tmp_path / "out").ended


def test_a_dead_pid_is_refused(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    process = start_sampler(gone.pid, tmp_path / "out")
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 2
    assert f"--pid {gone.pid}: no such process" in stderr


@pytest.mark.parametrize(
    ("option", "said"), [("--period-s=0.001", "too short"), ("--out=/nowhere/out", "cannot be written")]
)
def test_bad_options_are_one_line(tmp_path, option, said):
    process = start_sampler(os.getpid(), tmp_path / "out", option)
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 2
    assert said in stderr
    assert "Traceback" not in stderr


def test_a_killed_sampler_leaves_reasons_and_what_it_had():
    with SamplerProcess() as watching:
        begin_ns = now_ns()
        time.sleep(0.4)
        killed_ns = now_ns()
        os.kill(watching.pid, signal.SIGKILL)
        time.sleep(0.3)
        end_ns = now_ns()
    found = watching.utilization(begin_ns, end_ns)
    assert (found.process_cpu_pct, found.machine_cpu_pct, found.rss_peak_b, found.sampler_cpu_pct) == (None,) * 4
    assert all("killed: signal 9" in reason for reason in found.reasons.values())
    assert {"process_cpu_pct", "machine_cpu_pct", "rss_peak_b", "sampler_cpu_pct"} <= set(found.reasons)
    assert all(entry.joules_j is None and entry.reason for entry in watching.energies(begin_ns, end_ns))
    assert watching.utilization(begin_ns, watching.samples.ticks[-1].at_ns).process_cpu_pct is not None
    assert watching.samples.ticks[-1].at_ns <= killed_ns + 50_000_000


def test_a_forked_child_that_holds_the_pipe_does_not_keep_the_sampler():
    watching = SamplerProcess()
    watching.start()
    forked = os.fork()
    if forked == 0:
        time.sleep(60)
        os._exit(0)
    try:
        watching.stop()
    finally:
        os.kill(forked, signal.SIGKILL)
        os.waitpid(forked, 0)
    assert watching.samples.ended == "the sampler ended: told to end"


def test_a_sampler_that_does_not_start_costs_no_launch(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with SamplerProcess() as watching:
        begin_ns = now_ns()
    found = watching.utilization(begin_ns, now_ns())
    assert "could not be started" in found.reasons["process_cpu_pct"]
    assert watching.reports == []
    (entry,) = watching.energies(begin_ns, now_ns())
    assert "could not be started" in entry.reason


def test_a_sampler_that_hangs_costs_no_launch(monkeypatch):
    monkeypatch.setattr(SamplerProcess, "_command", lambda _: [sys.executable, "-c", "import time; time.sleep(60)"])
    monkeypatch.setattr(sampler_process, "READY_TIMEOUT_S", 0.2)
    monkeypatch.setattr(sampler_process, "STOP_TIMEOUT_S", 0.2)
    with SamplerProcess() as watching:
        pass
    assert "not ready within 0.2 s" in watching.samples.ended


def test_a_sampler_that_dies_at_once_says_why(monkeypatch):
    monkeypatch.setattr(
        SamplerProcess, "_command", lambda _: [sys.executable, "-c", "raise SystemExit('no such luck')"]
    )
    with SamplerProcess() as watching:
        pass
    assert "exit 1, no such luck" in watching.samples.ended


def test_loads_nothing_heavy():
    code = (
        "import sys, kit.worker.sampler; print(*{'numpy', 'scipy', 'kit.clock', 'psutil', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_moves_off_the_cpus_of_the_worker():
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("one CPU")
    one = min(allowed)
    code = (
        "import os\nfrom kit.worker.sampler import leave_cpus_to\n"
        f"leave_cpus_to({os.getpid()})\nprint(*os.sched_getaffinity(0))"
    )
    try:
        os.sched_setaffinity(0, {one})
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    finally:
        os.sched_setaffinity(0, allowed)
    assert str(one) not in done.stdout.split()
    assert sampler.leave_cpus_to(os.getpid()) is None
    assert os.sched_getaffinity(0) == allowed


def test_slow_quantities_are_read_once_a_second():
    class Fake:
        def __init__(self, quantity, status="measured"):
            self.report = type("Report", (), {"quantity": quantity, "status": status})

        def probe(self):
            return self.report

    pace = sampler.Pace([Fake("frequency"), Fake("utilization"), Fake("energy", "unavailable")], 100_000_000)
    assert [[pace.due(index, tick) for tick in range(11)].count(True) for index in range(3)] == [2, 11, 0]


def test_sensor_names_are_those_the_summary_asks_for():
    with SamplerProcess() as watching:
        pass
    known = {report.name for report in watching.reports}
    assert {names.PROCESS_TIME, names.MACHINE_TIME, names.RESIDENT_MEMORY, names.FREQUENCY} <= known
