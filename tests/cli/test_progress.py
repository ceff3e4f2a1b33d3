import pytest
from profile_builder import build_blank_launch

from kit.cli.progress import RunProgress, describe_left
from kit.engines.conductor import remaining
from kit.engines.schedule import schedule
from kit.suites.plan import plan_cells
from kit.suites.suite import load_suite

SUITE = load_suite("quick")
REQUESTS = schedule(plan_cells(SUITE.cells), launches=3, plan=SUITE.measure.plan(), data="mnist", seed=0, cpus=[0])


def ended(request, failure=None):
    return build_blank_launch(request.cell.key, request.round, failure=failure)


def duration_of(request):
    return 2.0 + len(request.cell.key) % 7


def test_the_time_left_is_what_each_pending_cell_took(capsys):
    with RunProgress(REQUESTS, total=36) as progress:
        for request in REQUESTS[:12]:
            progress.begins(request)
            progress.ended(request, ended(request), duration_of(request))
        assert progress.left_s() == pytest.approx(sum(map(duration_of, REQUESTS[12:])))
        for request in REQUESTS[12:]:
            progress.ended(request, ended(request), duration_of(request))
        assert progress.left_s() == 0
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == len(REQUESTS), "one line a launch, never folded"
    assert lines[-1].startswith("[36/36]")
    assert lines[-1].endswith("done")


def test_a_failed_cell_is_said_at_once_and_no_longer_waited_for(capsys):
    with RunProgress(REQUESTS, total=36) as progress:
        progress.ended(REQUESTS[0], ended(REQUESTS[0], failure="out of [memory]"), 3.0)
        assert progress.left_s() == pytest.approx(33 * 3.0)
    assert f"failed: {REQUESTS[0].cell.key}: in build: out of [memory]" in capsys.readouterr().err


def test_a_resumed_run_counts_what_had_ended(capsys):
    with RunProgress(REQUESTS[30:], total=36) as progress:
        progress.ended(REQUESTS[30], ended(REQUESTS[30]), 1.0)
    assert capsys.readouterr().err.startswith("[31/36]")


def test_a_resumed_run_waits_only_for_cells_that_have_not_failed():
    finished = [ended(REQUESTS[0], failure="planted"), *map(ended, REQUESTS[1:14])]
    pending = remaining(REQUESTS, finished)
    with RunProgress(pending, total=36) as progress:
        for request in pending:
            progress.begins(request)
            progress.ended(request, ended(request), 1.0)
        assert progress.left_s() == 0


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "done"), (42.4, "about 42 s left"), (89, "about 89 s left"), (300, "about 5 min left")]
)
def test_no_finer_than_the_estimate_is_worth(seconds, words):
    assert describe_left(seconds) == words
