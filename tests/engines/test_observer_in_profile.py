"""From a suite's `observer_s` to the profile's `observer`."""

import msgspec
import pytest
from profile_builder import (
    build_blank_launch,
    build_cell,
    build_header,
    build_launch,
    build_profile,
    build_run_plan,
    six_cells,
)

from kit.engines.assemble import assemble_profile
from kit.engines.continuation import Continuation
from kit.engines.prepare import prepare
from kit.profile.launch import ObserverBlocks
from kit.suites.suite import SuiteError, load_suite
from kit.workloads.data.dataset import Resolved

CELLS = [build_cell("torch"), build_cell("jax")]
BLOCKS = ObserverBlocks(
    on_ns=[101, 102, 101], off_ns=[100, 101, 100], on_mean_ns=[103] * 3, off_mean_ns=[100] * 3, steps_per_block=50
)


def header(observer_s=5.0):
    return build_header(build_profile(six_cells(launches=2)), build_run_plan(CELLS, launches=2, observer_s=observer_s))


def observer_of(launches, **more):
    return assemble_profile(header(**more), launches, None, interrupted=False).observer


def test_one_launch_of_the_run_is_asked():
    rest = Continuation(header().plan).rest_of_round([])
    assert {request.cell.key: request.observer_s for request in rest} == {CELLS[0].key: 5.0, CELLS[1].key: 0.0}
    later = Continuation(header().plan).rest_of_round([build_launch(cell, 0) for cell in CELLS])
    assert [request.observer_s for request in later] == [0.0, 0.0]


def test_its_blocks_become_the_profiles_ratio():
    found = observer_of([build_launch(CELLS[1], 0), build_launch(CELLS[0], 0, observer=BLOCKS)])
    assert found.cell_key == CELLS[0].key
    assert found.ratio == pytest.approx(1.01, abs=2e-4)
    assert found.mean_ratio == pytest.approx(1.03)
    assert found.pairs == 3


def test_a_launch_that_failed_gives_null_with_its_reason():
    found = observer_of([build_blank_launch(CELLS[0].key, failure="worker ended by SIGKILL", phase="steady")])
    assert found.ratio is None
    assert found.reason == "in steady: worker ended by SIGKILL"


def test_there_is_none_where_it_was_not_asked_for():
    assert observer_of([build_launch(CELLS[0], 0)], observer_s=0.0) is None


def test_an_interrupted_run_says_that_it_has_not_run_yet():
    found = observer_of([build_launch(CELLS[1], 0)])
    assert (found.cell_key, found.ratio) == (CELLS[0].key, None)
    assert found.reason == "the launch that was to make it has not run"


def test_the_standard_suite_has_time_for_it_and_the_quick_one_has_not():
    assert load_suite("standard").measure.observer_s > 0
    assert load_suite("quick").measure.observer_s == 0


def test_the_suites_seconds_reach_the_plan():
    suite = load_suite("standard")
    suite = msgspec.structs.replace(suite, measure=msgspec.structs.replace(suite.measure, observer_s=7.0))
    planned = prepare(
        suite, CELLS[:1], skipped=[], data=Resolved("synthetic", None), seed=0, cpus=[0], clock="monotonic_raw"
    )
    assert planned.plan.observer_s == 7.0


@pytest.mark.parametrize("seconds", ["-1", "inf", "nan"])
def test_seconds_that_are_none_are_refused(tmp_path, seconds):
    text = (
        '[cells]\nworkloads=["mlp"]\nbackends=["torch"]\n[measure]\nlaunches=1\nwarmup_s=0\nwarmup_steps_min=0\n'
        f"steady_s=1\nsteps_min=20\nsteps_max=30\nobserver_s={seconds}\n"
    )
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\ntitle = "mine"\n{text}')
    with pytest.raises(SuiteError, match="observer_s"):
        load_suite(str(path))
