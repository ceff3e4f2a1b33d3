"""What steps compute with: training begins each block alike, and its numbers are looked at afterwards."""

import math

import numpy as np
import pytest
from real_worker import GROUP, block_of, cell, fitted, launch_of, spec_of, worker_of
from uci_har_archive import packed, tables

from kit.profile.cell import OWN
from kit.profile.program_source import ProgramSource, file_sha256
from kit.worker.messages import Done, Measure, Measured
from kit.worker.numbers import Count, counted

TINY = {"float32": 1e-40, "float16": 1e-7, "float64": 1e-310}


@pytest.mark.parametrize("dtype", TINY)
def test_denormal_numbers_are_counted_by_their_bits(dtype):
    least = np.finfo(dtype).smallest_normal
    values = [0.0, -0.0, 1.0, -least, least, TINY[dtype], -TINY[dtype], np.finfo(dtype).smallest_subnormal]
    array = np.array([*values, math.inf, math.nan], dtype)
    assert counted([array, np.arange(5), array[::2]]) == Count(numbers=15, denormal=4, nans=1)


def test_bfloat16_and_nothing():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    assert counted([np.array([1e-40, 1.0, 0.0, -math.inf], bfloat16)]) == Count(4, 1, 0)
    assert counted([]) == Count(0, 0, 0)


def measured(*cells, cycles=2, block_s=0.02, **more):
    """The launches of one worker, each with so many blocks."""
    with worker_of(spec_of(*cells, **more), warmup_s=0.1, warmup_steps=150) as worker:
        for of in cells:
            worker.build(of.key, GROUP)
            worker.warm_up(of.key, GROUP)
            for cycle in range(cycles):
                worker.add(of.key, GROUP, *block_of(worker, of.key, cycle, block_s))
            worker.conclude(of.key)
        return [launch_of(worker, of) for of in cells]


@pytest.mark.frameworks
def test_each_block_of_training_begins_at_the_initial_weights():
    train, infer = measured(cell(task="train"), cell(task="infer"))
    numbers = train.numbers
    assert (numbers.blocks_begin, infer.numbers.blocks_begin) == ("restored", "left")
    # Some steps after the initial weights the loss is still of the order of a guess; after a warm-up it is far below.
    guess = math.log(10)
    assert numbers.first_step_loss == pytest.approx(guess, rel=0.2)
    assert min(numbers.first_block_loss, numbers.last_block_loss) > 0.02 * guess
    assert infer.numbers.first_block_loss is None and infer.numbers.loss_reason.code == "step_returns_no_loss"
    # RMSprop has a number for each weight.
    assert numbers.state_numbers == pytest.approx(2 * infer.numbers.state_numbers, rel=1e-3)
    assert (numbers.denormal_share, infer.numbers.denormal_share, numbers.was_not_finite) == (0.0, 0.0, False)


@pytest.mark.frameworks
def test_a_block_has_the_first_and_the_last_third_of_its_steps():
    (launch,) = measured(cell(task="infer"))
    blocks = launch.blocks
    assert len(blocks.early_ns) == len(blocks.late_ns) == 2
    assert all(0 < time_ns < span_ns for time_ns, span_ns in zip(blocks.early_ns, blocks.span_ns, strict=True))


@pytest.mark.frameworks
def test_a_fit_goes_on_from_block_to_block(tmp_path):
    (tmp_path / "uci_har.zip").write_bytes(packed(tables()))
    fit = cell(workload="dblstm", task="fit", batch=2, feed="host")
    with worker_of(spec_of(fit, data="uci_har", env={"KIT_DATA": str(tmp_path)}), epochs=2) as worker:
        fitted(worker, fit)
        worker.conclude(fit.key)
        numbers = launch_of(worker, fit).numbers
    assert numbers.blocks_begin == "left"
    assert numbers.last_block_loss > 0 and numbers.loss_reason is None


