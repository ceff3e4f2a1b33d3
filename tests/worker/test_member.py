"""A real member over its pipes: PyTorch's mlp, trained and used in one process."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from member_process import MemberProcess, cell, prepare
from uci_har_archive import ROWS, packed, tables

from kit.profile.launch import PLANTED_NS, Failure
from kit.sensors.catalog import EdgeCounters
from kit.worker.messages import BlockDone, Build, Conclude, Failed, Finish, Finished, Prepared, RunBlock, WarmUp
from kit.workloads.parity import PARITY_STEPS


class Told(NamedTuple):
    prepared: Prepared
    built: list
    warm: list
    blocks: list
    long: BlockDone
    concluded: list
    finished: Finished
    entered: list
    code: int
    left: bytes


@pytest.fixture(scope="module")
def told():
    """Everything that a proving member says."""
    with MemberProcess() as member:
        asked = prepare(cell(task="train"), cell(task="infer"), prove=True, slowdown_pct=50.0)
        prepared = member.done(asked)
        built = [member.done(Build(program=place)) for place in (0, 1)]
        warm = [member.done(WarmUp(program=place)) for place in (0, 1)]
        blocks = [[member.done(RunBlock(program=place, seconds=0.05)) for _ in range(3)] for place in (0, 1)]
        long = member.done(RunBlock(program=0, seconds=0.2, by_time=True))
        concluded = [member.done(Conclude(program=place)) for place in (0, 1)]
        finished = member.done(Finish())
        left, _ = member.process.communicate(timeout=100)
        return Told(
            prepared, built, warm, blocks, long, concluded, finished, member.entered, member.process.returncode, left
        )


pytestmark = pytest.mark.frameworks


def test_a_block_by_time_is_no_shorter_and_has_no_lead_in(told):
    assert told.long.lead_in == 0
    assert told.long.span_ns >= 200_000_000
    # The last step is the one that passes the end.
    assert sum(told.long.step_ns[:-1]) < 200_000_000


def test_it_says_each_phase_before_it_begins(told):
    assert told.entered == [
        ("import", None),
        *((phase, place) for place in (0, 1) for phase in ("data", "build", "trace", "compile", "first_step")),
        ("warmup", 0),
        ("warmup", 1),
        ("parity", 0),
        ("parity", 1),
        ("finish", None),
    ]
    assert (told.code, told.left) == (0, b"")


def test_phases_do_not_overlap(told):
    phases = [*told.prepared.phases, *(one for own in told.built for one in own.phases)]
    # Eager PyTorch cannot tell tracing and compiling apart from the first step.
    assert [phase.name for phase in phases] == ["start", "import", *["data", "build", "first_step"] * 2]
    phases += [one.phase for one in told.warm]
    assert all(phase.duration_ns > 0 for phase in phases)
    assert all(one.begin_ns + one.duration_ns <= next.begin_ns for one, next in pairwise(phases))


def test_what_it_runs_on_is_said(told):
    prepared = told.prepared
    assert prepared.threads.requested == prepared.threads.reported == 1
    for own in told.built:
        assert own.resident_b > 50 << 20
        assert own.data.name == "synthetic"
        assert len(own.data.sha256) == 64
        assert own.data.pool_batches > 1
    train, infer = told.built
    assert train.data.sha256 != infer.data.sha256


def test_a_block_has_its_lead_in_its_steps_and_its_counters(told):
    names = set(EdgeCounters([0]).names)
    for blocks in told.blocks:
        for block in blocks:
            assert block.lead_in >= 1
            assert len(block.step_ns) >= block.lead_in + 2
            assert sum(block.step_ns) <= block.span_ns
            assert names | {PLANTED_NS} >= block.counters.keys() >= {"process.cpu_ns", "process.minor_faults"}
            # One thread on one CPU: it cannot have had more than the whole of the block.
            assert 0 < block.counters["process.cpu_ns"] <= 1.1 * block.span_ns + 10_000_000
        begins = [block.begin_ns for block in blocks]
        assert begins == sorted(begins)
        assert all(one.begin_ns + one.span_ns <= next.begin_ns for one, next in pairwise(blocks))


def test_what_was_planted_is_in_the_steps_and_in_the_counter(told):
    for blocks in told.blocks:
        for block in blocks:
            # Half of a step's own time is a third of what it then takes; other work on the machine may add to the wait.
            assert 0.32 * sum(block.step_ns) <= block.counters[PLANTED_NS] < sum(block.step_ns)


def test_the_clock_is_certified_at_the_end(told):
    certificate = told.finished.certificate
    assert certificate.source == "monotonic_raw"
    assert certificate.null_interval.median_ns > 0
    assert certificate.shortest_step_ns >= 1000 * certificate.null_interval.median_ns * 0.99
    assert told.finished.peak_memory_b >= told.built[0].resident_b


def test_a_proving_member_records_parity(told):
    train, infer = told.concluded
    for own in (train, infer):
        assert own.failure is None
        assert len(own.parity.losses) == PARITY_STEPS
        assert np.isfinite(own.parity.losses).all()
        assert own.recompiles.count in (0, None)
        assert own.kernels
    assert train.parity.losses[-1] < train.parity.losses[0]


def test_one_that_need_not_prove_does_not():
    with MemberProcess() as member:
        member.done(prepare(cell("plain"), prove=False))
        member.done(Build(program=0))
        own = member.done(Conclude(program=0))
    assert (own.parity, own.fit, own.kernels) == (None, None, [])
    assert not {"evaluate", "parity"} & {phase for phase, _ in member.entered}


def test_what_a_framework_prints_is_no_answer(tmp_path):
    faults = '[{"cell": "", "at": "import", "do": "chatter"}, {"cell": "", "at": "block", "do": "chatter"}]'
    with MemberProcess(FAULTS=faults, FAULTS_FOLDER=str(tmp_path)) as member:
        member.done(prepare(cell("plain", "infer")))
        member.done(Build(program=0))
        member.done(WarmUp(program=0))
        assert member.done(RunBlock(program=0, seconds=0.02)).step_ns
        member.done(Finish())
        _, stderr = member.process.communicate(timeout=100)
    assert stderr.count(b"noise of a child") == 2


@pytest.mark.parametrize(
    ("wrong", "phase", "program", "said"),
    [
        ({"backend": "plain", "device": "gpu"}, "start", 0, "gpu"),
        ({"backend": "plain", "workload": "cnn"}, "build", 0, "translation"),
    ],
)
def test_a_cell_that_cannot_run_here_is_a_failure_with_its_phase(wrong, phase, program, said):
    with MemberProcess() as member:
        member.done(prepare(cell(**wrong), cell("plain", "infer")))
        answer = member.ask(Build(program=0))
        assert isinstance(answer, Failed)
        assert answer.program == program
        assert isinstance(answer.failure, Failure)
        assert answer.failure.phase == phase
        assert said in str(answer.failure.reason.values)
        # The other program of the process is none the worse.
        assert member.done(Build(program=1)).first_step_ns > 0


def test_a_fit_runs_its_epochs_and_scores_every_test_sample(tmp_path):
    (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
    asked = prepare(cell(workload="dblstm", task="fit", batch=2, feed="host"), data="uci_har", epochs=3)
    with MemberProcess(KIT_DATA=str(tmp_path)) as member:
        member.done(asked)
        member.done(Build(program=0))
        member.done(WarmUp(program=0))
        blocks = [member.done(RunBlock(program=0, seconds=0.5))]
        while blocks[-1].left:
            blocks.append(member.done(RunBlock(program=0, seconds=0.5)))
        fit = member.done(Conclude(program=0)).fit
    # The first step is the first update.
    assert sum(len(block.step_ns) for block in blocks) == 3 * (ROWS["train"] // 2) - 1
    assert (fit.epochs, fit.updates) == (3, 9)
    assert len(fit.reference_ns) == len(blocks) + 1
    assert all(block.lead_in == 0 for block in blocks)
    counts = np.array(fit.confusion)
    # Of each class one in the test split; what fills up the second batch is not counted.
    assert counts.sum(axis=1).tolist() == [1, 1, 1, 0, 0, 0]


def test_a_part_of_a_fit_ends_after_its_steps_and_has_no_score(tmp_path):
    (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
    fitted = cell(workload="dblstm", task="fit", batch=2, feed="host")
    with MemberProcess(KIT_DATA=str(tmp_path)) as member:
        member.done(prepare(fitted, data="uci_har", epochs=2, fit_steps=4))
        member.done(Build(program=0))
        member.done(WarmUp(program=0))
        blocks = [member.done(RunBlock(program=0, seconds=0.1))]
        while blocks[-1].left:
            blocks.append(member.done(RunBlock(program=0, seconds=0.1)))
        fit = member.done(Conclude(program=0)).fit
    # Of the second epoch's three updates one is made.
    assert sum(block.steps for block in blocks) == 3
    assert (fit.updates, fit.epoch_updates, fit.all_updates, fit.is_part) == (4, 3, 6, True)
    assert len(fit.reference_ns) == len(blocks) + 1
    assert fit.confusion is None and fit.reason.code == "part_of_a_fit"
    assert fit.test_ns > 0


def test_a_fit_whose_only_update_would_be_the_first_step_is_refused():
    with MemberProcess() as member:
        member.done(prepare(cell(task="fit", batch=40_000, feed="host")))
        answer = member.ask(Build(program=0))
        assert isinstance(answer, Failed)
        assert "one update" in answer.failure.reason.values["message"]


def test_a_score_that_fails_leaves_the_times_of_the_fit(tmp_path):
    (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
    with MemberProcess(KIT_DATA=str(tmp_path)) as member:
        member.done(prepare(cell(workload="dblstm", task="fit", batch=2, feed="host"), data="uci_har", epochs=2))
        member.done(Build(program=0))
        member.done(WarmUp(program=0))
        while member.done(RunBlock(program=0, seconds=0.5)).left:
            pass
        for file in tmp_path.iterdir():
            file.unlink()
        fit = member.done(Conclude(program=0)).fit
    assert fit.updates == 6 and len(fit.reference_ns) >= 2
    assert fit.confusion is None and fit.test_ns is None
    assert fit.reason.code == "exception"
