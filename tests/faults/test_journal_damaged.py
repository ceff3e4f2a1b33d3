"""A journal that is torn, cut off, flipped or deleted after a run was interrupted, or while it goes on."""

import shutil

import pytest
from fault_runs import Workplace, ended

from kit.profile.journal import journal_path
from kit.profile.store import read_profile

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

RESUME = "`kit run --resume --out run.json`"


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """A run of three launches, of which two have finished."""
    place = Workplace(tmp_path_factory.mktemp("interrupted"), launches=3)
    assert place.run("--budget", "0.001").code == 0
    assert place.go_on("--budget", "0.001").code == 0
    assert len(place.in_journal()) == 2
    assert read_profile(place.path).interrupted
    return place


def torn(data):
    return data[:-20]


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]


DAMAGE = {
    "journal torn in its last line": ("its last 20 bytes are cut off", torn, 1),
    "journal with a flipped bit in a launch": (
        "one bit of the last launch's line",
        lambda data: flipped(data, -99),
        1,
    ),
    "journal with a flipped bit in its header": ("one bit of its first line", lambda data: flipped(data, 500), 2),
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_a_damaged_journal(interrupted, workplace, tell, fault):
    injected, damage, sound = DAMAGE[fault]
    place = copied(interrupted, workplace)
    finished = place.in_profile()
    journal = journal_path(place.path)
    journal.write_bytes(damage(journal.read_bytes()))
    read_back = place.in_journal()
    assert len(read_back) == sound
    kept = place.where_kept(finished)
    answer = place.go_on()
    assert answer.code == 0, answer.stderr
    place.check_whole(finished)
    said = " ".join(answer.lines("kit: "))
    tell(fault, injected, kept=kept, code=answer.code, said=said, go_on=RESUME)


def test_a_journal_that_is_cut_off_within_its_header(interrupted, workplace, tell):
    place = copied(interrupted, workplace)
    finished = place.in_profile()
    journal = journal_path(place.path)
    journal.write_bytes(journal.read_bytes()[:300])
    kept = place.where_kept(finished)
    refused = place.go_on()
    assert refused.code == 2
    (said,) = refused.lines("kit: ")
    journal.unlink()
    answer = place.go_on()
    assert answer.code == 0, answer.stderr
    place.check_whole(finished)
    tell(
        "journal cut off within its header",
        "all but its first 300 bytes are cut off",
        kept=kept,
        code=refused.code,
        said=said,
        go_on=f"remove the journal, then {RESUME} goes on from the profile",
    )


def test_a_journal_that_is_deleted_after_an_interrupt(interrupted, workplace, tell):
    place = copied(interrupted, workplace)
    finished = place.in_profile()
    journal_path(place.path).unlink()
    kept = place.where_kept(finished)
    answer = place.go_on()
    assert answer.code == 0, answer.stderr
    place.check_whole(finished)
    tell(
        "journal deleted after an interrupt", "the file is removed", kept=kept, code=answer.code, said="", go_on=RESUME
    )


def test_a_journal_that_is_deleted_while_the_run_goes_on(workplace, tell):
    place = workplace()
    process = place.begin()
    place.wait_for_launches(1, process)
    finished = place.in_journal()
    journal_path(place.path).unlink()
    answer = ended(process)
    assert answer.code == 2, answer.stderr
    (said,) = answer.lines("kit: ")
    kept = place.where_kept(finished)
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    place.check_whole(finished)
    tell(
        "journal deleted while the run goes on",
        "the file is removed while the second launch runs",
        kept=kept,
        code=answer.code,
        said=said,
        go_on=RESUME,
    )


def copied(interrupted, workplace):
    place = workplace(launches=3)
    for path in (interrupted.path, journal_path(interrupted.path)):
        shutil.copy(path, place.folder)
    return place
