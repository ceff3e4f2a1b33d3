"""A real member over its pipes: PyTorch's mlp, trained and used in one process."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from member_process import MemberProcess, cell, prepare
from uci_har_archive import ROWS, packed, tables

from kit.profile.launch import INJECTED_NS, Blocks
from kit.worker.messages import Do, Failed, Finish
from kit.workloads.parity import PARITY_STEPS


@pytest.fixture(scope="module")
def answers():
    """Everything that a proving member says."""
    with MemberProcess() as member:
        asked = prepare(cell(task="train"), cell(task="infer"), prove=True, slowdown_pct=50.0)
        prepared = member.done(asked)
        built = [member.do("build", place) for place in (0, 1)]
        warm = [member.do("warm_up", place) for place in (0, 1)]
        blocks = [[member.do("block", place, seconds=0.05, cycle=at) for at in range(3)] for place in (0, 1)]
        long = member.do("block", 0, seconds=0.2, by_time=True)
        concluded = [member.do("conclude", place) for place in (0, 1)]
        finished = member.done(Finish())
        left, _ = member.process.communicate(timeout=100)
        record = {"prepared": prepared, "built": built, "warm": warm, "blocks": blocks, "long": long}
        record |= {"concluded": concluded, "finished": finished, "entered": member.entered, "left": left}
        return SimpleNamespace(**record, code=member.process.returncode)


pytestmark = pytest.mark.frameworks


def test_it_says_each_phase_before_it_begins(answers):
    assert answers.entered == [
        ("import", None),
        *((phase, place) for place in (0, 1) for phase in ("data", "build", "trace", "compile", "first_step")),
        *((phase, place) for phase in ("warmup", "parity") for place in (0, 1)),
        ("finish", None),
    ]
    assert (answers.code, answers.left) == (0, b"")


def test_phases_do_not_overlap(answers):
    phases = [*answers.prepared.part.phases, *(phase for built in answers.built for phase in built.part.phases)]
    # Eager PyTorch cannot tell tracing and compiling apart from the first step.
    assert [phase.name for phase in phases] == ["start", "import", *["data", "build", "first_step"] * 2]
    phases += [phase for warm in answers.warm for phase in warm.part.phases]
    assert all(phase.begin_ns + phase.duration_ns <= later.begin_ns for phase, later in pairwise(phases))


def test_what_it_runs_on_is_recorded(answers):
    threads, finished = answers.prepared.part.threads, answers.finished.part
    assert threads.requested == threads.reported == 1
    assert [(built.part.data.name, len(built.part.data.sha256)) for built in answers.built] == [("synthetic", 64)] * 2
    train, infer = answers.built
    assert train.part.data.sha256 != infer.part.data.sha256
    assert finished.certificate.source == "monotonic_raw"
    assert finished.peak_memory_b >= train.resident_b > 50 << 20


def test_a_block_has_its_lead_in_its_steps_and_its_counters(answers):
    for program in answers.blocks:
        together = Blocks()
        for done in program:
            blocks = done.part.blocks
            (lead_in,), (steps,), (span_ns,) = blocks.lead_in, blocks.steps, blocks.span_ns
            assert lead_in >= 1 and steps >= 2
            assert len(done.step_ns) == lead_in + steps
            assert blocks.duration_ns == [sum(done.step_ns[lead_in:])]
            assert sum(done.step_ns) <= span_ns
            # What was injected is in the steps, and in a counter of its own.
            assert 0 < blocks.counters[INJECTED_NS][0] < sum(done.step_ns)
            assert blocks.counters["process.cpu_ns"][0] > 0
            together.extend(blocks)
        assert together.cycle == [0, 1, 2]
        ends = [begin + span for begin, span in zip(together.begin_ns, together.span_ns, strict=True)]
        assert all(end <= begin for end, begin in zip(ends[:-1], together.begin_ns[1:], strict=True))


def test_a_block_by_time_is_no_shorter_and_has_no_lead_in(answers):
    assert answers.long.part.blocks.lead_in == [0]
    assert answers.long.part.blocks.span_ns[0] >= answers.long.part.blocks.duration_ns[0] >= 200_000_000
    # However many: they have no times of their own.
    assert answers.long.part.blocks.steps[0] > 0 and answers.long.step_ns.size == 0


def test_a_proving_member_records_parity(answers):
    train, infer = (done.part for done in answers.concluded)
    for part in (train, infer):
        assert part.failure is None
        assert len(part.parity.losses) == PARITY_STEPS and np.isfinite(part.parity.losses).all()
        assert part.recompiles.count in (0, None)
        assert part.kernels
    assert train.parity.losses[-1] < train.parity.losses[0]


def test_a_member_that_need_not_prove_does_not():
    with MemberProcess() as member:
        member.done(prepare(cell("plain"), prove=False))
        member.do("build")
        part = member.do("conclude").part
    assert (part.parity, part.fit, part.kernels) == (None, None, [])
    assert not {"evaluate", "parity"} & {phase for phase, _ in member.entered}


def test_what_a_framework_prints_is_no_answer(tmp_path):
    faults = '[{"cell": "", "at": "import", "do": "chatter"}, {"cell": "", "at": "block", "do": "chatter"}]'
    with MemberProcess(FAULTS=faults, FAULTS_FOLDER=str(tmp_path)) as member:
        member.done(prepare(cell("plain", "infer")))
        member.do("build")
        member.do("warm_up")
        assert member.do("block", 0, seconds=0.02).step_ns.size
        member.done(Finish())
        _, stderr = member.process.communicate(timeout=100)
    assert stderr.count(b"noise of a child") == 2


@pytest.mark.parametrize(
    ("wrong", "phase", "says"),
    [
        ({"backend": "plain", "device": "gpu"}, "start", "gpu"),
        ({"backend": "plain", "devices": 2}, "start", "sees 1 cpu, and --devices needs 2"),
        ({"backend": "plain", "workload": "cnn"}, "build", "translation"),
    ],
)
def test_a_cell_that_cannot_run_here_is_a_failure_with_its_phase(wrong, phase, says):
    with MemberProcess() as member:
        member.done(prepare(cell(**wrong), cell("plain", "infer")))
        answer = member.ask(Do(verb="build", program=0))
        assert isinstance(answer, Failed)
        assert (answer.program, answer.failure.phase) == (0, phase)
        assert says in str(answer.failure.reason.values)
        # The other program of the process is none the worse.
        assert member.do("build", 1).step_ns[0] > 0


@pytest.fixture
def fitted(tmp_path):
    """Run a fit of six windows in batches of two: its blocks, and its record. `lost`: the data go before its score."""

    def run(lost=False, **more):
        (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
        fit = cell(workload="dblstm", task="fit", batch=2, feed="host")
        with MemberProcess(KIT_DATA=str(tmp_path)) as member:
            member.done(prepare(fit, data="uci_har", **more))
            member.do("build")
            member.do("warm_up")
            blocks = [member.do("block", seconds=0.1)]
            while blocks[-1].left:
                blocks.append(member.do("block", seconds=0.1))
            for file in tmp_path.iterdir() if lost else ():
                file.unlink()
            return blocks, member.do("conclude").part.fit

    return run


def test_a_fit_runs_its_epochs_and_scores_every_test_sample(fitted):
    blocks, fit = fitted(epochs=3)
    # The first step is the first update.
    assert sum(len(block.step_ns) for block in blocks) == 3 * (ROWS["train"] // 2) - 1
    assert (fit.epochs, fit.updates) == (3, 9)
    assert len(fit.reference_ns) == len(blocks) + 1
    assert all(block.part.blocks.lead_in == [0] for block in blocks)
    # Each class once in the test split; what fills up the second batch is not counted.
    assert np.array(fit.confusion).sum(axis=1).tolist() == [1, 1, 1, 0, 0, 0]


def test_a_part_of_a_fit_ends_after_its_steps_and_has_no_score(fitted):
    blocks, fit = fitted(epochs=2, fit_steps=4)
    # Of the second epoch's three updates one is made.
    assert sum(block.part.blocks.steps[0] for block in blocks) == 3
    assert (fit.updates, fit.epoch_updates, fit.all_updates, fit.is_part) == (4, 3, 6, True)
    assert fit.confusion is None and fit.reason.code == "part_of_a_fit"
    assert fit.test_ns > 0


def test_a_score_that_fails_leaves_the_times_of_the_fit(fitted):
    _, fit = fitted(lost=True, epochs=2)
    assert fit.updates == 6 and len(fit.reference_ns) >= 2
    assert (fit.confusion, fit.test_ns, fit.reason.code) == (None, None, "exception")


def test_a_fit_whose_only_update_would_be_the_first_step_is_refused():
    with MemberProcess() as member:
        member.done(prepare(cell(task="fit", batch=40_000, feed="host")))
        answer = member.ask(Do(verb="build", program=0))
    assert isinstance(answer, Failed)
    assert "one update" in answer.failure.reason.values["message"]
