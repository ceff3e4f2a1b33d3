"""What a user's step may return: results in several parts are read, lazy ones refused, and shapes stay the same."""

import textwrap
from itertools import islice

import numpy as np
import pytest
from test_own_program import LONG_NS, cell_of, made, run, source_of  # noqa: F401 - `made` is a fixture

from kit.backends.entry import BackendError
from kit.backends.program.backend import UserProgram, floats
from kit.profile.fields import reason
from kit.report.reasons_in_words import sentence
from kit.worker.worker import not_finite

# By framework: what a step returns, and the numbers that are found in it.
IN_PARTS = {
    "torch": {
        "torch.eye(3).to_sparse()": [1, 1, 1],
        "torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,))": [3],
        "torch.eye(2).to_sparse_csr()": [1, 1],
        "torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])": [1, 1, 1],
        "torch.nested.nested_tensor([torch.ones(1), torch.ones(2)], layout=torch.jagged)": [1, 1, 1],
        "torch.masked.masked_tensor(torch.tensor([1.0, float('inf')]), torch.tensor([True, False]))": [1],
        "torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)": [1, 1],
        "torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])": [1, 1, 1],
    },
    "tensorflow": {
        "tensorflow.RaggedTensor.from_row_lengths([1.0, 2.0, 3.0], [1, 2])": [1, 2, 3],
        "tensorflow.sparse.from_dense([[0.0, 2.0]])": [2],
        "tensorflow.IndexedSlices(tensorflow.ones(2), tensorflow.constant([0, 5]), tensorflow.constant([9]))": [1, 1],
        "{'a': [tensorflow.ragged.constant([[1.0], []])]}": [1],
    },
    "jax": {"jax.experimental.sparse.BCOO.fromdense(jax.numpy.eye(2))": [1, 1]},
    "scipy": {"scipy.sparse.csr_array([[0.0, 4.0]])": [4], "scipy.sparse.lil_array([[0.0, 4.0]])": [4]},
    "numpy": {"np.ma.masked_invalid([1.0, np.nan])": [1], "np.array([1.0, 2.0])": [1, 2]},
}
IMPORTS = {"jax": "jax, jax.experimental.sparse", "scipy": "scipy.sparse"}
LAZY = {
    "(x for _ in range(3))": "generator, whose work has not run; run it in the step, as list(…) does",
    "map(np.sum, [x])": "map, whose work has not run; run it in the step, as list(…) does",
    "{'parts': zip([x], [x])}": "zip, whose work has not run; run it in the step",
    "later()": "coroutine, whose work has not run; run it in the step, as asyncio.run(…) does",
    "waiting": "Future, whose work has not run; return its result()",
    "lambda: x": "function, whose work has not run; call it in the step",
    "functools.partial(np.sum, x)": "partial, whose work has not run; call it in the step",
    "applied": "ApplyResult, whose work has not run; return its get()",
}
BEFORE = """
import functools, time
from concurrent.futures import Future
from multiprocessing.pool import ThreadPool
x, waiting = np.ones(9), Future()
with ThreadPool(1) as threads:
    applied = threads.apply_async(time.sleep, [0.1])
async def later():
    return x
"""


@pytest.mark.frameworks
@pytest.mark.parametrize("framework", IN_PARTS)
def test_results_in_several_parts_are_measured_and_read(made, framework):  # noqa: F811
    pytest.importorskip(framework)
    for result, numbers in IN_PARTS[framework].items():
        program = made(f"import {IMPORTS.get(framework, framework)}\nresult = {result}\nreturn lambda: result")
        for _ in range(2):
            program.check(run(program), LONG_NS)
        assert program.to_host(run(program)).tolist() == numbers, result
        assert program.why_unchecked() is None


@pytest.mark.frameworks
def test_a_result_that_cannot_be_read_is_measured_and_said_to_be_unchecked(made):  # noqa: F811
    pytest.importorskip("torch")
    body = "import torch\nclass Odd(torch.Tensor):\n    def detach(self):\n        raise RuntimeError('odd')\n"
    program = made(f"{body}result = torch.ones(3).as_subclass(Odd)\nreturn lambda: [result, torch.ones(2)]")
    program.check(run(program), LONG_NS)
    assert program.to_host(run(program)).tolist() == [1, 1]
    assert sentence(program.why_unchecked()) == "Steadykit cannot read the numbers of Odd"


