"""What JAX says of itself: what XLA has compiled so far, whether `jax.jit` is off, and what ran in a step.

JAX counts compilations for who has registered before: this file is imported as soon as a program has imported JAX. It
imports no other part of this backend.
"""

from __future__ import annotations

import math
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.monitoring
from msgspec.structs import replace

from kit.backends.protocol import DeviceBatch, Launches, Stepping, kernel_ops, launches_among
from kit.profile.fields import Reason, reason
from kit.profile.schema import Compilations, WhatRan

# jax/_src/dispatch.py; a program from a cache has this event, too.
COMPILED = "/jax/core/compile/backend_compile_duration"
# The event of a call of a program, by PjRt's client of a CPU.
CALL = re.compile(r"LoadedExecutable::ExecuteHelper")
FLOPS = "flops"
# How the names of the planes begin that a device's own tracer writes.
DEVICE_PLANE = "/device:"
# A dispatch takes tens of microseconds, in which one CPU computes about as much. Operation by operation each is
# compiled by itself, which takes seconds for a network: only a step that computes no more is asked.
FEW_FLOPS = 1e6
# A loop of a compiled program runs operation by operation, too: one of some thousand passes ends within this.
ASKED_LIMIT_S = 10.0

Cost = tuple[float | None, int]  # FLOPs, where all are known, and bytes of arguments

_compiled = Counter[str]()
jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: _compiled.update([name]))


def compiled_so_far() -> Compilations:
    """Count the programs that XLA has compiled in this process since it was first asked."""
    return Compilations(count=_compiled[COMPILED], reason=switched_off())


def switched_off() -> Reason | None:
    """Return by what `jax.jit` is switched off; None: it compiles."""
    return reason("compiler_switched_off", by="JAX_DISABLE_JIT") if jax.config.jax_disable_jit else None


def what_ran(program: Stepping, batch: DeviceBatch, *, asks: bool = False) -> WhatRan:
    """Return which of XLA's programs one step runs, and what these cost by XLA's own analysis.

    With `asks` a step that hardly computes is made once more, operation by operation, to count what it asks for.
    """
    ran = _programs_of(program, batch)
    if not asks or ran.flops is None or ran.flops > FEW_FLOPS:
        return ran
    before, end_s = sys.getprofile(), time.monotonic() + ASKED_LIMIT_S

    def end_at_the_limit(*_: object) -> None:
        if time.monotonic() > end_s:
            raise TimeoutError

    try:
        sys.setprofile(end_at_the_limit)
        with jax.disable_jit():
            return replace(ran, flops_asked=_programs_of(program, batch).flops)
    except Exception:  # a program that was compiled ahead of time has no operations
        return ran
    finally:
        sys.setprofile(before)


def launched(program: Stepping, batch: DeviceBatch) -> Launches:
    """Return what one more step launches on a GPU."""
    return launches_among(Counter(name for name, _ in _events(_traced(program, batch))))


def _traced(program: Stepping, batch: DeviceBatch) -> Any:  # noqa: ANN401
    """Return what JAX' profiler sees of one step."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # without Python's calls
    with tempfile.TemporaryDirectory(prefix="steadykit-jax-", ignore_cleanup_errors=True) as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            program.step(batch)
            program.synchronize()
        (path,) = Path(folder).rglob("*.xplane.pb")
        return jax.profiler.ProfileData.from_file(str(path))


def _programs_of(program: Stepping, batch: DeviceBatch) -> WhatRan:
    names, operations = Counter[str](), defaultdict[tuple[str, object], set[str]](set)  # by program and run
    for name, stats in _events(_traced(program, batch)):
        names[name] += 1
        if "hlo_module" in stats:
            operations[str(stats["hlo_module"]), stats.get("run_id")].add(str(stats.get("hlo_op", "")))
    calls = sum(times for name, times in names.items() if CALL.search(name))
    count = max(calls, len(operations))
    loaded = _loaded()
    costs = [cost for (name, _), of_run in operations.items() if (cost := _cost(loaded[name], of_run)) is not None]
    ran = WhatRan(runs={"xla": count} if count else {}, **launches_among(names)._asdict())
    if not costs or len(costs) < count:
        return ran
    every = [flops for flops, _ in costs]
    flops = None if None in every else float(sum(known for known in every if known is not None))
    return replace(ran, flops=flops, arguments_b=sum(size_b for _, size_b in costs))


def cost_of(executable: Any) -> Cost:  # noqa: ANN401 - JAX names no type
    """Return the FLOPs of a program of XLA's client, and the bytes of its arguments.

    XLA counts the body of a loop once, and nothing of a library's call: FLOPs are null where there is one.
    """
    (module,) = executable.hlo_modules()
    counted: float = (executable.cost_analysis() or {}).get(FLOPS, 0.0)
    hides_some = any(name not in ("dot", "convolution") for name in kernel_ops(module.to_string()))
    return None if hides_some else max(counted, 0.0), executable.get_compiled_memory_stats().argument_size_in_bytes


def _events(data: Any) -> Iterator[tuple[str, dict[str, object]]]:  # noqa: ANN401
    """Yield the name and the statistics of each event on the host: what is called shows there."""
    for plane in data.planes:
        for line in () if plane.name.startswith(DEVICE_PLANE) else plane.lines:
            for event in line.events:
                yield event.name, {name: value for name, value in event.stats if name is not None}


def _loaded() -> dict[str, list[Any]]:
    """Return the programs that XLA's clients hold, by their names."""
    loaded = defaultdict[str, list[Any]](list)
    for client in {device.client for device in jax.local_devices()}:
        for executable in client.live_executables():
            (module,) = executable.hlo_modules()
            loaded[module.name].append(executable)
    return loaded


def _cost(alike: Iterable[Any], ran: set[str]) -> Cost | None:
    """Return the cost of the program, of several of one name, that has the operations which ran.

    Where several have them it is the largest, so that nothing is missed that ran.
    """
    texts = [(executable, executable.hlo_modules()[0].to_string()) for executable in alike]
    costs = [cost_of(executable) for executable, text in texts if all(f"{name} = " in text for name in ran)]
    if not costs:
        return None
    return max(costs, key=lambda cost: math.inf if cost[0] is None else cost[0])
