"""A user's own program as a backend runs it: what it may return, how it is waited for, and what is refused."""

import re
import subprocess
import sys
import textwrap
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from kit.backends.entry import BackendError
from kit.backends.program.backend import UserProgram, floats, line_in
from kit.profile.cell import OWN, Cell
from kit.profile.program_source import ProgramSource, file_sha256

DOCUMENT = Path(__file__).parents[2] / "docs/how-to/own-model.md"
LONG_NS = np.array([50_000, 60_000])


@pytest.fixture
def made(tmp_path):
    """From the body of a function, the program that is made of it."""

    def make(body, device="cpu", takes_task=False):
        path = tmp_path / "model.py"
        parameters = "batch, device, task" if takes_task else "batch, device"
        path.write_text(f"import numpy as np\ndef program({parameters}):\n{textwrap.indent(body, '    ')}\n")
        return UserProgram(source_of(path, takes_task=takes_task), cell_of("model", device=device, task="infer"))

    return make


def source_of(path, function="program", takes_task=False):
    return ProgramSource(path=str(path), function=function, takes_task=takes_task, sha256=file_sha256(path))


def cell_of(name, device="cpu", task="train"):
    return Cell(
        workload=name, backend="program", device=device, task=task, batch=4, precision=OWN, compile_mode=OWN, feed=OWN
    )


def run(program, steps=1):
    output = None
    for batch in islice(program.batches, steps):
        output = program.step(batch)
        program.synchronize()
    return output


def test_the_function_is_told_batch_device_and_task(made):
    program = made("return lambda: np.array([batch, len(device), len(task)])", device="gpu", takes_task=True)
    assert run(program, 3).tolist() == [4, len("gpu"), len("infer")]


def test_a_users_own_synchronize_is_called_after_each_step(made):
    program = made(
        'done = []\nreturn {"step": lambda: float(len(done)) or None, "synchronize": lambda: done.append(1)}\n'
    )
    # A step that returns nothing is waited for all the same.
    assert run(program) is None
    assert [run(program), run(program, 3)] == [1, 4]
    assert program.to_host(None).size == 0


@pytest.mark.parametrize("batches", ["[1.0, 2.0, 3.0]", "range(1, 4)"])
def test_batches_are_gone_through_again(made, batches):
    program = made(f'return {{"step": lambda batch: np.float32(10 * batch), "batches": {batches}}}')
    assert [float(program.step(batch)) for batch in islice(program.batches, 5)] == [10, 20, 30, 10, 20]


def test_a_last_batch_that_is_smaller_is_refused(made):
    # In an iterable that is no list, it is seen when they begin again.
    program = made(
        "class Pairs:\n    def __iter__(self):\n        return ((np.ones((n, 3)), np.ones(n)) for n in (4, 4, 1))\n"
        'return {"step": lambda b: b[0].sum(), "batches": Pairs()}'
    )
    run(program, 3)
    with pytest.raises(BackendError, match=r"is \(4, 3\) and \(4,\) and another \(1, 3\) and \(1,\).*drop_last=True"):
        run(program)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("return None", "returned None for step; return a callable"),
        ("return {}", "returned no step"),
        ('return {"step": 3}', "returned int for step"),
        ('return {"step": print, "sync": print}', "an unknown part 'sync'; choose from step, synchronize, batches"),
        ('return {"step": print, "synchronize": 1}', "returned int for synchronize; return a callable"),
        ('return {"step": print, "batches": 1}', "returned int for batches; return an iterable"),
        ('return {"step": print, "batches": []}', "batches are empty"),
        ('return {"step": abs, "batches": (np.float32(x) for x in (1, 2))}', "only once"),
        ("return lambda: None", "returned None, which Steadykit cannot wait for"),
        ("return lambda: []", "returned list, which Steadykit cannot wait for"),
        ('return lambda: {"loss": object()}', "returned object, which Steadykit cannot wait for"),
    ],
)
def test_what_is_no_program_is_one_line(made, body, line):
    with pytest.raises(BackendError, match=line):
        run(made(body), 3)


def test_a_class_or_another_file_than_the_run_began_with_is_refused(made, tmp_path):
    made("return lambda: 1.0")
    path = tmp_path / "model.py"
    path.write_text("class Net:\n    def __init__(self, width=32): ...\n")
    source = source_of(path, "Net")
    with pytest.raises(BackendError, match=r"Net is a class, .*write def Net\(batch, device\), which returns a step"):
        UserProgram(source, cell_of("Net"))
    path.write_text("def program(batch, device): return lambda: 2.0")
    with pytest.raises(BackendError, match="differs from"):
        UserProgram(source, cell_of("Net"))


MODELS = """
import torch
class Bare(torch.nn.Linear): ...
class Model(torch.nn.Module):
    def forward(self, x):
        return x
class Keywords(torch.nn.Module):
    def __init__(self, **keywords):
        super().__init__()
net = torch.nn.Linear(4, 4)
class Program:
    def __init__(self, batch, device):
        self.x = torch.ones(batch)
    def __call__(self):
        return self.x
"""


