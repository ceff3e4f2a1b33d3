"""Workers that die, hang or get no memory: their launches have failed with the reason, the others go on, exit 3."""

import pytest

# By the batch of a cell that trains: what befalls its worker, and the phase, reason and values of its failure.
FAULTS = {
    "16": ({"at": "block", "nth": 1, "start": 1, "do": "kill"}, "steady", "signal", {"signal": "SIGKILL"}),
    "32": ({"at": "block", "start": 1, "do": "kill_supervisor"}, "steady", "supervisor_ended", {"signal": "SIGKILL"}),
    "64": ({"at": "warmup", "do": "no_memory"}, "warmup", "exception", {}),
}
# More batches than these would be compared in two parts of a group.
EARLY, LATE = ("import", "data", "build", "first_step"), ("warmup", "parity", "finish")


def killed(phases):
    faults = [({"at": phase, "do": "kill"}, phase, "signal", {"signal": "SIGKILL"}) for phase in phases]
    return dict(zip(("16", "32", "64", "128"), faults, strict=False))


@pytest.mark.parametrize(
    "planted",
    [
        FAULTS,
        pytest.param(killed(EARLY), marks=pytest.mark.slow),
        pytest.param(killed(LATE), marks=pytest.mark.slow),
    ],
    ids=["faults", "early", "late"],
)
def test_each_launch_fails_alone_with_its_reason(place, planted):
    faults = [{"cell": f"/train/b{batch}/", **fault} for batch, (fault, *_) in planted.items()]
    answer = place.run("--batch", ",".join(planted), faults=faults)
    assert answer.code == 3, answer.stderr
    assert place.left() == []
    launches = place.launches()
    for batch, (fault, phase, code, values) in planted.items():
        number = fault.get("start", 0)
        trained = [name for name in launches if name[:2] == ("train", int(batch))]
        assert trained == [("train", int(batch), earlier) for earlier in range(number + 1)]
        assert {("infer", int(batch), 0), ("infer", int(batch), 1)} <= set(launches)
        failure = launches["train", int(batch), number].failure
        assert (failure.phase, failure.reason.code) == (phase, code), answer.stderr
        assert values.items() <= failure.reason.values.items()
        assert len([line for line in answer.messages if f"failed: mlp (plain, train, batch {batch})" in line]) == 1
    assert len([launch for launch in launches.values() if launch.failure is not None]) == len(planted)
    if planted is FAULTS:
        assert len(launches["train", 16, 1].blocks.cycle) == 1, "what it had is kept"
        no_memory = launches["train", 64, 0].failure
        assert "MemoryError" in no_memory.reason.values["type"] and "MemoryError" in no_memory.stderr_tail


def test_a_worker_that_hangs_is_ended_at_the_limit(place):
    faults = [{"cell": "/train/", "at": "build", "do": "hang"}]
    answer = place.run("--rounds", "1", faults=faults, KIT_PHASE_LIMIT_S="4")
    assert answer.code == 3, answer.stderr
    failure = place.launches()["train", 16, 0].failure
    assert (failure.phase, failure.reason.code, failure.reason.values["limit_s"]) == ("build", "phase_timeout", 4.0)
    assert place.left() == []
