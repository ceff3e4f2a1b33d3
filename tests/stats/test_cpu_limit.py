import msgspec
import pytest
from profile_builder import MS, build_cell, build_launch

from kit.stats.cell_summary import summarize_cell
from kit.stats.cpu_limit import STOPPED_SHARE_MAX, stopped_share
from kit.stats.launch_summary import summary_of
from kit.stats.lost_cpus import lost_cpus

REPLACE = msgspec.structs.replace


def launched(round, stopped_share=0.0, taken_pct=0.0, step_ns=(5 * MS, *[MS] * 200)):
    """Of two CPUs, each stopped for that share of the steady phase."""
    launch = build_launch(build_cell(), round, step_ns=list(step_ns), warmup_steps=20)
    steady_ns = sum(phase.duration_ns for phase in launch.phases if phase.name == "steady")
    assert (steady_ns > 0, launch.threads.requested) == (True, 2)
    used = {"throttled_ns": round_ns(stopped_share * 2 * steady_ns), "cpu_taken_pct": taken_pct}
    launch.utilization = REPLACE(launch.utilization, **used)
    return launch


def round_ns(value):
    return int(value + 0.5)


@pytest.mark.parametrize(("share", "stopped"), [(0.0, False), (0.009, False), (0.011, True), (0.74, True)])
def test_a_hundredth_of_its_cpus_time_is_the_limit(share, stopped):
    launch = launched(0, share)
    assert STOPPED_SHARE_MAX == 0.01
    assert stopped_share(launch) == pytest.approx(share)
    lost = lost_cpus(launch)
    assert lost == (("limit", pytest.approx(share)) if stopped else None)
    summary = summary_of(launch)
    assert (summary.verdict, summary.contended) == ("flat", False)
    assert (summary.median_ns is None, summary.p95_ns is None) == (stopped, stopped)
    reason = f"a CPU limit stopped its CPUs for {100 * share:.0f} % of the time" if stopped else None
    assert summary.reason == reason


@pytest.mark.parametrize("field", ["utilization", "threads", "phases"])
def test_what_is_not_known_is_not_held_against_a_launch(field):
    launch = REPLACE(launched(0, 0.5), **{field: [] if field == "phases" else None})
    assert stopped_share(launch) is None
    assert lost_cpus(launch) is None
    assert summary_of(launch).median_ns == MS


def test_a_group_with_more_cpus_than_the_launch_is_stopped_for_no_more_than_all_of_the_time():
    assert stopped_share(launched(0, 3.0)) == 1.0


def reason_of(*launches):
    return summarize_cell(build_cell(), launches, [summary_of(launch) for launch in launches]).reasons["step_ns"]


def test_a_cell_without_a_number_says_what_kept_its_cpus():
    stopped, contended = launched(0, 0.5), launched(1, taken_pct=100.0)
    unsteady = launched(2, step_ns=[MS] * 150 + [2 * MS] * 50)
    assert reason_of(stopped) == "a CPU limit stopped the CPUs for 50 % of the time in 1 of 1 launches"
    assert reason_of(stopped, contended, unsteady) == (
        "a CPU limit stopped the CPUs for 50 % of the time in 1 of 3 launches, "
        "and other work took 50 % of the CPUs in 1, and no steady state in 1"
    )
    assert reason_of(contended, unsteady) == (
        "other work took 50 % of the CPUs in 1 of 2 launches, and no steady state in 1"
    )


def test_a_launch_that_was_stopped_and_contended_counts_once():
    both = launched(0, 0.5, taken_pct=100.0)
    assert summary_of(both).contended
    assert reason_of(both) == "a CPU limit stopped the CPUs for 50 % of the time in 1 of 1 launches"