@pytest.mark.frameworks
def test_a_model_is_not_taken_for_a_program(tmp_path):
    pytest.importorskip("torch")
    path = tmp_path / "models.py"
    path.write_text(MODELS)
    for name in ("Bare", "Model", "Keywords", "net"):
        kind = "a model (Linear)" if name == "net" else "a class"
        with pytest.raises(BackendError) as refused:
            UserProgram(source_of(path, name), cell_of(name))
        assert str(refused.value).startswith(f"{name} is {kind}, and a program is a function; write def {name}(")
    # A class may be a program, whose objects are its steps.
    assert run(UserProgram(source_of(path, "Program"), cell_of("Program"))).tolist() == [1.0] * 4


def test_shapes_that_change_are_seen_between_blocks(made):
    program = made(
        "sizes = iter([4, 4, 3])\nreturn lambda: {'logits': np.ones((next(sizes), 2)), 'loss': np.float32(1)}"
    )
    for _ in range(2):
        program.check(run(program), LONG_NS)
    with pytest.raises(BackendError, match=r"returned \(4, 2\) and \(\) and a later one \(3, 2\) and \(\)"):
        program.check(run(program), LONG_NS)


def test_a_step_that_takes_no_time_is_refused(made):
    with pytest.raises(BackendError, match="a step takes 90 ns"):
        made("return lambda: 0.0").check(np.float32(0), np.array([90, 90, 5000]))


def test_numbers_that_are_not_finite_come_to_the_host(made):
    program = made("return lambda: (np.array([1.0, np.nan]), 3, float('inf'), np.arange(3))")
    np.testing.assert_array_equal(program.to_host(run(program)), [1, np.nan, np.inf])


def test_the_line_of_an_exception_is_the_programs_own(made, tmp_path):
    program = made("def step():\n    return np.ones(3) @ np.ones(4)\nreturn step")
    with pytest.raises(ValueError, match="matmul") as error:
        run(program)
    source = source_of(tmp_path / "model.py")
    assert line_in(source, error.value) == (source.path, 4)
    assert line_in(source, ValueError("elsewhere")) is None
    # What it imports from beside it is the user's, too.
    (tmp_path / "helper.py").write_text("import numpy as np\ndef wrong():\n    return np.ones(3) @ np.ones(4)\n")
    program = made(f"import sys\nsys.path.append({str(tmp_path)!r})\nimport helper\nreturn helper.wrong")
    with pytest.raises(ValueError, match="matmul") as error:
        run(program)
    assert line_in(source, error.value) == (str(tmp_path / "helper.py"), 3)


WAITED = """
import itertools, sys
import jax, jax.numpy as jnp, numpy as np, torch
from kit.backends.entry import BackendError
from kit.backends.program.backend import BACKEND, UserProgram
from kit.profile.cell import Cell
from kit.profile.program_source import ProgramSource, file_sha256

def made(path, function="program", device="cpu"):
    source = ProgramSource(path=path, function=function, takes_task="tasks" in path, sha256=file_sha256(path))
    return UserProgram(source, Cell(workload="m", backend="program", device=device, task="train", batch=4,
                                   precision="own", compile_mode="own", feed="own"))

program = made(sys.argv[1], "in_jax")
for _ in range(3):
    output = program.step(None)
    assert not output["deep"][0].is_ready(), "the step is too short to show whether it is waited for"
    program.synchronize()
    assert output["deep"][0].is_ready()
np.testing.assert_allclose(program.to_host(output), [1.0] * 4)

for path in sys.argv[2:]:
    documented = made(path)
    for batch in itertools.islice(documented.batches, 10):
        output = documented.step(batch)
        documented.synchronize()
        documented.check(output, np.array([10_000]))
    assert np.isfinite(documented.to_host(output)).all() and documented.to_host(output).size

program = made(sys.argv[1], "in_torch")
output = program.step(None)
program.synchronize()
np.testing.assert_allclose(program.to_host(output), [1.5, 1.5])

for name in ("in_jax", "in_torch"):
    program = made(sys.argv[1], name, "gpu")
    output = program.step(None)
    program.synchronize()
    try:
        program.check(output, np.array([10_000]))
    except BackendError as error:
        assert "result is on cpu, but gpu is measured" in str(error)
    else:
        raise AssertionError(name)
assert BACKEND.set_threads(1).reported == torch.get_num_threads() == 1
print(BACKEND.version)
"""
IN_FRAMEWORKS = """
import jax, jax.numpy as jnp, torch

@jax.jit
def long(x):
    return jax.lax.fori_loop(0, 200, lambda _, x: jnp.tanh(x @ x), x)[0, :4] * 0 + 1

def in_jax(batch, device):
    x = jnp.ones((512, 512))
    long(x).block_until_ready()
    return lambda: {"deep": [long(x)]}

def in_torch(batch, device):
    return lambda: torch.full((2,), 1.5, dtype=torch.bfloat16, requires_grad=True)
"""


