"""Other work on the worker's CPUs: planted in /proc/stat, and real."""

import os
import subprocess
import sys

import pytest

from kit.engines.local import run_launch
from kit.profile.launch import LaunchRequest, StepPlan
from kit.profile.store import read_profile
from kit.stats.contention import is_contended, taken_share
from kit.stats.launch_summary import summary_of
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes
from kit.worker.cpus_taken import CpuUse, cpu_use, taken_pct

TICKS = os.sysconf("SC_CLK_TCK")


def between(own, busy, seconds=2.0, cpus=2):
    """Of CPU seconds a second."""
    return taken_pct(CpuUse(5.0, 1.0, 100.0), CpuUse(5.0 + seconds, 1 + own * seconds, 100 + busy * seconds), cpus)


@pytest.mark.parametrize(
    ("own", "busy", "taken"),
    [
        (2.0, 2.0, 0.0),  # all its own
        (1.0, 2.0, 100.0),  # beside a busy program
        (0.7, 2.0, 130.0),
        (1.98, 2.0, 2.0),
        (1.0, 1.2, 0.0),  # others used CPUs that it did not want
        (0.5, 1.79, 0.0),
        (2.01, 2.0, 0.0),  # ticks
        (1.0, 2.1, 100.0),
    ],
)
def test_what_others_took_of_two_cpus(own, busy, taken):
    found, reason = between(own, busy)
    assert found == pytest.approx(taken, abs=1e-9)
    assert reason is None


def test_a_glance_says_nothing():
    found, reason = between(1.0, 2.0, seconds=0.1)
    assert found is None
    assert reason == "steady for 0.1 s, and the kernel counts in ticks of 10 ms: 0.2 s are needed"
    assert taken_pct(None, CpuUse(1, 1, 1), 2) == (None, "/proc/stat does not list the CPUs that the worker may use")


def test_only_its_own_cpus_count(tmp_path):
    stat = tmp_path / "stat"
    lines = (f"cpu{cpu} {seconds * TICKS} 0 0 999 0 0 0 0 0 0" for cpu, seconds in ((0, 3), (1, 40), (11, 500)))
    stat.write_text("\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 5"]) + "\n")
    assert cpu_use([0], stat).busy_s == 3
    assert cpu_use([1, 0], stat).busy_s == 43
    assert cpu_use([2], stat) is None
    assert cpu_use([0], tmp_path / "none") is None
    assert cpu_use(sorted(os.sched_getaffinity(0))).busy_s > 0


@pytest.mark.frameworks
def test_a_launch_beside_a_busy_program_has_no_number():
    """Steps that wait for whole time slices may be as steady as can be."""
    cpu = min(os.sched_getaffinity(0))
    (cell,) = plan_cells(Axes(workloads=["mlp"], backends=["torch"], tasks=["infer"], batches=[64]))
    request = LaunchRequest(
        cell=cell,
        round=0,
        plan=StepPlan(warmup_s=0.2, warmup_steps_min=3, steady_s=1.0, steps_min=20, steps_max=20_000),
        data="synthetic",
        seed=0,
        threads=1,
        cpus=[cpu],
        parity=False,
        evaluate=False,
    )
    busy = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{cpu}])\nwhile True: pass"])
    try:
        launch = run_launch(request)
    finally:
        busy.kill()
        busy.wait()
    assert launch.failure is None
    assert taken_share(launch) == pytest.approx(0.5, abs=0.2)
    assert is_contended(launch)
    summary = summary_of(launch)
    assert (summary.median_ns, summary.p95_ns) == (None, None)


@pytest.mark.frameworks
def test_a_run_beside_a_busy_program_gives_no_number_and_says_so(tmp_path):
    """From the worker to the profile, its table and the command's last words."""
    cpu = min(os.sched_getaffinity(0))
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\ntitle = "Seconds long"\n[cells]\nworkloads = ["mlp"]\nbackends = ["torch"]\n'
        'tasks = ["infer"]\nbatches = [64]\n[measure]\nlaunches = 1\nwarmup_s = 0.2\nwarmup_steps_min = 3\n'
        "steady_s = 1.0\nsteps_min = 20\nsteps_max = 20000\n"
    )

    def kit(*arguments):
        command = ["taskset", "-c", str(cpu), sys.executable, "-m", "kit", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=True)

    busy = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, [{cpu}])\nwhile True: pass"])
    try:
        said = kit("run", "tiny.toml", "--data", "synthetic", "--out", "run.json").stderr
    finally:
        busy.kill()
        busy.wait()
    assert "kit: other work took the CPUs in 1 of 1 launch, which give no numbers" in said
    (result,) = read_profile(tmp_path / "run.json").cells
    assert result.launch_summaries[0].contended
    assert result.summary.step_ns is None
    assert result.summary.reasons["step_ns"].startswith("other work took ")
    assert "contended 1" in kit("compare", "run.json").stdout
