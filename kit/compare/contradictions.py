"""What a launch recorded of itself that contradicts its cell: its compile mode, its work, its precision.

    mode                  has to run              must not run
    torch eager           operations              what TorchDynamo captured or Inductor compiled
    torch compile, reduce-overhead, max-autotune
                          graphs of Inductor
    tensorflow eager      operations              programs of XLA
    tensorflow graph      graphs                  programs of XLA
    tensorflow xla        programs of XLA
    jax jit               programs of XLA

docs/reference/proof.md has this table with what shows it. A user program has no mode. It may ask for work that its
compiler then leaves out, because its inputs are constants or nobody needs its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kit.profile.cell import OWN, Cell
from kit.profile.fields import Reason, reason
from kit.profile.schema import Compilations, LaunchPart

# What runs, by its name in `WhatRan.runs` -> who makes it, as tables write it.
COMPILERS = {"inductor": "TorchInductor", "dynamo": "TorchDynamo", "xla": "XLA", "graph": "tf.function"}
# Of what a step asks for. Compilers save a few percent; a branch that is not taken is half of a step.
LEFT_OUT_FRACTION = 0.1
# Inductor writes small products as sums of its own, and the profiler does not count them.
ASKED_LEAST_FLOPS = 1e6
# In `Launch.settings`, a switch for float32's precision -> values for which products are computed in float32.
# JAX's None is its default: float32 on a CPU, on GPUs since Ampere TensorFloat-32, and on TPUs bfloat16.
FULL_FLOAT32: Mapping[str, tuple[str, ...]] = {
    "float32_matmul_precision": ("highest",),
    "tensor_float_32": ("False",),
    "jax_default_matmul_precision": ("highest", "float32"),
}
# Switches beside these, of cuDNN and oneDNN.
FURTHER_FLOAT32: Mapping[str, tuple[str, ...]] = {
    "cudnn.allow_tf32": ("False",),
    "mkldnn.matmul.fp32_precision": ("none", "ieee"),
    "mkldnn.conv.fp32_precision": ("none", "ieee"),
    "mkldnn.rnn.fp32_precision": ("none", "ieee"),
    "ONEDNN_DEFAULT_FPMATH_MODE": ("STRICT", "strict"),
    "DNNL_DEFAULT_FPMATH_MODE": ("STRICT", "strict"),
    "TF_SET_ONEDNN_FPMATH_MODE": ("FP32", "fp32"),
}
OF_A_CPU = {"jax_default_matmul_precision": ("None", "default")}
# As `kit.backends.entry` writes it behind a switch.
TF32_FORBIDDEN, TF32_FORCED = "(NVIDIA_TF32_OVERRIDE=0)", "(NVIDIA_TF32_OVERRIDE=1)"


class Mode(NamedTuple):
    """What shows that a compile mode was the one that ran; names as in `WhatRan.runs`."""

    needs: str
    excludes: tuple[str, ...] = ()
    is_counted: bool = True  # the framework counts compilations of this mode


MODES: Mapping[tuple[str, str], Mode] = {
    ("torch", "eager"): Mode("operation", ("inductor", "dynamo"), is_counted=False),
    ("torch", "compile"): Mode("inductor"),
    ("torch", "reduce-overhead"): Mode("inductor"),
    ("torch", "max-autotune"): Mode("inductor"),
    ("tensorflow", "eager"): Mode("operation", ("xla",), is_counted=False),
    ("tensorflow", "graph"): Mode("graph", ("xla",)),
    ("tensorflow", "xla"): Mode("xla"),
    ("jax", "jit"): Mode("xla"),
}


# Modes in which kernels are compiled for the network.
COMPILED_MODES = {name for (_, name), mode in MODES.items() if mode.needs in ("inductor", "xla")}


def mode_of(cell: Cell) -> Mode | None:
    """Return what shows a cell's mode; None of a mode that is not known here, or a user program."""
    # XLA compiles whatever runs on a TPU.
    return None if cell.device == "tpu" else MODES.get((cell.backend, cell.compile_mode))


