"""What `kit run` says at its end of launches that gave no numbers."""

from types import SimpleNamespace

import msgspec
from profile_builder import MS, build_cell, build_launch

from kit.cli.run import _say_without_numbers
from kit.profile.launch import Failure
from kit.stats.launch_summary import summary_of

UNSTEADY = [MS] * 150 + [2 * MS] * 50


def launched(round, taken_pct, step_ns=(MS,) * 200, failure=None):
    launch = build_launch(build_cell(), round, step_ns=list(step_ns), warmup_steps=20)
    launch.utilization = msgspec.structs.replace(launch.utilization, cpu_taken_pct=taken_pct)
    launch.failure = failure
    return launch


def said(capsys, *launches):
    summaries = [summary for launch in launches if (summary := summary_of(launch)) is not None]
    profile = SimpleNamespace(cells=[SimpleNamespace(launch_summaries=summaries)])
    _say_without_numbers(SimpleNamespace(finished=launches, path="run.json"), profile)
    return capsys.readouterr().err.splitlines()


def test_a_launch_that_failed_in_the_end_is_no_launch_without_a_number(capsys):
    failed = launched(0, 100.0, failure=Failure(phase="parity", reason="planted"))
    (line,) = said(capsys, failed, launched(1, 0.0, UNSTEADY), launched(2, 0.0))
    assert line.startswith("kit: no steady state in 1 of 3 launches")


def test_each_kind_is_counted_by_itself(capsys):
    contended, unsteady = said(capsys, launched(0, 100.0), launched(1, 100.0, UNSTEADY), launched(2, 0.0, UNSTEADY))
    assert contended.startswith("kit: other work took the CPUs in 2 of 3 launches")
    assert unsteady.startswith("kit: no steady state in 1 of 3 launches")


def test_nothing_is_said_of_a_run_that_has_all_its_numbers(capsys):
    assert said(capsys, launched(0, 0.0)) == []
