"""The contract of a backend: a framework that turns a workload into a running program.

backend.build(workload, cell, weights) ─► program
program.trace() ─► program.compile() ─► first step ─► step, step, step … ─► predict
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kit.backends.ranks import RankPlace
from kit.profile.cell import Cell
from kit.profile.launch import Compilations
from kit.profile.reason import Reason
from kit.workloads.data.batches import HostBatch
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload

__all__ = [
    "Backend",
    "Compilations",
    "DeviceBatch",
    "HostBatch",
    "Output",
    "Program",
    "Runnable",
    "Stepping",
    "ThreadSetting",
]

DeviceBatch: TypeAlias = Any  # whatever the framework keeps a batch in
Output: TypeAlias = Any  # a device handle: a loss or logits


class ThreadSetting(NamedTuple):
    """Compute threads as the framework reports them after being told."""

    reported: int | None
    reason: Reason | None  # why null


class Event(Protocol):
    """A time stamp on a device."""

    def elapsed_time(self, later: Event, /) -> float:
        """Return the milliseconds to a later one; both have come to pass."""


class Stepping(Protocol):
    """What a loop runs and times."""

    def step(self, batch: DeviceBatch, /) -> Output:
        """One optimizer update or one forward pass. Takes what `put` gave (feed "device") or a HostBatch (feed "host").

        Returns a device handle: the loss (train) or the logits (infer). Hides no device-to-host copy and does not wait.
        """

    def synchronize(self) -> None:
        """Wait until the last step is done on the device, and for nothing else."""


class Runnable(Stepping, Protocol):
    """A cell, running: what is asked of a program whatever it computes."""

    def trace(self) -> bool:
        """Trace only. False: this framework cannot tell tracing apart here, nothing was done."""
        return False

    def compile(self) -> bool:
        """Compile only, for the batch shape of the cell. False: it happens in the first step, nothing was done."""
        return False

    def to_host(self, output: Output) -> NDArray[np.float32]:
        """Copy what `step` returned: () for a loss, (batch, classes) for logits."""
        return np.array(output, np.float32)

    def device_event(self) -> Event | None:
        """Record a time stamp on the device, behind all that it has been given. None: the framework has none."""
        return None

    def settings(self) -> dict[str, str]:
        """Return what this framework was set to that decides arithmetic and kernels on its accelerator."""
        return {}

    def compilations(self) -> Compilations:
        """Ask the framework how often it has compiled or traced this program's step."""


class Program(Runnable, Protocol):
    """A workload, running. Built from initial weights, with the optimizer's state at zero."""

    def put(self, batch: HostBatch) -> DeviceBatch:
        """Copy one batch to the device and wait until it is there. What `step` takes under feed "device"."""

    def pin(self, batch: HostBatch) -> HostBatch:
        """Return a batch in the memory that the framework copies from fastest. What `step` takes under feed "host"."""
        return batch

    def predict(self, batch: HostBatch) -> NDArray[np.float32]:
        """Return the network's output for a batch, on the host, dropout off; the step is not compiled again for it."""

    def kernels(self) -> list[str]:
        """Return the framework's own names of what decides the speed of recurrent, attention and convolution layers.

        As found in what runs, in alphabetical order; called after a step, may make another one, and leaves the program
        good for nothing else. None: it does not tell.
        """
        return []


class Backend(Protocol):
    """One framework, imported with its module."""

    name: str  # as in cells
    version: str  # the framework's own

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set compute threads; None: leave them as they are. Called once, before anything runs on a device."""

    def join(self, ranks: RankPlace, kind: str, devices: int) -> None:
        """Prepare for programs of several devices: `devices` of a kind in this process, which is one of `ranks`.

        Called once, before `set_threads`, where a cell has several. `build` then builds the part of this process: its
        batches are its part of the cell's, and its gradients are averaged over all parts (`kit.backends.ranks`).
        """

    def count(self, kind: str) -> int:
        """Return how many devices of a kind of `kit.devices` the framework sees and this backend can use.

        It looks at no other kind: to look at a device may take it.
        """

    def share_gpu_memory(self, share: float) -> None:
        """Take no more than that share of a GPU's memory. Called once where a GPU is measured, before `set_threads`."""

    def peak_memory_b(self, device: str) -> int | None:
        """Return the most bytes that the framework's allocator has held on the device; None: it does not tell."""

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> Program:
        """Build the program: layers, loss, optimizer, initial weights on the device. Compiles nothing.

        Raises:
            BackendError: a layer has no translation.
        """
