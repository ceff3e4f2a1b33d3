"""A resumed run that is killed when it has written its sidecar, and not yet its profile."""

import pytest

from kit.profile.journal import journal_path
from kit.profile.sidecar import attach_steps
from kit.profile.store import read_profile

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

# More than stay in the profile, in one launch.
MANY_STEPS = {"batches": [1], "steps_min": 12_000, "steps_max": 12_000}


def with_steps(place):
    profile = read_profile(place.path)
    attach_steps(place.path, profile)
    launches = [launch for cell in profile.cells for launch in cell.launches]
    assert all(len(launch.step_ns) == launch.steps for launch in launches)
    return launches


@pytest.mark.parametrize("journal_is", ["there", "deleted"])
def test_the_interrupted_profile_keeps_its_own_sidecar(workplace, shim, tell, journal_is):
    place = workplace(launches=3, **MANY_STEPS)
    assert place.run("--budget", "0.001", **shim).code == 0
    before = with_steps(place)
    assert len(before) == 1
    kill = {"SHIM_KILL": "after-rename", "SHIM_PATH": ".steps.npz"}
    killed = place.go_on("--budget", "0.001", **shim, **kill)
    assert killed.code == -9, killed.stderr
    assert len([*place.folder.glob("*.steps.npz")]) == 2
    assert len(with_steps(place)) == 1
    finished = place.in_journal()
    assert len(finished) == 2
    kept = place.where_kept(finished)
    if journal_is == "deleted":
        # Then the profile alone gives what it has.
        journal_path(place.path).unlink()
        finished = before
    answer = place.go_on(**shim)
    assert answer.code == 0, answer.stderr
    place.check_whole(finished)
    assert len(with_steps(place)) == 3
    if journal_is == "there":
        tell(
            "`kit run` killed between sidecar and profile while it resumes",
            "SIGKILL when the sidecar has its name; the interrupted profile is still the earlier one",
            kept=f"{kept}; the earlier profile keeps its own sidecar",
            code=-9,
            said="",
            go_on="`kit run --resume --out run.json`",
        )
