"""What each framework shows of a mode that ran, and of one that did not although its cell says so."""

import shutil

import pytest
import small_workloads as small

from kit.backends.protocol import launches_among
from kit.compare.contradictions import MODES, against_mode, is_shown, lower_precision
from kit.profile.schema import LaunchPart

pytestmark = pytest.mark.frameworks

NEEDS_COMPILER = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor writes C++")
COMPILING = [pytest.mark.slow, NEEDS_COMPILER]


def shown(exercise_of, backend, mode, switch=""):
    """What contradicts a cell, whether its mode is shown, and what ran."""
    ran, compiled = exercise_of(backend).answer("what_ran", mode, switch)
    cell = small.cell(backend, small.small_mlp("adam"), compile_mode=mode)
    launch = LaunchPart(ran=ran, recompiles=compiled)
    return against_mode(cell, launch), is_shown(cell, launch), ran.runs


@pytest.mark.parametrize(
    ("backend", "mode"),
    [
        ("torch", "eager"),
        pytest.param("torch", "compile", marks=COMPILING),
        pytest.param("torch", "reduce-overhead", marks=COMPILING),
        pytest.param("torch", "max-autotune", marks=COMPILING),
        ("tensorflow", "eager"),
        ("tensorflow", "graph"),
        ("tensorflow", "xla"),
        ("jax", "jit"),
    ],
)
def test_a_mode_that_ran_is_shown(exercise_of, backend, mode):
    contradiction, is_known, runs = shown(exercise_of, backend, mode)
    assert contradiction is None
    assert is_known
    assert runs[MODES[backend, mode].needs] > 0


@pytest.mark.parametrize(
    ("names", "launches"),
    [
        ({"aten::mm": 3, "Memcpy HtoD": 1}, (None, None)),
        ({"cudaLaunchKernel": 40, "cuLaunchKernelEx": 2, "cudaMemcpyAsync": 1, "cudaDeviceSynchronize": 1}, (43, 0)),
        ({"cudaGraphLaunch": 2, "cudaLaunchKernelExC": 5, "cudaMemsetAsync": 1}, (8, 2)),
        ({"cuGraphLaunch": 1, "cuMemcpyDtoHAsync_v2": 1}, (2, 1)),
    ],
)
def test_launches_of_a_gpu_are_counted_by_cudas_own_names(names, launches):
    assert launches_among(names) == launches


@pytest.mark.parametrize(
    ("switch", "values"),
    [
        ("variable", {"switch": "TORCHDYNAMO_DISABLE"}),
        ("config", {"switch": "TORCH_COMPILE_DISABLE"}),
        ("no compiler", {"by": "TorchInductor"}),
        ("other compiler", {"by": "TorchInductor"}),
    ],
)
def test_a_mode_in_which_nothing_was_compiled_is_contradicted(exercise_of, switch, values):
    contradiction, _, runs = shown(exercise_of, "torch", "compile", switch)
    assert contradiction.values == values
    assert runs["operation"] > 0


def test_jax_without_jit_is_refused_with_what_switches_it_off(exercise_of):
    assert "JAX_DISABLE_JIT switches jax.jit off" in exercise_of("jax").answer("refused_switch")


@pytest.mark.parametrize(
    ("backend", "switch"),
    [
        ("torch", {"ONEDNN_DEFAULT_FPMATH_MODE": "BF16"}),
        ("torch", {"DNNL_DEFAULT_FPMATH_MODE": "ANY"}),
        ("tensorflow", {"TF_SET_ONEDNN_FPMATH_MODE": "BF16"}),
        ("tensorflow", {"ONEDNN_DEFAULT_FPMATH_MODE": "TF32"}),
    ],
)
def test_a_switch_that_lowers_float32_on_a_cpu_is_seen(exercise_of, backend, switch):
    cell = small.cell(backend, small.small_mlp("adam"))
    for variables, wanted in ((switch, switch), ({}, {})):
        settings = exercise_of(backend).answer("precision", tuple(variables.items()))
        assert lower_precision(cell, LaunchPart(settings=settings)) == wanted