@pytest.mark.parametrize("result", ["np.array([1, -np.inf, np.nan])", "{'a': (np.float32('inf'),)}"])
def test_results_that_are_not_finite_have_a_way_out_that_is_told(made, result):  # noqa: F811
    program = made(f"return lambda: {result}")
    refused = sentence(not_finite(program, run(program)))
    assert '{"step": step, "finite": False}' in refused
    program = made(f'return {{"step": lambda: {result}, "finite": False}}')
    assert not_finite(program, run(program)) is None
    assert program.why_unchecked() == reason("output_need_not_be_finite")
    with pytest.raises(BackendError, match="returned 0 for finite; return False"):
        made('return {"step": print, "finite": 0}')


@pytest.mark.parametrize("synchronize", ["", ', "synchronize": lambda: None'])
@pytest.mark.parametrize("result", LAZY)
def test_work_that_has_not_run_is_refused_with_how_to_run_it(made, result, synchronize):  # noqa: F811
    program = made(f'{BEFORE}return {{"step": lambda: {result}{synchronize}}}')
    with pytest.raises(BackendError) as refused:
        program.check(run(program), LONG_NS)
    assert LAZY[result] in str(refused.value)
    assert '"synchronize"' not in str(refused.value)


def test_a_step_that_is_a_generator_or_a_coroutine_is_refused(made):  # noqa: F811
    for step, remedy in (
        ("def step():\n    yield 1.0", "as list"),
        ("async def step():\n    return 1.0", "asyncio.run"),
    ):
        with pytest.raises(BackendError, match=remedy):
            run(made(f"{step}\nreturn step"))


def test_a_future_that_the_programs_own_synchronize_waits_for_is_measured(made):  # noqa: F811
    program = made(
        "from concurrent.futures import ThreadPoolExecutor\nimport time\npool, held = ThreadPoolExecutor(1), []\n"
        "def step():\n    held[:] = [pool.submit(time.sleep, 0.01)]\n    return held[0]\n"
        "return {'step': step, 'synchronize': lambda: held[0].result()}"
    )
    program.check(run(program), LONG_NS)


class Stream:
    """Batches that are no list: only going through them shows what they are."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        return (np.ones(size, np.float32) for size in self.sizes)


@pytest.mark.parametrize(
    ("sizes", "remedy"),
    [
        ([(4, 3), (4, 3), (1, 3)], "drop a smaller last batch, as DataLoader"),
        ([(8, 16), (8, 128), (8, 16)], "pad what varies to one shape, or measure each shape as a program of its own"),
        ([(8, 16), (8, 128)], "pad what varies"),
        ([(1, 3), (4, 3), (1, 3)], "pad what varies"),
    ],
)
def test_batches_of_several_shapes_are_refused_before_anything_is_measured(tmp_path, sizes, remedy):
    path = tmp_path / "model.py"
    for kind in ("list", "Stream"):
        body = f'return {{"step": lambda x: float(x.sum()), "batches": {kind}(arrays)}}'
        text = f"""
        import numpy as np
        from test_program_results import Stream
        sizes = {sizes!r}
        def program(batch, device):
            arrays = [np.ones(size, np.float32) for size in sizes] if {kind == "list"} else sizes
            {body}
        """
        path.write_text(textwrap.dedent(text))
        program = UserProgram(source_of(path), cell_of("model"))
        with pytest.raises(BackendError, match=remedy):
            # A worker takes these for the first step and for the warm-up.
            for batch in islice(program.checked_batches(), len(sizes)):
                program.step(batch)


def test_results_of_several_shapes_are_told_from_a_smaller_last_one(made):  # noqa: F811
    program = made("sizes = iter([(8, 16), (8, 128)])\nreturn lambda: np.ones(next(sizes))")
    program.check(run(program), LONG_NS)
    with pytest.raises(BackendError, match=r"\(8, 16\) and a later one \(8, 128\).*pad what varies"):
        program.check(run(program), LONG_NS)


def test_numbers_of_any_kind_are_read():
    numbers, unread = floats({"a": [1.5, np.float64(2.5)], "b": (3, None, "text")})
    assert (numbers.tolist(), unread) == ([1.5, 2.5], set())
