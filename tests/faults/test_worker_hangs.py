"""A worker that hangs, with a child in a session of its own; neither heeds a signal that can be ignored."""

from typing import NamedTuple

import psutil
import pytest
from fault_runs import Ended, Workplace, in_worker

from kit.profile.schema import Profile
from kit.profile.store import read_profile

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

PHASES = ("import", "steady", "parity")
BATCH_OF = {phase: 17 + index for index, phase in enumerate(PHASES)}
HEALTHY = 16
# A framework is imported within it on a busy machine.
LIMIT_S = 10


class Run(NamedTuple):
    place: Workplace
    answer: Ended
    profile: Profile
    children: dict[str, int]  # phase -> process id


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run: a cell for each phase, and one that nothing happens to."""
    folder = tmp_path_factory.mktemp("hangs")
    place = Workplace(folder, batches=[HEALTHY, *BATCH_OF.values()], launches=1)
    faults = [
        {"batch": batch, "phase": phase, "do": "hang", "told": str(folder / f"child-{phase}")}
        for phase, batch in BATCH_OF.items()
    ]
    answer = place.run(KIT_PHASE_LIMIT_S=str(LIMIT_S), **in_worker(*faults))
    children = {phase: int((folder / f"child-{phase}").read_text()) for phase in PHASES}
    return Run(place, answer, read_profile(place.path), children)


@pytest.mark.parametrize("phase", PHASES)
def test_a_hanging_worker_is_ended_with_all_that_it_started(run, tell, phase):
    (cell,) = [cell for cell in run.profile.cells if cell.cell.batch == BATCH_OF[phase]]
    (launch,) = cell.launches
    assert (cell.status, launch.failure.phase, launch.failure.exit_code) == ("failed", phase, None)
    assert f"no end within {LIMIT_S}" in launch.failure.reason
    assert not psutil.pid_exists(run.children[phase]) or (
        psutil.Process(run.children[phase]).status() == psutil.STATUS_ZOMBIE
    )
    (said,) = run.answer.lines(f"kit: failed: {cell.key}: ")
    tell(
        f"worker hangs in `{phase}`",
        f"the worker sleeps there, heeds no SIGTERM, and so does a child in a session of its own; "
        f"`KIT_PHASE_LIMIT_S={LIMIT_S}`",
        kept="every finished launch, in the profile; the child is gone, too",
        code=run.answer.code,
        said=said,
        go_on="nothing to go on with: the other cells are complete",
    )


def test_the_cell_that_nothing_happened_to_is_complete(run):
    assert run.answer.code == 3
    (cell,) = [cell for cell in run.profile.cells if cell.cell.batch == HEALTHY]
    assert (cell.status, [launch.failure for launch in cell.launches]) == ("ok", [None])
