"""What TensorFlow says of itself: which graphs it has made so far, whether it makes any, and what ran in a step.

    EagerLocalExecute: MatMul               an operation by itself
    EagerLocalExecute: __inference_step_8   a function: FunctionRun, as a graph; CpuExecutable::…, by XLA; or both,
                                            where TensorFlow gave parts of the graph to XLA (TF_XLA_FLAGS)

This file imports no other part of this backend.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tensorflow as tf
from msgspec.structs import replace

from kit.backends.protocol import DeviceBatch, Stepping, launches_among
from kit.profile.fields import Reason, reason
from kit.profile.schema import Compilations, WhatRan

# Events: an operation or a function by its name, a graph, what XLA compiled.
CALL, GRAPH = "EagerLocalExecute: ", "FunctionRun"
XLA = re.compile(r"(Cpu|Gpu)Executable::ExecuteAsyncOnStream")
XLA_IN_GRAPH = re.compile(r":(_XlaRun|XlaLaunch)$")
# How the names of the planes begin that a device's own tracer writes.
DEVICE_PLANE = "/device:"
# Functions that were traced. Others wrap a single operation.
TRACED = ("__inference_", "__forward_", "__backward_")
# Operations that multiply, also those that the graph's optimizer makes of them: _FusedMatMul, _MklFusedConv2D.
PRODUCT = re.compile(r"(MatMul|Conv[23]D|Conv2DBackprop\w+|Einsum|DepthwiseConv\w+)(V\d)?$")


def compiled_so_far() -> Compilations:
    """Count the functions that were traced in this process: TensorFlow compiles each once, as a graph or by XLA."""
    names = _context().list_function_names()
    return Compilations(count=sum(name.startswith(TRACED) for name in names), reason=switched_off())


def switched_off() -> Reason | None:
    """Return by what `tf.function` is switched off; None: it makes graphs."""
    if tf.config.functions_run_eagerly():
        return reason("compiler_switched_off", by="tf.config.run_functions_eagerly")
    return None


def what_ran(program: Stepping, batch: DeviceBatch, *, asks: bool = False) -> WhatRan:
    """Return what one step runs; with `asks` also how many products its graphs have, and how many ran."""
    with tempfile.TemporaryDirectory(prefix="steadykit-tensorflow-", ignore_cleanup_errors=True) as folder:
        # CUDA's calls show only where the GPU's tracer is on, too.
        options = tf.profiler.experimental.ProfilerOptions(
            device_tracer_level=int(bool(tf.config.list_physical_devices("GPU")))
        )
        with tf.profiler.experimental.Profile(folder, options):
            program.step(batch)
            program.synchronize()
        (path,) = Path(folder).rglob("*.xplane.pb")
        events = _events(path.read_bytes())
    called = Counter({name.removeprefix(CALL): count for name, count in events.items() if name.startswith(CALL)})
    graphs = {name: count for name, count in called.items() if name.startswith(TRACED)}
    runs = {
        "operation": called.total() - sum(graphs.values()),
        "graph": events[GRAPH],
        "xla": max(_count(XLA, events), _count(XLA_IN_GRAPH, events)),
    }
    counts = {name: count for name, count in runs.items() if count}
    ran = WhatRan(runs=counts, **launches_among(events)._asdict())
    if not asks or not graphs or runs["xla"]:
        return ran
    asked = sum(count * _products(name, frozenset()) for name, count in graphs.items())
    return replace(ran, products=_count(PRODUCT, _by_operation(events)), products_asked=asked)


def _context() -> Any:  # noqa: ANN401 - TensorFlow names no type
    """Return what knows all functions: TensorFlow has no public call that lists them, and none that reads a trace."""
    from tensorflow.python.eager import context

    return context.context()


def _events(trace: bytes) -> Counter[str]:
    """Count the events of a trace by their names, but those of a device's own tracer: what is called is on the host."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space, names = xplane_pb2.XSpace(), Counter[str]()
    space.ParseFromString(trace)
    for plane in space.planes:
        for line in () if plane.name.startswith(DEVICE_PLANE) else plane.lines:
            names.update(plane.event_metadata[event.metadata_id].name for event in line.events)
    return names


def _by_operation(events: Counter[str]) -> Counter[str]:
    """Count the operations of graphs: their events are called ``node:Operation``."""
    counted = Counter[str]()
    for name, count in events.items():
        if ":" in name and not name.startswith(CALL):
            counted[name.rpartition(":")[2]] += count
    return counted


def _count(pattern: re.Pattern[str], names: Counter[str]) -> int:
    return sum(count for name, count in names.items() if pattern.search(name))


def _products(name: str, within: frozenset[str]) -> int:
    """Return how many products a traced function has, with those of the functions that it calls."""
    if name in within:
        return 0
    nodes: Iterable[Any] = _context().get_function_def(name).node_def
    count = 0
    for node in nodes:
        count += bool(PRODUCT.search(node.op))
        for part in node.attr.values():
            if part.func.name:
                count += _products(part.func.name, within | {name})
    return count
