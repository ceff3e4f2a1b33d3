"""A worker that dies, hangs or gets no memory: its launch has failed with its reason, the others go on, exit 3."""

import pytest

TRAIN, INFER = "/train/", "/infer/"


def failed_alone(place, answer, number):
    """The failure of training's launch in that round; inference is whole, and training's rounds before it."""
    assert answer.code == 3, answer.stderr
    launches = place.launches()
    assert {name for name in launches if name[0] == "infer"} == {("infer", 0), ("infer", 1)}
    assert {name for name in launches if name[0] == "train"} == {("train", earlier) for earlier in range(number + 1)}
    failure = launches["train", number].failure
    assert [name for name, launch in launches.items() if launch.failure is not None] == [("train", number)]
    assert len([line for line in answer.messages if "failed: mlp (plain, train, batch 16)" in line]) == 1
    assert place.left() == []
    return failure


def test_a_worker_that_is_killed_in_a_block(place):
    answer = place.run(faults=[{"cell": TRAIN, "at": "block", "nth": 1, "start": 1, "do": "kill"}])
    failure = failed_alone(place, answer, 1)
    assert (failure.phase, failure.reason.code, failure.reason.values) == ("steady", "signal", {"signal": "SIGKILL"})
    assert len(place.launches()["train", 1].blocks.cycle) == 1


def test_a_worker_whose_supervisor_is_killed(place):
    answer = place.run(faults=[{"cell": TRAIN, "at": "block", "start": 1, "do": "kill_supervisor"}])
    failure = failed_alone(place, answer, 1)
    assert (failure.phase, failure.reason.code) == ("steady", "supervisor_ended")
    assert failure.reason.values == {"signal": "SIGKILL"}


def test_a_worker_that_hangs_is_ended_at_the_limit(place):
    answer = place.run(faults=[{"cell": TRAIN, "at": "build", "do": "hang"}], KIT_PHASE_LIMIT_S="3")
    failure = failed_alone(place, answer, 0)
    assert (failure.phase, failure.reason.code) == ("build", "phase_timeout")


def test_a_worker_that_gets_no_memory(place):
    answer = place.run(faults=[{"cell": TRAIN, "at": "warmup", "do": "no_memory"}])
    failure = failed_alone(place, answer, 0)
    assert (failure.phase, failure.reason.code) == ("warmup", "exception")
    assert "MemoryError" in failure.reason.values["type"]
    assert "MemoryError" in failure.stderr_tail


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["import", "data", "build", "first_step", "warmup", "parity", "finish"])
def test_a_worker_that_is_killed_in_any_phase(place, phase):
    answer = place.run(faults=[{"cell": TRAIN, "at": phase, "do": "kill"}])
    failure = failed_alone(place, answer, 0)
    assert (failure.phase, failure.reason.code) == (phase, "signal")
