"""A worker of the kit whose programs are the frameworks' own recommended loops (`recommended/`), not the kit's.

`bench_recommended_loop.py` starts it in place of ``python -m kit.worker``; everything but the program is the kit's:
process, batches, warm-up, blocks, stamps. A cell's variant names the loop.
"""

from __future__ import annotations

import importlib
import sys

import numpy as np

from kit.backends import backend_catalog
from kit.backends.protocol import Program
from kit.errors import KitError
from kit.profile.fields import reason
from kit.profile.schema import Compilations
from kit.worker.__main__ import main

load_own = backend_catalog.load


class RecommendedProgram(Program):
    """A recommended loop. See `kit.backends.protocol.Program`; it traces and compiles in its first step."""

    def __init__(self, loops, cell, parameters) -> None:
        loop = loops.loops(cell.workload, cell.task)[cell.variant]
        if loop.parameters != parameters:
            raise KitError(f"{cell.variant} trains {loop.parameters} parameters of {cell.workload}, not {parameters}")
        self._put, self._wait = loops.put, loop.wait
        self._step = loop.step
        self._output = None

    def put(self, batch):
        return self._put(batch.inputs, batch.targets)

    def pin(self, batch):
        return batch

    def trace(self) -> bool:
        return False

    def compile(self) -> bool:
        return False

    def step(self, batch):
        self._output = self._step(batch)
        return self._output

    def synchronize(self) -> None:
        self._wait(self._output)

    def to_host(self, output):
        return np.asarray(output.detach() if hasattr(output, "detach") else output, np.float32)

    def compilations(self) -> Compilations:
        return Compilations(count=None, reason=reason("not_counted"))

    def kernels(self) -> list[str]:
        return []  # of a first round's proof the benchmark reads nothing


class RecommendedBackend:
    """The kit's backend, which imports the framework and sets its threads, with other programs."""

    def __init__(self, kit_backend) -> None:
        self._own = kit_backend

    def __getattr__(self, name):
        return getattr(self._own, name)

    def build(self, workload, cell, weights, seed):
        loops = importlib.import_module(f"recommended.{cell.backend}_loops")
        return RecommendedProgram(loops, cell, sum(weight.size for weight in weights.values()))


backend_catalog.load = lambda name: RecommendedBackend(load_own(name))

if __name__ == "__main__":
    sys.exit(main())
