"""A worker of two ranks: they end together, and the launch says which of them failed."""

import os

import pytest

from kit.profile.store import read_profile

TRAIN = "/train/"
needs_two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: each rank needs one of its own")
pytestmark = needs_two_cpus


def failure_of_training(place, answer):
    """Of round 0; inference is whole, and no process is left."""
    assert answer.code == 3, answer.stderr
    launches = place.launches()
    assert [name for name, launch in launches.items() if launch.failure is not None] == [("train", 0)]
    assert {name for name in launches if name[0] == "infer"} >= {("infer", 0), ("infer", 1)}
    assert place.left() == []
    return launches["train", 0].failure


def test_ranks_divide_cpus_and_batches_and_the_launch_says_how(place):
    answer = place.run("--devices", "2")
    assert answer.code == 0, answer.stderr
    place.check_whole()
    cpus = sorted(os.sched_getaffinity(0))
    for result in read_profile(place.path).cells:
        assert result.cell.devices == 2
        for launch in result.launches:
            assert [rank.threads for rank in launch.ranks] == [len(cpus) // 2] * 2
            assert sorted(cpu for rank in launch.ranks for cpu in rank.cpus) == cpus == launch.threads.cpus


def test_a_rank_that_is_killed_in_a_block(place):
    faults = [{"cell": TRAIN, "at": "block", "nth": 1, "rank": 1, "do": "kill"}]
    failure = failure_of_training(place, place.run("--devices", "2", faults=faults))
    assert (failure.reason.code, failure.reason.values) == ("signal", {"signal": "SIGKILL", "rank": 1})
    assert len(place.launches()["train", 0].blocks.cycle) == 1


@pytest.mark.slow
def test_a_rank_that_hangs_is_ended_at_the_limit(place):
    faults = [{"cell": TRAIN, "at": "build", "rank": 1, "do": "hang"}]
    failure = failure_of_training(place, place.run("--devices", "2", faults=faults, KIT_PHASE_LIMIT_S="8"))
    assert failure.reason.code == "phase_timeout"


def test_a_rank_that_gets_no_memory(place):
    faults = [{"cell": TRAIN, "at": "warmup", "rank": 1, "do": "no_memory"}]
    failure = failure_of_training(place, place.run("--devices", "2", faults=faults))
    assert "MemoryError" in failure.reason.values["type"]
    assert failure.reason.values["rank"] == 1


def test_a_rank_that_dies_before_it_is_there(place):
    faults = [{"cell": TRAIN, "at": "import", "rank": 1, "do": "kill"}]
    failure = failure_of_training(place, place.run("--devices", "2", faults=faults))
    assert failure.reason.values["rank"] == 1


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--devices", "2", "--batch", "33"], "batch 33 cannot be split over 2 devices"),
        (["--devices", "1024", "--batch", "1024"], "give fewer"),
        (["--devices", "2", "--device", "tpu"], "on only one tpu"),
    ],
)
def test_what_no_ranks_can_do_is_one_line(place, options, line):
    answer = place.run(*options)
    assert answer.code == 2
    assert line in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
