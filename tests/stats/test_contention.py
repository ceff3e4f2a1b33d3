import msgspec
import pytest
from profile_builder import MS, build_cell, build_launch, build_result

from kit.compare.marks import marks_of
from kit.stats.cell_summary import summarize_cell
from kit.stats.contention import TAKEN_SHARE_MAX, is_contended, taken_share
from kit.stats.launch_summary import summary_of

REPLACE = msgspec.structs.replace


def launched(round, taken_pct, cpu_pct=180.0):
    launch = build_launch(build_cell(), round, step_ns=[5 * MS, *[MS] * 200], warmup_steps=20)
    launch.utilization = REPLACE(launch.utilization, cpu_taken_pct=taken_pct, process_cpu_pct=cpu_pct)
    return launch


@pytest.mark.parametrize(("taken_pct", "contended"), [(None, False), (0.0, False), (19.9, False), (20.1, True)])
def test_a_tenth_of_two_cpus_is_the_limit(taken_pct, contended):
    launch = launched(0, taken_pct)
    assert launch.threads.requested == 2
    assert is_contended(launch) is contended
    assert (summary_of(launch).median_ns is None) is contended
    assert summary_of(launch).contended is contended
    assert summary_of(launch).reason == ("other work took 10 % of its CPUs" if contended else None)
    assert taken_share(launch) == (None if taken_pct is None else pytest.approx(taken_pct / 200))
    assert TAKEN_SHARE_MAX == 0.1


def test_a_cells_number_and_cpu_come_of_the_launches_that_count():
    launches = [launched(0, 0.0), launched(1, 120.0, cpu_pct=80.0), launched(2, 1.0)]
    summaries = [summary_of(launch) for launch in launches]
    summary = summarize_cell(build_cell(), launches, summaries)
    assert summary.step_ns.launches == 2
    assert summary.process_cpu_pct.value == pytest.approx(180)


def test_a_cell_without_a_number_says_who_had_its_cpus():
    launches = [launched(round, 100.0) for round in range(2)]
    summary = summarize_cell(build_cell(), launches, [summary_of(launch) for launch in launches])
    assert summary.reasons["step_ns"] == "other work took 50 % of the CPUs in 2 of 2 launches"
    launches = [launched(0, 100.0), launched(1, 0.0)]
    summaries = [summary_of(launches[0]), REPLACE(summary_of(launches[1]), median_ns=None)]
    assert summarize_cell(build_cell(), launches, summaries).reasons["step_ns"] == (
        "other work took 50 % of the CPUs in 1 of 2 launches, and no steady state in 1"
    )


def test_it_is_a_mark():
    result = build_result(build_cell(), [MS, MS])
    result.launch_summaries[1] = REPLACE(result.launch_summaries[1], contended=True)
    assert marks_of(result) == {1: ["contended"]}
