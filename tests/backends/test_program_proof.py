"""What is seen of a user program: what it compiled, what its step runs, what was left out, and how it is waited for."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial

import msgspec
import pytest

from kit.compare.contradictions import left_out, switched_off
from kit.profile.cell import OWN, Cell
from kit.profile.schema import Compilations, LaunchPart, WhatRan

pytestmark = pytest.mark.frameworks

# Builds a program of each function that is named, makes three steps, and prints what is known of it.
MADE = """
import json, sys
import msgspec, numpy as np
from kit.backends.program.backend import UserProgram
from kit.profile.cell import OWN, Cell
from kit.profile.program_source import ProgramSource, file_sha256

path, *functions = sys.argv[1:]
answers = {}
for function in functions:
    source = ProgramSource(path=path, function=function, takes_task=False, sha256=file_sha256(path))
    cell = Cell(workload=function, backend="program", device="cpu", task="train", batch=64, precision=OWN,
                compile_mode=OWN, feed=OWN)
    program = UserProgram(source, cell)
    for step in range(3):
        program.begin()
        output = program.step(next(program.batches))
        program.synchronize()
        program.check(output, np.array([50_000]))
    answers[function] = [program.compilations(), program.what_ran(next(program.batches))]
print(msgspec.json.encode(answers).decode())
"""
JAX = """
import jax, jax.numpy as jnp

# XLA does not fold a product of arrays whose elements are all alike.
W = [jax.random.normal(jax.random.key(n), (512, 512)) / 23 for n in range(4)]
X = jax.random.normal(jax.random.key(9), (64, 512))

def forward(w, x):
    for layer in w:
        x = jax.nn.relu(x @ layer)
    return x

def argument(batch, device):
    f = jax.jit(forward)
    return lambda: f(W, X)

def constants(batch, device):
    return jax.jit(lambda: forward(W, X))

def constant_batches(batch, device):
    f = jax.jit(lambda n: forward(W, X) + n)
    return lambda: f(1.0)

def dead(batch, device):
    f = jax.jit(lambda w, x: (forward(w, x), x.sum())[1])
    return lambda: f(W, X)

def one_by_one(batch, device):
    return lambda: forward(W, X)

def dead_loop(batch, device):
    def f(x):
        jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ W[0]), None), x, None, length=20_000_000)
        return x.sum()
    compiled = jax.jit(f)
    return lambda: compiled(X)

def live_loop(batch, device):
    def f(x):
        return jax.lax.scan(lambda carry, _: (jnp.tanh(carry @ W[0][:64, :64]), None), x, None, length=1_000)[0]
    compiled, x = jax.jit(f), X[:8, :64]
    return lambda: compiled(x)

def growing(batch, device):
    f, sizes = jax.jit(lambda x: x + 1), iter(range(1, 100))
    return lambda: f(jnp.ones(next(sizes))).sum()

def library(batch, device):
    return lambda: jnp.linalg.qr(jnp.ones((8, 8)))[0]
"""
TORCH = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512))

def needed(x):
    return model(x)

def dead_code(x):
    return (model(x), x + 1)[1]

def made(function, batch):
    x, compiled = torch.ones(batch, 512), torch.compile(function, dynamic=False)
    return lambda: compiled(x)

def eager(batch, device):
    x = torch.ones(batch, 512)
    return lambda: dead_code(x)

def compiled(batch, device):
    return made(needed, batch)

def dead(batch, device):
    return made(dead_code, batch)

def attention(batch, device):
    q = torch.ones(1, 4, 64, 64)
    f = torch.compile(torch.nn.functional.scaled_dot_product_attention)
    return lambda: f(q, q, q)

def dots(batch, device):
    x, y, f = torch.ones(1024, 1, 2048), torch.ones(1024, 2048, 1), torch.compile(torch.bmm)
    return lambda: f(x, y)
"""
FED_BY_TENSORFLOW = """
import tensorflow as tf
import jax, jax.numpy as jnp

def number(batch, device):
    f, inputs = jax.jit(lambda x: x.sum()), iter(tf.data.Dataset.from_tensors(tf.ones((8, 8))).repeat())
    return lambda: float(f(jnp.asarray(next(inputs).numpy())))

def growing(batch, device):
    f, sizes = jax.jit(lambda x: x.sum() + 1), iter(range(1, 100))
    return lambda: float(f(jnp.ones(next(sizes))))

def no_jax(batch, device):
    f, x = tf.function(lambda x: tf.reduce_sum(x)), tf.ones((8, 8))
    return lambda: float(f(x))
"""
TENSORFLOW = """
import tensorflow as tf

W = [tf.Variable(tf.ones((512, 512)) / 512) for _ in range(4)]

def forward(x):
    for layer in W:
        x = tf.nn.relu(x @ layer)
    return x

def eager(batch, device):
    x = tf.ones((batch, 512))
    return lambda: forward(x)

def graph(batch, device):
    f, x = tf.function(forward), tf.ones((batch, 512))
    return lambda: f(x)

def dead(batch, device):
    f, x = tf.function(lambda x: (forward(x), x + 1)[1]), tf.ones((batch, 512))
    return lambda: f(x)

def constants(batch, device):
    return tf.function(lambda: tf.ones((batch, 512)) @ tf.ones((512, 512)))

def xla(batch, device):
    f, x = tf.function(forward, jit_compile=True), tf.ones((batch, 512))
    return lambda: f(x)

def retraced(batch, device):
    f, sizes = tf.function(lambda x: x + 1), iter(range(1, 100))
    return lambda: tf.reduce_sum(f(tf.ones(next(sizes))))
"""
CELL = Cell(
    workload="own", backend="program", device="cpu", task="train", batch=64, precision=OWN, compile_mode=OWN, feed=OWN
)


