"""What PyTorch says of itself: what it has compiled so far, whether its compiler is off, and what ran in a step.

Of PyTorch's parts none is imported that the program has not imported.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from kit.backends.protocol import DeviceBatch, Stepping, launches_among
from kit.profile.fields import Reason, reason
from kit.profile.schema import Compilations, WhatRan

# Names of events: of what TorchDynamo captured, and of a graph that Inductor compiled.
CAPTURED, COMPILED = "Torch-Compiled Region", "## Call CompiledFxGraph"
OPERATION = "aten::"
# What `torch.compile` imports and nothing else does (torch/__init__.py). It shows that a program was to be compiled,
# also where the compiler is off.
CALLED = "torch._inductor.compiler_bisector"
# Operations that compute much. PyTorch's profiler counts the FLOPs of some of them only.
HEAVY = re.compile(r"mm$|matmul|linear|conv|attention|rnn|lstm|gru|einsum")
# Inductor's counters of what it wrote in the place of such an operation: the profiler does not see it.
TEMPLATES = (
    "select_algorithm_autotune", "cpp_templated_kernel_counter", "decompose_mm", "decompose_bmm", "decompose_addmm",
)  # fmt: skip


def compiled_so_far() -> Compilations:
    """Count what TorchDynamo was to compile in this process, what it compiled, and its graph breaks.

    PyTorch has no public call for these counts.
    """
    off = switched_off() if CALLED in sys.modules else None
    if (utils := sys.modules.get("torch._dynamo.utils")) is None:
        return Compilations(count=0, tried=0, graph_breaks=0, reason=off)
    frames = utils.counters["frames"]
    breaks = sum(utils.counters["graph_break"].values())
    return Compilations(count=frames["ok"], tried=frames["total"], graph_breaks=breaks, reason=off)


def switched_off() -> Reason | None:
    """Return by what torch.compile is switched off; None: it compiles."""
    # torch/_dynamo/eval_frame.py reads it in each call of torch.compile.
    if os.environ.get("TORCHDYNAMO_DISABLE", "") == "1":
        return reason("compiler_switched_off", by="TORCHDYNAMO_DISABLE")
    # TORCH_COMPILE_DISABLE sets it when TorchDynamo is imported.
    config = sys.modules.get("torch._dynamo.config")
    is_disabled = os.environ.get("TORCH_COMPILE_DISABLE") == "1" if config is None else config.disable
    return reason("compiler_switched_off", by="TORCH_COMPILE_DISABLE") if is_disabled else None


def what_ran(program: Stepping, batch: DeviceBatch, *, asks: bool = False) -> WhatRan:
    """Return what one step runs; with `asks` the step is made once more, to count what it asks for."""
    # CUDA's calls show only where the GPU's tracer is on, too.
    device = "cuda" if torch.cuda.is_initialized() else None
    with torch.autograd.profiler.profile(record_shapes=True, with_flops=True, use_device=device) as profiled:
        program.step(batch)
        program.synchronize()
    events, runs = profiled.function_events, Counter[str]()
    for event in events:
        if event.name.startswith(COMPILED):
            runs["inductor"] += 1
        elif event.name.startswith(CAPTURED):
            runs["dynamo"] += 1
        elif event.name.startswith(OPERATION) and not _is_part(event):
            runs["operation"] += 1
    is_asked = asks and (runs["inductor"] or runs["dynamo"])
    launched = launches_among(Counter(event.name for event in events))
    asked = _flops_asked(program, batch) if is_asked else None
    return WhatRan(runs=dict(runs), flops=_flops_of(events), flops_asked=asked, **launched._asdict())


def _flops_of(events: Iterable[Any]) -> float | None:
    """Return the FLOPs of products and convolutions; None if there may be some that the profiler does not count."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is not None:
        written = any(utils.counters["inductor"][name] for name in TEMPLATES)
        # What a cache has written before counts no template.
        cached = utils.counters["inductor"]["fxgraph_cache_hit"] or utils.counters["aot_autograd"]["autograd_cache_hit"]
        # On a GPU a graph that is replayed, or a kernel of Triton, is no event of an operation.
        if written or cached or torch.cuda.is_initialized():
            return None
    flops = 0.0
    for event in events:
        flops += event.flops or 0
        if _is_heavy(event) and not any(map(_is_heavy, event.cpu_children)) and not _is_counted(event):
            return None
    return flops


def _is_heavy(event: Any) -> bool:  # noqa: ANN401 - PyTorch names no type
    return "::" in event.name and HEAVY.search(event.name) is not None


def _is_counted(event: Any) -> bool:  # noqa: ANN401 - PyTorch names no type
    """Whether an operation has FLOPs, or is a part of another that has them, as of a convolution."""
    while event is not None and not event.flops:
        event = event.cpu_parent
    return event is not None


def _is_part(event: Any) -> bool:  # noqa: ANN401 - PyTorch names no type
    """Whether an operation is a part of another, or of what was compiled."""
    parent = event.cpu_parent
    while parent is not None:
        if parent.name.startswith((OPERATION, COMPILED)):
            return True
        parent = parent.cpu_parent
    return False


def _flops_asked(program: Stepping, batch: DeviceBatch) -> float:
    """Return the FLOPs of a step by its operations: PyTorch runs each by itself while it counts them."""
    with FlopCounterMode(display=False) as counter:
        program.step(batch)
        program.synchronize()
    return float(counter.get_total_flops())
