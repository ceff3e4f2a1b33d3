"""`kit run` killed with SIGKILL: within a system call, between two, and whenever it pleases."""

import random
import time
from typing import NamedTuple

import pytest
from fault_runs import ended, started_of

from kit.profile.journal import journal_path, read_journal
from kit.profile.sidecar import attach_steps

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

RESUME = "`kit run --resume --out run.json`"
# More than stay in the profile: 20 000.
MANY_STEPS = {"batches": [1], "steps_min": 12_000, "steps_max": 12_000}


def killed(place, shim, call, part, count=1):
    """A run that is killed there. Its finished launches.

    The journal and the profile get their names when they are whole: what is written goes to a hidden file, of which
    the first write is the journal's header, then there is one a launch, and the next is the profile's.
    """
    answer = place.run(**shim, SHIM_KILL=call, SHIM_PATH=f"{place.folder}/{part}", SHIM_COUNT=str(count))
    assert answer.code == -9, answer.stderr
    return place.in_journal()


def test_while_it_begins_its_journal(workplace, shim, tell):
    place = workplace(launches=1)
    assert not killed(place, shim, "within-write", ".kit-")
    assert not place.path.exists()
    assert not journal_path(place.path).exists()
    answer = place.run(**shim)
    assert answer.code == 0, answer.stderr
    place.check_whole()
    tell(
        "`kit run` killed while it begins its journal",
        "SIGKILL when half of the first line is written",
        kept="nothing had been measured; a hidden file `.kit-….part`, which the next run into the same file removes",
        code=-9,
        said="",
        go_on="the same command again",
    )


def test_within_a_line_of_the_journal(workplace, shim, tell):
    place = workplace()
    finished = killed(place, shim, "within-write", ".kit-", count=3)
    assert len(finished) == 1
    assert read_journal(journal_path(place.path)).damaged == 1
    kept = place.where_kept(finished)
    answer = place.go_on(**shim)
    assert answer.code == 0, answer.stderr
    place.check_whole(finished)
    (said,) = answer.lines("of the journal is damaged")
    tell(
        "`kit run` killed within a line of the journal",
        "SIGKILL when half of the second launch's line is written",
        kept=kept,
        code=-9,
        said=said,
        go_on=RESUME,
    )


class End(NamedTuple):
    """Where a run whose launches have all finished is killed."""

    fault: str
    injected: str
    call: str
    part: str
    count: int
    steps: dict[str, object]


ENDS = [
    End("within the profile", "when half of the profile is written", "within-write", ".kit-", 4, {}),
    End("between sidecar and profile", "when the sidecar has its name", "after-rename", "run.json.", 1, MANY_STEPS),
    End("before it removes the journal", "when the profile has its name", "before-unlink", "run.json.journal", 1, {}),
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.fault)
def test_at_the_end(workplace, shim, tell, end):
    place = workplace(**end.steps)
    finished = killed(place, shim, end.call, end.part, end.count)
    assert len(finished) == 2
    kept = place.where_kept(finished)
    answer = place.go_on(**shim)
    assert answer.code == 0, answer.stderr
    profile = place.check_whole(finished)
    attach_steps(place.path, profile)
    assert all(len(launch.step_ns) == launch.steps for cell in profile.cells for launch in cell.launches)
    tell(f"`kit run` killed {end.fault}", f"SIGKILL {end.injected}", kept=kept, code=-9, said="", go_on=RESUME)


@pytest.mark.timeout(400)
def test_at_random_moments(workplace, tell):
    """One run that is killed and resumed until it is through, later each time so that it comes to an end."""
    place = workplace(launches=3)
    draw = random.Random(20)
    finished, kills = [], 0
    begin = time.monotonic()
    process = place.begin()
    place.wait_for_launches(1, process)
    longest_s = time.monotonic() - begin
    while True:
        moment = time.monotonic() + draw.uniform(0, longest_s)
        while process.poll() is None and time.monotonic() < moment:
            time.sleep(0.005)
        process.kill()
        answer = ended(process)
        if answer.code == 0:
            break
        assert answer.code == -9, answer.stderr
        kills += 1
        if not journal_path(place.path).exists():
            # The profile was complete.
            break
        before, finished = finished, place.in_journal()
        assert started_of(before) <= started_of(finished)
        longest_s *= 1.2
        process = place.resume()
    assert kills
    place.check_whole(finished)
    tell(
        "`kit run` killed at random moments",
        "SIGKILL at a random moment, and again and again in each resumed run, until one comes to its end",
        kept="every finished launch, in the journal",
        code=-9,
        said="",
        go_on=RESUME,
    )