class Answering:
    """Ranks that answer at once, and remember what steps they were asked for; each step takes 10 ms."""

    def __init__(self, *_):
        self.measured, self._now_ns = [], 1

    def ask(self, request, _limit_s):
        if not isinstance(request, Measure):
            return Done()
        self.measured.append(request)
        waits = [10_000_000 * segment.per_wait for segment in request.segments for _ in range(segment.waits)]
        begin_ns, self._now_ns = self._now_ns, self._now_ns + sum(waits)
        ran = [segment.waits for segment in request.segments]
        return Measured(
            begin_ns=begin_ns, span_ns=sum(waits), waits=np.array(waits, np.int64).tobytes(), ran=ran, counters=[]
        )

    def stop(self):
        pass

    def end(self):
        pass


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_block_is_begun_once_in_however_many_pieces_ranks_run_it(ranks):
    asked = Answering()
    of = cell(devices=ranks)
    with worker_of(spec_of(of, ranks=ranks), lambda *_: asked) as worker:
        worker.build(of.key, GROUP)
        worker.warm_up(of.key, GROUP)
        assert not any(request.begins_block for request in asked.measured)
        for parts, run in (
            (1, lambda: block_of(worker, of.key, 0, 0.4)),
            # A long block has three parts of about a second; nothing here takes long to put back.
            (3, lambda: worker.long_block(of.key, GROUP, 2.5)),
        ):
            asked.measured.clear()
            run()
            begins = [request.begins_block for request in asked.measured]
            assert sum(begins) == parts and begins[0]
            assert (len(begins) > 4) == (ranks > 1)


PROGRAMS = """
import numpy as np

def decaying(batch, device):
    w = np.ones(100, np.float32)
    def step():
        np.multiply(w, np.float32(0.5), out=w, where=w > 1e-42)
        return float(w[0])
    return step

def put_back(batch, device):
    w = np.ones(100, np.float32)
    def step():
        np.multiply(w, np.float32(0.999999), out=w)
        return float(w[0])
    return {"step": step, "reset": lambda: w.fill(1)}

def diverging(batch, device):
    w = np.ones(100, np.float32)
    def step():
        with np.errstate(all="ignore"):
            np.multiply(w, np.float32(1e30), out=w)
            w[0] = w[1] - w[1]
        return np.ones(4)
    return step

def unknown(batch, device):
    return lambda: sum(range(1000)) * 1.0

def unreadable(batch, device):
    import torch
    lengths = [torch.ones(2), torch.ones(3)]
    held = [torch.ones(3, device="meta"), torch.nested.nested_tensor(lengths), torch.nn.LazyLinear(2), np.ones(100)]
    return lambda: torch.nested.nested_tensor([held[-1][:1].sum() * part for part in lengths])
"""


@pytest.fixture
def program_of(tmp_path):
    """The launch of a function of PROGRAMS."""
    path = tmp_path / "programs.py"
    path.write_text(PROGRAMS)

    def run(function):
        source = ProgramSource(path=str(path), function=function, takes_task=False, sha256=file_sha256(path))
        program = cell("program", workload=function, precision=OWN, compile_mode=OWN, feed=OWN)
        with worker_of(spec_of(program)._replace(sources={function: source}), warmup_s=0.0, warmup_steps=1) as worker:
            worker.build(program.key, GROUP)
            worker.warm_up(program.key, GROUP)
            for cycle in range(2):
                ran = block_of(worker, program.key, cycle, 0.02)
                assert ran is not None, launch_of(worker, program).failure
                worker.add(program.key, GROUP, *ran)
            worker.conclude(program.key)
            return launch_of(worker, program).numbers

    return run


def test_a_program_that_runs_into_denormal_numbers_is_seen(program_of):
    numbers = program_of("decaying")
    assert numbers.blocks_begin == "left"
    assert (numbers.state_numbers, numbers.denormal_share) == (100, 1.0)
    assert numbers.first_step_loss == 0.5 and 0 < numbers.last_block_loss < 1e-37


def test_a_program_that_resets_itself_begins_each_block_alike(program_of):
    numbers = program_of("put_back")
    assert numbers.blocks_begin == "reset" and numbers.denormal_share == 0.0
    assert numbers.last_block_loss > 0.3


def test_a_weight_that_is_not_finite_is_seen_although_the_output_is(program_of):
    numbers = program_of("diverging")
    assert numbers.was_not_finite and numbers.first_block_loss is None


def test_what_is_not_known_of_a_program_has_its_reason(program_of):
    numbers = program_of("unknown")
    assert numbers.denormal_share is None and numbers.denormal_reason.code == "state_not_found"
    assert numbers.first_block_loss == numbers.last_block_loss == 499500.0


@pytest.mark.frameworks
def test_what_has_no_numbers_or_no_shape_ends_no_program_that_holds_or_returns_it(program_of):
    numbers = program_of("unreadable")
    assert numbers.state_numbers == 105  # with the parts of the list
    assert numbers.loss_reason.code == "step_returns_no_loss"
