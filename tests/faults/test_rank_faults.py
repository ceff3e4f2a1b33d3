"""A worker of two ranks: they end together, and the launch says which of them failed."""

import os

import pytest

from kit.profile.store import read_profile

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: each rank needs one of its own")
# By the batch of a cell that trains: what befalls rank 1, the code of the failure and some of its values.
FAULTS = {
    16: ({"at": "block", "nth": 1, "do": "kill"}, "signal", {"signal": "SIGKILL", "rank": 1}),
    32: ({"at": "warmup", "do": "no_memory"}, "exception", {"rank": 1}),
    64: ({"at": "import", "do": "kill"}, "signal", {"rank": 1}),
}


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


def failures(place, planted, **environment):
    """By batch, how training failed in round 0; inference is whole, and no process is left."""
    faults = [{"cell": f"/train/b{batch}/", "rank": 1, **fault} for batch, (fault, *_) in planted.items()]
    answer = place.run("--devices", "2", "--batch", ",".join(map(str, planted)), faults=faults, **environment)
    assert answer.code == 3, answer.stderr
    launches = place.launches()
    assert [name for name, launch in launches.items() if launch.failure is not None] == [
        ("train", batch, 0) for batch in planted
    ]
    assert {("infer", batch, number) for batch in planted for number in range(2)} <= set(launches)
    assert place.left() == []
    return {batch: launches["train", batch, 0].failure.reason for batch in planted}


def test_a_rank_that_is_killed_or_gets_no_memory_is_named(place):
    reasons = failures(place, FAULTS)
    for batch, (_, code, values) in FAULTS.items():
        assert reasons[batch].code == code
        assert values.items() <= reasons[batch].values.items()
    assert "MemoryError" in reasons[32].values["type"]
    assert len(place.launches()["train", 16, 0].blocks.cycle) == 1


@pytest.mark.slow
def test_a_rank_that_hangs_is_ended_at_the_limit(place):
    reasons = failures(place, {16: ({"at": "build", "do": "hang"},)}, KIT_PHASE_LIMIT_S="8")
    assert reasons[16].code == "phase_timeout"


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