def is_shown(cell: Cell, launch: LaunchPart) -> bool:
    """Whether a launch recorded enough to show its cell's mode."""
    mode, ran, known = mode_of(cell), launch.ran, launch.recompiles
    if mode is None:
        return False
    if ran is not None and ran.runs and (mode.needs in ran.runs or cell.device == "cpu"):
        return True
    return mode.is_counted and not mode.excludes and known is not None and known.before is not None


def against_mode(cell: Cell, launch: LaunchPart) -> Reason | None:
    """Return what ran instead of a cell's mode; None: nothing shows that something else did."""
    mode, ran, known = mode_of(cell), launch.ran, launch.recompiles
    if mode is None:
        return None
    runs = {} if ran is None else ran.runs
    for name in mode.excludes:
        if runs.get(name):
            return reason("compiled_nonetheless", by=COMPILERS[name])
    counted = None if known is None or known.before is None else known.before + (known.count or 0)
    # What an accelerator's own tracer shows is not looked at: there only the count says that nothing was compiled.
    is_missing = runs and mode.needs not in runs and cell.device == "cpu"
    if is_missing or (mode.is_counted and counted == 0):
        off = None if known is None else _off(known)
        return reason("not_compiled", by=COMPILERS.get(mode.needs, mode.needs)) if off is None else off
    return None


def _off(known: Compilations) -> Reason | None:
    """Return that a framework's compiler is switched off; None: it is not."""
    if known.reason is None or known.reason.code != "compiler_switched_off":
        return None
    return reason("compiler_off", switch=known.reason.values["by"])


def switched_off(cell: Cell, launch: LaunchPart) -> Reason | None:
    """Return why nothing was compiled in a user program whose framework's compiler is off, or whose compiler failed."""
    known, runs = launch.recompiles, {} if launch.ran is None else launch.ran.runs
    if cell.compile_mode != OWN or known is None or runs.get("inductor"):
        return None
    if (off := _off(known)) is not None:
        return off
    if known.tried and not known.count and not known.before:
        return reason("compiler_failed", tried=known.tried)
    return None


def left_out(launch: LaunchPart) -> Reason | None:
    """Return what a step asks for and its compiler left out; None: nearly all of it ran, or that is not known."""
    if (ran := launch.ran) is None:
        return None
    asked, done = ran.flops_asked, ran.flops
    if asked is not None and done is not None and asked >= ASKED_LEAST_FLOPS and done <= LEFT_OUT_FRACTION * asked:
        code = "constant_inputs" if ran.arguments_b == 0 else "work_left_out"
        return reason(code, flops=done, flops_asked=asked)
    if ran.products_asked and ran.products is not None and ran.products <= LEFT_OUT_FRACTION * ran.products_asked:
        return reason("products_left_out", products=ran.products, products_asked=ran.products_asked)
    return None


def is_full(name: str, value: str, device: str) -> bool:
    """Whether a switch has products of float32 computed in float32."""
    if value.endswith(TF32_FORBIDDEN):
        return True
    full = {**FULL_FLOAT32, **FURTHER_FLOAT32}[name] + (OF_A_CPU.get(name, ()) if device == "cpu" else ())
    return value.split(" ", maxsplit=1)[0] in full and not value.endswith(TF32_FORCED)


def lower_precision(cell: Cell, launch: LaunchPart) -> dict[str, str]:
    """Return the switches under which a framework may compute a float32 cell in less, with their values."""
    if cell.precision != "float32":
        return {}
    switches = {**FULL_FLOAT32, **FURTHER_FLOAT32}
    known = ((name, value) for name, value in launch.settings.items() if name in switches)
    return {name: value for name, value in known if not is_full(name, value, cell.device)}


def first_against_mode(cell: Cell, launches: Iterable[LaunchPart]) -> Reason | None:
    """Return what the first of some launches shows that contradicts its cell's mode."""
    return next((known for launch in launches if (known := against_mode(cell, launch)) is not None), None)
