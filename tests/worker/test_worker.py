"""A real worker behind its supervisor: PyTorch's mlp, trained and used in one process."""

import json
from itertools import islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from real_worker import GROUP, block_of, cell, fitted, launch_of, spec_of, worker_of
from uci_har_archive import ROWS, packed, tables

from kit.profile.schema import INJECTED_NS
from kit.worker.fit import FitFeed
from kit.workloads.parity_proof import PARITY_STEPS

TRAIN, INFER = cell(task="train"), cell(task="infer")


@pytest.fixture(scope="module")
def measured():
    """Everything that a proving worker with an injected delay gives."""
    with worker_of(spec_of(TRAIN, INFER, proves=True, slowdown_pct=50.0)) as worker:
        resident_b = worker.build(TRAIN.key, GROUP)
        worker.build(INFER.key, GROUP)
        for key in (TRAIN.key, INFER.key):
            worker.warm_up(key, GROUP)
        for key in (TRAIN.key, INFER.key):
            for cycle in range(3):
                worker.add(key, GROUP, *block_of(worker, key, cycle, 0.05))
        long = worker.long_block(TRAIN.key, GROUP, 0.3)
        for key in (TRAIN.key, INFER.key):
            worker.conclude(key)
        worker.finish()
        launches = [launch_of(worker, of_task) for of_task in (TRAIN, INFER)]
        return SimpleNamespace(launches=launches, long=long, resident_b=resident_b, worker=worker)


@pytest.mark.frameworks
def test_phases_are_there_in_their_order_and_do_not_overlap(measured):
    phases = measured.launches[0].phases
    # Eager PyTorch cannot tell tracing and compiling apart from the first step.
    assert [phase.name for phase in phases] == [
        "start", "import", "data", "build", "first_step", "warmup", "parity", "finish",
    ]  # fmt: skip
    assert all(phase.begin_ns + phase.duration_ns <= later.begin_ns for phase, later in pairwise(phases))


@pytest.mark.frameworks
def test_what_it_runs_on_is_recorded(measured):
    train, infer = measured.launches
    assert train.failure is infer.failure is None
    assert train.threads.requested == train.threads.reported == 1
    assert [(launch.data.name, len(launch.data.sha256)) for launch in (train, infer)] == [("synthetic", 64)] * 2
    assert train.data.sha256 != infer.data.sha256
    assert train.certificate.source == "monotonic_raw"
    assert train.peak_memory_b >= measured.resident_b > 50 << 20


@pytest.mark.frameworks
def test_a_block_has_its_lead_in_its_steps_and_its_counters(measured):
    for launch in measured.launches:
        blocks = launch.blocks
        raw = measured.worker.steps[launch.cell_key, GROUP][-3:]
        assert blocks.cycle == [0, 1, 2]
        for index, step_ns in enumerate(raw):
            lead_in, steps = blocks.lead_in[index], blocks.steps[index]
            assert lead_in >= 1 and steps >= 2 and len(step_ns) == lead_in + steps
            assert blocks.duration_ns[index] == sum(step_ns[lead_in:])
            assert sum(step_ns) <= blocks.span_ns[index]
            # What was injected is in the steps, and in a counter of its own.
            assert 0 < blocks.counters[INJECTED_NS][index] < sum(step_ns)
            assert blocks.counters["process.cpu_ns"][index] > 0
        ends = [begin + span for begin, span in zip(blocks.begin_ns, blocks.span_ns, strict=True)]
        assert all(end <= begin for end, begin in zip(ends[:-1], blocks.begin_ns[1:], strict=True))


@pytest.mark.frameworks
def test_a_long_block_is_no_shorter_and_has_no_lead_in(measured):
    assert measured.long.lead_in == [0]
    assert measured.long.span_ns[0] >= max(0.3e9, measured.long.duration_ns[0])
    assert measured.long.steps[0] > 0


@pytest.mark.frameworks
def test_a_proving_worker_records_parity(measured):
    for launch in measured.launches:
        assert len(launch.parity.losses) == PARITY_STEPS and np.isfinite(launch.parity.losses).all()
        assert launch.recompiles.count in (0, None)
        assert launch.kernels
    assert measured.launches[0].parity.losses[-1] < measured.launches[0].parity.losses[0]


def test_a_worker_that_need_not_prove_does_not():
    plain = cell("plain")
    with worker_of(spec_of(plain)) as worker:
        worker.build(plain.key, GROUP)
        worker.conclude(plain.key)
        launch = launch_of(worker, plain)
    assert (launch.parity, launch.fit, launch.kernels) == (None, None, [])
    assert not {"evaluate", "parity"} & {phase.name for phase in launch.phases}


def planted(of, *faults):
    """Variables that plant faults in the worker of this cell (tests/faults/planted)."""
    who = {"keys": [of.key], "rank": 0, "start": 0}
    return {"FAULTS": json.dumps([{"cell": ""} | fault for fault in faults]), "FAULTS_AT": json.dumps(who)}