def seen_in(folder, text, *functions, **variables):
    """Of programs of a file, each in the order given: what was compiled for it, and a launch in which it ran."""
    path = folder / "model.py"
    path.write_text(text)
    # Another test may have compiled the same function: nothing is said of what comes from a cache.
    variables = {"TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), **variables}
    done = subprocess.run(
        [sys.executable, "-c", MADE, str(path), *functions],
        capture_output=True, text=True, check=False, timeout=200, env=os.environ | variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout.splitlines()[-1])
    return {
        name: LaunchPart(recompiles=msgspec.convert(compiled, Compilations), ran=msgspec.convert(ran, WhatRan))
        for name, (compiled, ran) in answers.items()
    }


@pytest.fixture
def seen(tmp_path):
    """`seen(text, *functions, **variables)`: what `seen_in` a folder of this test's."""
    return partial(seen_in, tmp_path)


@pytest.fixture(scope="module")
def compiled_by_torch(tmp_path_factory):
    """The folder in which `torch.compile` has compiled programs, and their launches by name."""
    folder = tmp_path_factory.mktemp("compiled_by_torch")
    return folder, seen_in(folder, TORCH, "eager", "compiled", "dead", "attention")


def codes(launches):
    return {name: None if (known := left_out(launch)) is None else known.code for name, launch in launches.items()}


def test_jaxs_constants_and_dead_results_are_seen(seen):
    launches = seen(JAX, "argument", "constants", "constant_batches", "dead", "one_by_one", "library")
    assert codes(launches) == {
        "argument": None,
        "constants": "constant_inputs",
        "constant_batches": "work_left_out",
        "dead": "work_left_out",
        "one_by_one": None,
        "library": None,  # XLA does not know what a library's call costs
    }
    assert launches["argument"].ran.runs == {"xla": 1}
    assert launches["argument"].ran.flops > 1e8
    assert launches["one_by_one"].ran.runs["xla"] >= 8


@pytest.mark.slow
def test_what_is_compiled_again_is_counted_for_the_program_that_does_it(seen):
    jax = seen(JAX, "argument", "growing")
    assert jax["argument"].recompiles.count < 5 <= jax["growing"].recompiles.count
    tensorflow = seen(TENSORFLOW, "graph", "retraced")
    assert [tensorflow[name].recompiles.count for name in ("graph", "retraced")] == [1, 3]


@pytest.mark.slow
def test_a_dead_loop_is_given_up_long_before_its_end(seen):
    launches = seen(JAX, "dead_loop", "live_loop")
    # What is asked for is not known then: nothing is said, and the launch is not lost. XLA counts a loop's body once.
    assert codes(launches) == {"dead_loop": None, "live_loop": None}
    assert launches["dead_loop"].ran.runs == launches["live_loop"].ran.runs == {"xla": 1}


@pytest.mark.slow
def test_jax_beside_tensorflow_is_counted_once_it_has_compiled(seen):
    pytest.importorskip("jax")
    launches = seen(FED_BY_TENSORFLOW, "growing", "number") | seen(FED_BY_TENSORFLOW, "no_jax")
    assert launches["growing"].recompiles.count >= 3 > launches["no_jax"].recompiles.count == 1
    assert launches["no_jax"].ran.runs == {"graph": 1}
    assert {launches[name].ran.reason.code for name in ("number", "growing")} == {"several_frameworks"}


@pytest.mark.slow
def test_tensorflows_dead_results_and_constants_are_seen(seen):
    launches = seen(TENSORFLOW, "eager", "graph", "dead", "constants", "xla")
    dropped = "products_left_out"
    assert codes(launches) == {"eager": None, "graph": None, "dead": dropped, "constants": dropped, "xla": None}
    runs = {name: launch.ran.runs for name, launch in launches.items()}
    assert "graph" not in runs["eager"]
    assert (runs["graph"], runs["xla"]) == ({"graph": 1}, {"xla": 1})
    assert (launches["graph"].ran.products, launches["dead"].ran.products_asked) == (4, 4)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor writes C++")
def test_pytorchs_dead_results_are_seen(compiled_by_torch):
    _, launches = compiled_by_torch
    # The profiler does not count an attention's kernel, so nothing is said of it.
    assert codes(launches) == dict.fromkeys(launches) | {"dead": "work_left_out"}
    assert [launches[name].recompiles.count for name in launches] == [0, 1, 1, 1]
    assert "inductor" not in launches["eager"].ran.runs
    assert switched_off(CELL, launches["compiled"]) is None


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor writes C++")
def test_nothing_is_said_of_what_inductor_takes_from_a_cache(compiled_by_torch):
    folder, launches = compiled_by_torch
    assert [codes(seen_in(folder, TORCH, "dead")), codes(launches)["dead"]] == [{"dead": None}, "work_left_out"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor writes C++")
def test_products_that_inductor_writes_as_sums_are_not_taken_for_left_out(seen):
    launches = seen(TORCH, "dots")
    assert launches["dots"].ran.runs["inductor"] and codes(launches) == {"dots": None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "function", "variables", "code"),
    [
        (TORCH, "compiled", {"TORCHDYNAMO_DISABLE": "1"}, "compiler_off"),
        (TORCH, "compiled", {"TORCH_COMPILE_DISABLE": "1"}, "compiler_off"),
        (TORCH, "compiled", {"TORCHDYNAMO_SUPPRESS_ERRORS": "1", "CXX": "/none"}, "compiler_failed"),
        (JAX, "argument", {"JAX_DISABLE_JIT": "1"}, "compiler_off"),
        ("import tensorflow as tf\ntf.config.run_functions_eagerly(True)\n" + TENSORFLOW, "graph", {}, "compiler_off"),
    ],
)
def test_a_compiler_that_is_off_or_fails_is_seen(seen, text, function, variables, code):
    (launch,) = seen(text, function, **variables).values()
    assert switched_off(CELL, launch).code == code


def test_a_program_that_compiles_nothing_has_no_compiler_that_is_off(seen):
    (launch,) = seen(TORCH, "eager", TORCHDYNAMO_DISABLE="1").values()
    assert switched_off(CELL, launch) is None


ASYNCHRONOUS = """
import time
import tensorflow as tf

done = []

def slow(x):
    time.sleep(0.2)
    done.append(1)
    return x

def called(x):
    return tf.py_function(slow, [x], tf.float32)

graph, x = tf.function(called), tf.ones(())

def switch():
    tf.config.experimental.set_synchronous_execution(False)

def of_a_graph(batch, device):
    switch()
    return lambda: {"loss": graph(x)}

def of_an_operation(batch, device):
    switch()
    return lambda: called(x) + 1

def of_a_variable(batch, device):
    switch()
    kept = tf.Variable(x)
    def step():
        kept.assign(called(x))
        return kept
    return step

def synchronous(batch, device):
    tf.config.experimental.set_synchronous_execution(True)
    return lambda: graph(x)

def too_late(batch, device):
    tf.config.experimental.set_synchronous_execution(True)
    count = iter(range(9))
    def step():
        if next(count):
            switch()
        return graph(x)
    return step
"""
WAITED = """
import sys
import numpy as np
from kit.backends.entry import BackendError
from kit.backends.program.backend import UserProgram, import_function
from kit.profile.cell import OWN, Cell
from kit.profile.program_source import ProgramSource, file_sha256

path, *functions = sys.argv[1:]
for function in functions:
    source = ProgramSource(path=path, function=function, takes_task=False, sha256=file_sha256(path))
    cell = Cell(workload=function, backend="program", device="cpu", task="train", batch=64, precision=OWN,
                compile_mode=OWN, feed=OWN)
    program, done = UserProgram(source, cell), sys.modules[import_function(source).__module__].done
    try:
        counts = []
        for _ in range(2):
            done.clear()
            program.begin()
            output = program.step(None)
            before = len(done)
            program.synchronize()
            counts.append((before, len(done)))
            program.check(output, np.array([50_000]))
        print(function, counts)
    except BackendError as error:
        print(function, error)
"""


@pytest.mark.slow
def test_tensorflow_is_waited_for_where_its_calls_return_early(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(ASYNCHRONOUS)
    functions = ["of_a_graph", "of_an_operation", "of_a_variable", "synchronous", "too_late"]
    done = subprocess.run(
        [sys.executable, "-c", WAITED, str(path), *functions], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr
    *waited, late = done.stdout.splitlines()
    # TensorFlow waits by itself before it assigns a tensor whose shape it does not know.
    early = [f"{name} [(0, 1), (0, 1)]" for name in functions[:2]]
    assert waited == [*early, "of_a_variable [(1, 1), (1, 1)]", "synchronous [(1, 1), (1, 1)]"]
    assert "nobody waited for it" in late
