"""What comparing needs of a cell's launches: planted in each of them, found in all."""

import msgspec
import pytest
from profile_builder import build_cell, build_launch

from kit.profile.launch import Evaluation, Failure, Parity, Threads
from kit.profile.launches_brief import condense

CPU, GPU = build_cell(), build_cell(device="gpu")
FAILED = Failure(phase="steady", reason="killed")


def used(launch, **fields):
    launch.utilization = msgspec.structs.replace(launch.utilization, **fields)
    return launch


def proof(loss):
    return Parity(losses=[loss], weights_sha256="a" * 64, batches_sha256="b" * 64)


def trained(updates, accuracy=0.9):
    return Evaluation(accuracy=accuracy, samples=10_000, updates=updates)


def test_no_launches_say_nothing():
    brief = condense(CPU, [])
    assert (brief.made, brief.finished, brief.data, brief.threads) == (0, (), (), ())
    assert brief.parity is brief.accuracy_updates is None
    assert brief.gpu_throttled_by == {}


def test_a_failed_launch_counts_as_made_and_says_only_what_it_did():
    one_cpu = Threads(requested=1, reported=1, reported_reason=None, cpus=[0])
    failed = build_launch(CPU, 1, failure=FAILED, data="synthetic", threads=one_cpu, planted_slowdown_pct=3.0)
    brief = condense(CPU, [build_launch(CPU, 0), failed])
    assert (brief.made, brief.finished) == (2, (0,))
    assert brief.data == (("mnist", "d" * 64),)
    assert brief.data_names == ("mnist", "synthetic")
    assert (brief.threads, brief.planted_pct) == ((2,), (0.0,))


def test_the_losses_are_those_of_the_first_that_recorded_them():
    launches = [build_launch(CPU, 0, parity=None), *(build_launch(CPU, n, parity=proof(n)) for n in (1, 2))]
    assert condense(CPU, launches).parity == proof(1)


@pytest.mark.parametrize(
    ("evaluations", "updates"),
    [
        ([trained(400), trained(400)], 400),
        ([trained(400), trained(500)], None),
        ([trained(400), None, trained(999, accuracy=None)], 400),
        ([trained(None)], None),
        ([None], None),
    ],
)
def test_the_updates_are_those_after_which_every_accuracy_was_scored(evaluations, updates):
    launches = [build_launch(CPU, number, evaluation=one) for number, one in enumerate(evaluations)]
    assert condense(CPU, launches).accuracy_updates == updates


def test_what_happened_is_told_by_round():
    launches = [
        build_launch(CPU, 0, recompiles=1, graph_breaks=0),
        build_launch(CPU, 1, recompiles=None, graph_breaks=2),
        used(build_launch(CPU, 2), throttled_ns=5),
        used(build_launch(CPU, 3), throttled_ns=None),
        used(build_launch(CPU, 4), throttled_ns=-5),
    ]
    brief = condense(CPU, launches)
    assert (brief.recompiled, brief.graph_broken, brief.throttled) == ((0,), (1,), (2,))
    assert brief.throttling_known == (0, 1, 2, 4)


def test_a_slowed_gpu_counts_for_cells_that_computed_on_one():
    def launches(cell):
        return [
            used(build_launch(cell, 0), gpu_throttled_by=["heat"]),
            used(build_launch(cell, 1), gpu_throttled_by=[]),
            used(build_launch(cell, 2), gpu_throttled_by=None),
        ]

    assert condense(GPU, launches(GPU)).gpu_throttled_by == {0: ["heat"], 1: []}
    assert condense(CPU, launches(CPU)).gpu_throttled_by == {}