def test_what_a_framework_prints_is_no_answer():
    plain = cell("plain", "infer")
    faults = [{"at": at, "do": "chatter"} for at in ("import", "block")]
    with worker_of(spec_of(plain, env=planted(plain, *faults))) as worker:
        worker.build(plain.key, GROUP)
        worker.warm_up(plain.key, GROUP)
        assert block_of(worker, plain.key, 0, 0.02) is not None


@pytest.mark.parametrize(
    ("wrong", "phase", "says"),
    [
        ({"device": "cpu", "devices": 2}, "build", "sees 1 cpu, and --devices needs 2"),
        ({"workload": "cnn"}, "build", "translation"),
    ],
)
def test_a_cell_that_cannot_run_here_is_a_failure_with_its_phase(wrong, phase, says):
    bad, good = cell("plain", **wrong), cell("plain", "infer", **wrong | {"workload": "mlp"})
    with worker_of(spec_of(bad, good)) as worker:
        assert worker.build(bad.key, GROUP) is None
        failure = launch_of(worker, bad).failure
        assert failure.phase == phase
        assert says in str(failure.reason.values)
        # The worker is none the worse.
        assert not worker.has_ended


@pytest.fixture
def fit_of(tmp_path):
    """Run a fit of six windows in batches of two: its blocks, and its record. `lost`: the data go before its score."""

    def run(lost=False, **plan):
        (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
        fit = cell(workload="dblstm", task="fit", batch=2, feed="host")
        with worker_of(spec_of(fit, data="uci_har", env={"KIT_DATA": str(tmp_path)}), **plan) as worker:
            blocks = fitted(worker, fit)
            for file in tmp_path.iterdir() if lost else ():
                file.unlink()
            worker.conclude(fit.key)
            return blocks, launch_of(worker, fit).fit

    return run


@pytest.mark.frameworks
def test_a_fit_runs_its_epochs_and_scores_every_test_sample(fit_of):
    blocks, fit = fit_of(epochs=3)
    # The first step is the first update.
    assert sum(block.steps[0] for block in blocks) == 3 * (ROWS["train"] // 2) - 1
    assert (fit.epochs, fit.updates) == (3, 9)
    assert len(fit.reference_ns) == len(blocks) + 1
    assert all(block.lead_in == [0] for block in blocks)
    # Each class once in the test split.
    assert np.array(fit.confusion).sum(axis=1).tolist() == [1, 1, 1, 0, 0, 0]


def test_each_epoch_of_a_fit_has_an_order_of_its_own_and_begins_with_it():
    drawn = SimpleNamespace(steps=2, order=lambda number: [10 * number, 10 * number + 1], host_batch=int)
    fed = FitFeed(drawn, "host")
    assert [list(fed.batches(count)) for count in (1, 1, 2)] == [[0], [1], [10, 11]]


@pytest.mark.parametrize("feed", ["host", "device"])
def test_batches_of_a_fit_that_no_step_took_come_next(feed):
    drawn = SimpleNamespace(steps=5, order=lambda number: range(10 * number, 10 * number + 5), host_batch=int)
    fed = FitFeed(drawn, feed)
    fed._resident = range(20)
    seen = []
    for asked, taken in ((5, 2), (3, 0), (3, 1), (2, 2), (4, 4)):
        seen.append(list(islice(fed.batches(asked), taken)))
        fed.give_back(asked - taken)
    assert seen == [[0, 1], [], [2], [3, 4], [10, 11, 12, 13]]


def test_a_counter_that_fell_is_not_known():
    plain = cell("plain")
    with worker_of(spec_of(plain, env=planted(plain, {"at": "import", "do": "counters_fall"}))) as worker:
        worker.build(plain.key, GROUP)
        worker.warm_up(plain.key, GROUP)
        blocks, _ = block_of(worker, plain.key, 0, 0.05)
    assert blocks.counters["process.cpu_ns"] == [None]
    assert blocks.counters["process.resident_b"] == [-1], "memory may shrink"


@pytest.mark.frameworks
def test_a_part_of_a_fit_ends_after_its_steps_and_has_no_score(fit_of):
    blocks, fit = fit_of(epochs=2, fit_steps=4)
    # Of the second epoch's three updates one is made.
    assert sum(block.steps[0] for block in blocks) == 3
    assert (fit.updates, fit.epoch_updates, fit.all_updates, fit.is_part) == (4, 3, 6, True)
    assert fit.confusion is None and fit.reason.code == "part_of_a_fit"
    assert fit.test_ns > 0


@pytest.mark.frameworks
def test_a_score_that_fails_leaves_the_times_of_the_fit(fit_of):
    _, fit = fit_of(lost=True, epochs=2)
    assert fit.updates == 6 and len(fit.reference_ns) >= 2
    assert (fit.confusion, fit.test_ns, fit.reason.code) == (None, None, "refused")
