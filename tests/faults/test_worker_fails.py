"""A worker that runs out of memory, computes nonsense, or loses its sampler."""

import os
import sys
from pathlib import Path

import pytest
from fault_runs import in_worker

from kit.profile.store import read_profile

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

CGROUPS = Path("/sys/fs/cgroup")
# PyTorch's worker needs 0.3 GB at batch 16, and 3.3 GB at batch 10000.
MEMORY_B = 1_200_000_000
ADDRESS_SPACE_KIB = 3_000_000
HUNGRY = {"workloads": ["cnn"], "batches": [16, 10_000], "launches": 1, "steps_max": 30}


@pytest.fixture
def limited():
    """The beginning of a command line that runs the rest in a cgroup of MEMORY_B. Skips where none can be made."""
    unified = (CGROUPS / "cgroup.controllers").exists()
    group = (CGROUPS if unified else CGROUPS / "memory") / f"steadykit-faults-{os.getpid()}"
    try:
        group.mkdir()
        limits = ["memory.max", "memory.swap.max"] if unified else ["memory.limit_in_bytes", "memory.swappiness"]
        for file, value in zip(limits, (MEMORY_B, 0), strict=True):
            if file == limits[0] or (group / file).exists():
                (group / file).write_text(str(value))
    except OSError as error:
        if group.exists():
            group.rmdir()
        pytest.skip(f"no cgroup with a memory limit can be made here: {error}")
    yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    group.rmdir()


def outcome(place):
    small, hungry = read_profile(place.path).cells
    assert (small.status, hungry.status) == ("ok", "failed")
    assert len(small.launches) == 1
    (launch,) = hungry.launches
    return launch.failure


def test_a_worker_that_is_killed_for_want_of_memory(workplace, limited, tell):
    place = workplace(**HUNGRY)
    answer = place.run(under=limited)
    failure = outcome(place)
    assert answer.code == 3
    assert failure.exit_code == -9
    assert failure.reason == "worker ended by SIGKILL: out of memory (meanwhile the kernel killed for want of it)"
    (said,) = answer.lines("kit: failed: ")
    tell(
        "out of memory: a cgroup's limit",
        "the run in a cgroup of 1.2 GB; at this batch it needs 3.3 GB",
        kept=place.where_kept(place.in_profile()),
        code=answer.code,
        said=said,
        go_on="nothing to go on with: the other cell is complete",
    )


def test_a_worker_that_is_refused_memory(workplace, tell):
    place = workplace(**HUNGRY)
    python = place.folder / "python"
    python.write_text(f'#!/bin/sh\nulimit -v {ADDRESS_SPACE_KIB}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    answer = place.run(KIT_PYTHON_TORCH=str(python))
    failure = outcome(place)
    assert answer.code == 3
    assert failure.exit_code == 1
    assert "can't allocate memory" in failure.reason
    (said,) = answer.lines("kit: failed: ")
    tell(
        "out of memory: an allocation that fails",
        "the worker with 3 GB of address space (`ulimit -v`)",
        kept=place.where_kept(place.in_profile()),
        code=answer.code,
        said=said.partition(": you tried")[0],
        go_on="nothing to go on with: the other cell is complete",
    )


def test_a_loss_that_is_not_a_number(workplace, tell):
    place = workplace(tasks=["train", "infer"])
    fault = {"task": "train", "round": 1, "phase": "build", "do": "weights_that_are_no_numbers"}
    answer = place.run(**in_worker(fault))
    train, infer = read_profile(place.path).cells
    assert answer.code == 3
    assert (train.status, infer.status) == ("failed", "ok")
    kept, failed = train.launches
    assert kept.failure is None
    assert failed.failure.reason == "the last step's loss is nan: a program that computes nonsense is not timed"
    assert train.summary.step_ns is None or train.summary.step_ns.launches == 1
    (said,) = answer.lines("kit: failed: ")
    tell(
        "loss is not a number",
        "the program is built from weights that are NaN; the cell's second launch",
        kept=place.where_kept([kept, *infer.launches]),
        code=answer.code,
        said=said,
        go_on="nothing to go on with: the other cell is complete",
    )


def test_a_sampler_that_is_killed_costs_only_what_it_would_have_seen(workplace, tell):
    # Steps of some milliseconds, so that samples lie in the steady phase, on a quiet machine and on a busy one.
    place = workplace(batches=[2048], steady_s=0.5, steps_max=600)
    answer = place.run(**in_worker({"batch": 2048, "round": 1, "phase": "steady", "do": "kill_sampler"}))
    assert answer.code == 0
    place.check_whole()
    first, second = place.in_profile()
    assert first.utilization.process_cpu_pct is not None
    seen = second.utilization
    assert second.step_ns
    assert seen.process_cpu_pct is None
    reason = seen.reasons["process_cpu_pct"]
    assert "signal 9" in reason
    tell(
        "sampler killed in mid-launch",
        "SIGKILL to the sampler's process as the steady steps begin",
        kept="every launch with its steps, in the profile; the utilization of this one is null",
        code=answer.code,
        said=f"in the profile: {reason}",
        go_on="nothing is missing",
    )
