import msgspec
import pytest
from profile_builder import build_cell, build_failed, build_result

from kit.compare.marks import marks_of
from kit.stats.launch_summary import AUTOCORRELATION_WARN

POWER_CAP = ["software power cap of GPU 0"]


def one_launch(*, throttled_ns=0, gpu=None, device="gpu", verdict="warmup", autocorrelation=0.1, **launch_fields):
    result = build_result(build_cell(device=device), [1e6], **launch_fields)
    [launch], [summary] = result.launches, result.launch_summaries
    launch.utilization = msgspec.structs.replace(launch.utilization, throttled_ns=throttled_ns, gpu_throttled_by=gpu)
    result.launch_summaries = [msgspec.structs.replace(summary, verdict=verdict, autocorrelation=autocorrelation)]
    return result


@pytest.mark.parametrize(
    ("what", "mark"),
    [
        ({"recompiles": 1}, "recompiled"),
        ({"graph_breaks": 2}, "graph breaks"),
        ({"throttled_ns": 1}, "throttled"),
        ({"gpu": POWER_CAP}, "GPU throttled"),
        ({"autocorrelation": AUTOCORRELATION_WARN + 0.01}, "correlated steps"),
        ({"verdict": "slowdown"}, "slowdown"),
        ({"verdict": "no_steady_state"}, "no steady state"),
    ],
)
def test_what_a_reader_should_know_marks_the_launch(what, mark):
    result = one_launch(**what)
    assert marks_of(result) == {0: [mark]}


@pytest.mark.parametrize(
    "what",
    [
        {},
        {"recompiles": 0, "graph_breaks": 0},
        {"recompiles": None, "throttled_ns": None, "autocorrelation": None},
        {"autocorrelation": AUTOCORRELATION_WARN},
        {"verdict": "flat"},
        {"gpu": []},
        {"gpu": POWER_CAP, "device": "cpu"},
    ],
)
def test_what_did_not_happen_or_was_not_measured_marks_nothing(what):
    result = one_launch(**what)
    assert marks_of(result) == {}


def test_marks_add_up_and_a_failed_launch_has_none():
    everything = one_launch(
        recompiles=1, graph_breaks=1, throttled_ns=5, gpu=POWER_CAP, autocorrelation=0.9, verdict="slowdown"
    )
    assert marks_of(everything) == {
        0: ["recompiled", "graph breaks", "throttled", "GPU throttled", "correlated steps", "slowdown"]
    }
    assert marks_of(build_failed(build_cell())) == {}