@pytest.mark.slow
@pytest.mark.frameworks
def test_what_is_documented_runs_jax_is_waited_for_and_torch_has_its_threads(tmp_path):
    pytest.importorskip("torch"), pytest.importorskip("jax")
    path = tmp_path / "model.py"
    path.write_text(IN_FRAMEWORKS)
    documented = re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert len(documented) == 3
    for name, text in documented:
        (tmp_path / name).write_text(text)
    paths = [str(path), *(str(tmp_path / name) for name, _ in documented)]
    done = subprocess.run(
        [sys.executable, "-c", WAITED, *paths], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"torch \S+, jax \S+", done.stdout.strip())


CONTAINERS = {
    "a subclass of dict": "class Output(OrderedDict):\n    pass\nreturn lambda: Output(logits=x * 2)",
    "a subclass of list": "class Output(list):\n    pass\nreturn lambda: Output([x * 2])",
    "a tuple in a dict": "return lambda: {'out': (x * 2, None)}",
    "a dict of a module": "import tensorflow as tf\nmodule = tf.Module()\nmodule.last = {}\n"
    "def step():\n    module.last['y'] = tf.ones(3) * 2\n    return module.last\nreturn step",
    "a tree that JAX knows": "import jax\n@jax.tree_util.register_pytree_node_class\nclass Output:\n"
    "    def __init__(self, *leaves):\n        self.leaves = leaves\n"
    "    def tree_flatten(self):\n        return self.leaves, None\n"
    "    @classmethod\n    def tree_unflatten(cls, _, leaves):\n        return cls(*leaves)\n"
    "return lambda: Output(x * 2)",
}


@pytest.mark.frameworks
@pytest.mark.parametrize("beside", ["", "import jax\n", "import tensorflow\n"])
@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_is_one_whatever_is_imported_beside_it(made, name, beside):
    for framework in ("torch", "jax", "tensorflow"):
        pytest.importorskip(framework)
    program = made(f"{beside}from collections import OrderedDict\nimport torch\nx = torch.ones(3)\n{CONTAINERS[name]}")
    assert floats(run(program))[0].tolist() == [2.0, 2.0, 2.0]


def test_a_program_puts_back_itself_what_its_steps_change(made):
    program = made(
        "w = np.ones(4, np.float32)\n"
        "def step():\n    w[:] *= 0.5\n    return w.sum()\n"
        'return {"step": step, "reset": lambda: w.fill(1)}'
    )
    before = run(program, 3)
    assert program.restore()
    assert run(program, 3) == before
    assert not made("return lambda: np.ones(batch)").restore()
    with pytest.raises(BackendError, match="returned int for reset; return a callable"):
        made('return {"step": lambda: np.ones(2), "reset": 3}')


def held_in(program):
    return sorted(array.size for array in program.state(1 << 20))


@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        ("w, n = np.ones(3), np.arange(5)\nreturn lambda: w * n.sum()", [3]),
        ("w = {'a': [np.ones(3)], 'b': (np.ones(2), np.ones(7, 'f2'))}\nreturn lambda: w['a'][0]", [2, 3, 7]),
        ("w = np.ones(3)\ndef inner(): return w\ndef step(): return inner()\nreturn step", [3]),
        ("import functools\nreturn functools.partial(np.add, np.ones(3), np.ones(4))", [3, 4]),
        ("class A:\n    def __init__(self): self.w = np.ones(6)\n    def do(self): return self.w\nreturn A().do", [6]),
        ("return lambda: np.ones(2)", []),
        ("w = np.ones(1 << 21)\nreturn lambda: w", []),
        ("w = []\nw.append(w)\nreturn lambda: np.ones(len(w))", []),
    ],
)  # fmt: skip
def test_what_a_step_holds_is_looked_for_where_it_refers_to(made, body, sizes):
    assert held_in(made(body)) == sizes


HELD_BY = {
    # A module, its optimizer's state, and through torch.compile's wrapper.
    "torch": (
        """import torch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(1, 3)).sum().backward()
optimizer.step()
def step():
    optimizer.zero_grad()
    return model(torch.ones(1, 3)).sum()
return torch.compile(step)""",
        [1, 1, 2, 2, 2, 6, 6, 6],
    ),
    "jax": (
        """import jax, optax
from flax import nnx
model = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
weights = {"more": jax.numpy.ones(7)}
@jax.jit
def update(w): return w
def step(): return update(weights["more"]).sum() + model.bias[0]
return step""",
        [2, 6, 7],
    ),
    "tensorflow": (
        """import tensorflow as tf, keras
model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)])
other = tf.Variable(tf.ones(9))
@tf.function
def step(): return tf.reduce_sum(model(tf.ones((1, 3)))) + other[0]
return step""",
        [2, 6, 9],
    ),
}


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.parametrize("name", HELD_BY)
def test_weights_of_a_framework_are_found(tmp_path, name):
    body, sizes = HELD_BY[name]
    (tmp_path / "model.py").write_text(f"def program(batch, device):\n{textwrap.indent(body, '    ')}\n")
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_own_program import UserProgram, cell_of, held_in, source_of
print("held", held_in(UserProgram(source_of({str(tmp_path / "model.py")!r}), cell_of("model"))))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"held {sizes}" in ran.stdout, ran.stderr[-2000:] + ran.stdout
