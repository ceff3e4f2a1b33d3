"""A worker that is killed, in every phase: its cell has failed and says where, the others finish."""

from typing import NamedTuple

import pytest
from fault_runs import Ended, Workplace, in_worker

from kit.profile.journal import journal_path
from kit.profile.schema import Profile
from kit.profile.store import read_profile

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

# Phase -> seconds of CPU time within it; those with 0 may be over after a millisecond.
PHASES = {
    "import": 0.1, "data": 0, "build": 0, "trace": 0, "compile": 0, "first_step": 0,
    "warmup": 0.01, "steady": 0.01, "evaluate": 0, "parity": 0, None: 0,
}  # fmt: skip
# Met in the cell's second launch, so that its first is there to be kept.
IN_THE_SECOND = ("warmup", "steady")
# Reached when the steps are measured.
AFTER_THE_STEPS = ("evaluate", "parity")
BATCH_OF = {phase: 8 + index for index, phase in enumerate(PHASES)}
HEALTHY = 7


class Run(NamedTuple):
    place: Workplace
    answer: Ended
    profile: Profile


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run: a cell for each phase, and one that nothing happens to. JAX tells tracing and compiling apart."""
    # Warm-up and steady steps that last long enough to be killed in their midst on a busy machine.
    place = Workplace(
        tmp_path_factory.mktemp("killed"),
        backends=["jax"],
        tasks=["train"],
        batches=[HEALTHY, *BATCH_OF.values()],
        warmup_s=0.3,
        steady_s=0.3,
        steps_max=5000,
    )
    faults = [
        {"task": "train", "batch": BATCH_OF[phase], "round": int(phase in IN_THE_SECOND), "phase": phase}
        | {"do": "kill", "after_cpu_s": seconds}
        for phase, seconds in PHASES.items()
    ]
    answer = place.run(**in_worker(*faults))
    return Run(place, answer, read_profile(place.path))


@pytest.mark.parametrize("phase", PHASES)
def test_a_killed_worker_fails_its_cell_which_says_where(run, tell, phase):
    (cell,) = [cell for cell in run.profile.cells if cell.cell.batch == BATCH_OF[phase]]
    *before, failed = cell.launches
    assert cell.status == "failed"
    assert (failed.failure.phase, failed.failure.exit_code) == (phase, -9)
    assert failed.failure.reason == "worker ended by SIGKILL"
    assert (failed.step_ns is not None) == (phase in AFTER_THE_STEPS)
    assert len(before) == (1 if phase in IN_THE_SECOND else 0)
    assert all(launch.failure is None and launch.step_ns for launch in before)
    (said,) = run.answer.lines(f"kit: failed: {cell.key}: ")
    tell(
        "worker killed before its first phase" if phase is None else f"worker killed in `{phase}`",
        "the worker sends itself SIGKILL there" + ("; the cell's second launch" if phase in IN_THE_SECOND else ""),
        kept="every finished launch, in the profile"
        + ("; the steps of this one, too" if phase in AFTER_THE_STEPS else ""),
        code=run.answer.code,
        said=said,
        go_on="nothing to go on with: the other cells are complete",
    )


def test_the_cell_that_nothing_happened_to_is_complete_and_so_is_the_run(run):
    assert run.answer.code == 3
    (cell,) = [cell for cell in run.profile.cells if cell.cell.batch == HEALTHY]
    assert (cell.status, len(cell.launches)) == ("ok", 2)
    assert all(launch.failure is None for launch in cell.launches)
    assert not run.profile.interrupted
    assert not journal_path(run.place.path).exists()
