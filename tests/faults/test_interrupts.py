"""Signals that end a run in good order, and two runs that get into each other's way."""

import os
import signal
import time

import pytest
from fault_runs import Workplace, ended, in_worker, started_of

from kit.profile.journal import journal_path
from kit.profile.store import read_profile

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_keeps_what_had_finished_and_can_be_resumed(workplace, tell, number):
    place = workplace()
    process = place.begin()
    place.wait_for_launches(1, process)
    # To the whole group, as a terminal sends it.
    os.killpg(process.pid, number)
    answer = ended(process)
    assert answer.code == 130, answer.stderr
    interrupted = read_profile(place.path)
    assert interrupted.interrupted
    finished = place.in_journal()
    assert len(finished) == 1
    kept = place.where_kept(finished)
    (said,) = answer.lines("kit: ")
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    assert place.check_whole(finished).id == interrupted.id
    assert not journal_path(place.path).exists()
    tell(
        number.name,
        "to the process group of `kit run`, while the second launch runs",
        kept=kept,
        code=answer.code,
        said=said,
        go_on="`kit run --resume --out run.json`",
    )


@pytest.mark.parametrize(
    ("planted", "fault", "injected"),
    [
        (
            "interrupt_when_a_worker_has_ended",
            "SIGTERM when a worker has just ended",
            "to `kit run`, between the end of the first launch's worker and its line in the journal",
        ),
        (
            "interrupt_in_an_import",
            "SIGINT in the middle of an import",
            "to `kit run`, as it first imports what its statistics need",
        ),
    ],
)
def test_an_interrupt_where_it_has_to_wait_keeps_what_was_measured(workplace, tell, planted, fault, injected):
    place = workplace()
    answer = place.run(FAULT_OF_RUN=planted, **in_worker())
    assert answer.code == 130, answer.stderr
    finished = place.in_journal()
    assert [launch.round for launch in finished] == [0]
    kept = place.where_kept(finished)
    (said,) = answer.lines("kit: ")
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    place.check_whole(finished)
    tell(
        fault,
        injected,
        kept=kept,
        code=answer.code,
        said=said,
        go_on="`kit run --resume --out run.json`",
    )


def test_an_interrupt_when_all_is_written_has_nothing_left_to_end(workplace, tell):
    place = workplace()
    answer = place.run(FAULT_OF_RUN="interrupt_when_all_is_written", **in_worker())
    assert answer.code == 0, answer.stderr
    place.check_whole()
    tell(
        "SIGINT when all is written",
        "to `kit run`, when its profile has been written",
        kept=place.where_kept(place.in_profile()),
        code=answer.code,
        said="",
        go_on="nothing is missing",
    )


# Of what an undisturbed run takes; each falls into another part of it: imports, a worker, what is said of a launch.
@pytest.mark.parametrize("part", [0.05, 0.1, 0.25, 0.45, 0.6, 0.85])
def test_an_interrupt_at_any_time_is_heeded_without_a_traceback(workplace, undisturbed_s, part):
    place = workplace()
    process = place.begin()
    time.sleep(part * undisturbed_s)
    process.send_signal(signal.SIGINT)
    answer = ended(process)
    # -SIGINT: the run had not begun, or everything was said and done.
    assert answer.code in {0, 130, -signal.SIGINT}, answer.stderr
    for sign in ("Traceback", "Exception ignored", "Error"):
        assert sign not in answer.stderr
    if answer.code == 130 or journal_path(place.path).exists():
        finished = place.in_journal()
        assert started_of(finished) == started_of(place.in_profile())
        resumed = place.go_on()
        assert resumed.code == 0, resumed.stderr
        place.check_whole(finished)
    elif answer.code == 0 or place.path.exists():
        place.check_whole()


@pytest.fixture(scope="module")
def undisturbed_s(tmp_path_factory):
    begin = time.monotonic()
    assert Workplace(tmp_path_factory.mktemp("undisturbed")).run().code == 0
    return time.monotonic() - begin


def test_two_runs_into_the_same_file(workplace, tell):
    place = workplace()
    first = place.begin()
    place.wait_for_launches(1, first)
    finished = place.in_journal()
    second, resumed = place.run(), place.go_on()
    assert (second.code, resumed.code) == (2, 2)
    answer = ended(first)
    assert answer.code == 0, answer.stderr
    place.check_whole(finished)
    kept = place.where_kept(finished)
    for fault, injected, refused in (
        ("two runs into the same file", "a second `kit run --out run.json` while the first measures", second),
        ("resumed while it still runs", "`kit run --resume --out run.json` while the run measures", resumed),
    ):
        (said,) = refused.lines("kit: ")
        tell(fault, injected, kept=kept, code=refused.code, said=said, go_on="wait for the first run, or end it")


def test_a_wall_clock_that_is_set_back(workplace, shim, tell):
    place = workplace()
    yesterday = place.folder / "yesterday"
    process = place.begin(**shim, SHIM_CLOCK=str(yesterday))
    place.wait_for_launches(1, process)
    yesterday.touch()
    answer = ended(process)
    assert answer.code == 0, answer.stderr
    place.check_whole()
    first, second = place.in_profile()
    assert second.started < first.started, "the fault was met"
    for launch in (first, second):
        assert all(phase.duration_ns > 0 for phase in launch.phases)
        ends = [phase.begin_ns + phase.duration_ns for phase in launch.phases]
        assert all(end <= after.begin_ns for end, after in zip(ends, launch.phases[1:], strict=False))
        assert min(launch.step_ns) > 0
    assert first.phases[-1].begin_ns < second.phases[0].begin_ns
    tell(
        "wall clock set back a day",
        "a preloaded library sets the wall clock of the run and its workers back, after the first launch",
        kept=place.where_kept([first, second]),
        code=answer.code,
        said="",
        go_on="nothing is missing: only `started` comes from the wall clock; phases and steps are timed by a clock "
        "that nobody can set",
    )
