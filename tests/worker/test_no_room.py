"""A worker whose record does not fit on the disk: a real small file system (tmpfs)."""

import os
import subprocess
import sys

import pytest

from kit.worker.no_room import EXIT_NO_ROOM

WRITE = """
import sys
from pathlib import Path
from kit.profile.launch import LaunchRequest, StepPlan
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes
from kit.worker.__main__ import _write
from kit.worker.measure import new_launch
(cell,) = plan_cells(Axes(backends=["torch"], workloads=["mlp"], tasks=["infer"], batches=[16]))
plan = StepPlan(warmup_s=1, warmup_steps_min=3, steady_s=1, steps_min=20, steps_max=5000)
request = LaunchRequest(
    cell=cell, round=0, plan=plan, data="synthetic", seed=0, threads=1, cpus=[], parity=False, evaluate=False
)
launch = new_launch(request)
launch.step_ns = [1] * int(sys.argv[2])
_write(Path(sys.argv[1]) / "launch.json", request, launch)
"""


@pytest.mark.parametrize(("steps", "code"), [(1_000, 0), (100_000, EXIT_NO_ROOM)])
def test_it_says_so_by_its_exit_code_for_it_can_say_it_nowhere_else(tmp_path, steps, code):
    mount = f'mount -t tmpfs -o size=64k tmpfs "{tmp_path}" || exit 99; exec "$@"'
    root = [] if os.getuid() == 0 else ["--map-root-user"]
    worker = [sys.executable, "-c", WRITE, str(tmp_path), str(steps)]
    answer = subprocess.run(
        ["unshare", *root, "--mount", "sh", "-c", mount, "sh", *worker], capture_output=True, text=True, check=False
    )
    if answer.returncode == 99 or answer.stderr.startswith("unshare"):
        pytest.skip(f"no file system can be mounted here: {answer.stderr.strip()}")
    assert answer.returncode == code, answer.stderr
