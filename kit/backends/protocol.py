"""The contract of a backend: a framework that turns a workload into a running program.

backend.build(workload, cell, weights) ─► program
program.trace() ─► program.compile() ─► first step ─► step, step, step … ─► predict

A cell of several devices may have several processes, its ranks: each computes its part of every batch, and gradients
are averaged over all. The runner asks every rank for the same; while they compute, their framework's own collectives
join them.
"""

from __future__ import annotations

import math
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import psutil
from numpy.typing import NDArray

from kit.environment import NO_ALL_REDUCE
from kit.profile.cell import Cell
from kit.profile.fields import Reason, reason
from kit.profile.schema import Compilations, WhatRan
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload

DeviceBatch: TypeAlias = Any  # whatever the framework keeps a batch in
StepOutput: TypeAlias = Any  # a device handle: a loss or logits
# The variables of gloo and NCCL that name the interface by which ranks reach each other.
GLOO_INTERFACE, NCCL_INTERFACE = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
# The runner stops ranks while other workers run, and no framework may take that for their end. The runner itself sees
# an end at once.
HEARTBEAT_S = 7 * 24 * 3600
# Loops, products, and calls into a library such as oneDNN or cuDNN.
XLA_KERNELS = re.compile(r"\s(while|dot|convolution)\(|custom_call_target=\"([^\"]+)\"")
# CUDA's runtime begins its names with cuda, its driver with cu: cudaGraphLaunch, cuLaunchKernelEx, cuMemsetD8Async.
GRAPH_LAUNCH = re.compile(r"cu(da)?GraphLaunch")
WORK_LAUNCH = re.compile(r"cu(da)?(LaunchKernel|LaunchCooperativeKernel|Memcpy|Memset)")


class ThreadSetting(NamedTuple):
    """Compute threads, as the framework reports them."""

    reported: int | None
    reason: Reason | None  # why null


class RankGroup(NamedTuple):
    """The ranks of a cell, and which of them this process is."""

    number: int  # of this process, from 0
    addresses: tuple[str, ...]  # host:port of each rank, for the framework's own rendezvous
    folder: str = ""  # that all ranks share and other users cannot enter; empty: they are on several hosts
    held: socket.socket | None = None  # has this rank's port until the framework binds it; None: nobody else is there

    @property
    def size(self) -> int:
        """Return the number of ranks."""
        return len(self.addresses)

    @property
    def host(self) -> str:
        """Return this rank's address without its port."""
        return self.addresses[self.number].rpartition(":")[0]

    def give_port(self) -> None:
        """Give the port to the framework, which binds it next."""
        if self.held is not None:
            self.held.close()

    def interface(self) -> str | None:
        """Return the name of the interface that has this rank's address; None if there is none."""
        named = psutil.net_if_addrs().items()
        return next((name for name, known in named if any(entry.address == self.host for entry in known)), None)

    def keep_to_interface(self) -> None:
        """Let the collectives of this process use only that interface.

        Over several hosts the user's choice is kept, and NCCL's own choice: it may use several networks at a time.
        """
        if (name := self.interface()) is None:
            return
        if self.folder:
            os.environ |= {GLOO_INTERFACE: name, NCCL_INTERFACE: name}
        else:
            os.environ.setdefault(GLOO_INTERFACE, name)


ALONE = RankGroup(0, ("",))


def up_to(most: int, arrays: Iterable[Any]) -> Iterator[Any]:
    """Yield those arrays of any framework that are small enough for all together to have at most so many numbers."""
    for array in arrays:
        if (size := math.prod(map(int, array.shape))) <= most:
            most -= size
            yield array


def all_reduces() -> bool:
    """Return whether gradients are averaged over ranks and devices."""
    return os.environ.get(NO_ALL_REDUCE, "") in ("", "0")


class DeviceStamp(Protocol):
    """A time stamp on a device."""

    def elapsed_time(self, later: DeviceStamp, /) -> float:
        """Return the milliseconds to a later event; the device has reached both."""


class Stepping(Protocol):
    """What a loop runs and times."""

    def step(self, batch: DeviceBatch, /) -> StepOutput:
        """Make one optimizer update or one forward pass.

        It takes what `put` returned (feed "device") or a HostBatch (feed "host"), and returns a device handle: the loss
        (train) or the logits (infer). It hides no copy to the host, and does not wait.
        """

    def synchronize(self) -> None:
        """Wait until the last step is done on the device, and for nothing else."""


class Runnable(Stepping, Protocol):
    """A program that runs, whatever it computes."""

    def trace(self) -> bool:
        """Trace only. False: this framework has no separate tracing, and nothing was done."""
        return False

    def compile(self) -> bool:
        """Compile only, for the batch shape of the cell. False: the first step compiles, and nothing was done."""
        return False

    def to_host(self, output: StepOutput) -> NDArray[np.float32]:
        """Copy what `step` returned: () for a loss, (batch, classes) for logits."""
        return np.array(output, np.float32)

    def device_event(self) -> DeviceStamp | None:
        """Record a time stamp on the device, behind all work that it has. None: the framework has none."""
        return None

    def settings(self) -> dict[str, str]:
        """Return the framework's settings that decide arithmetic and kernels on its accelerator."""
        return {}

    def compilations(self) -> Compilations:
        """Return how often the framework has compiled or traced this program's step until now."""

    def what_ran(self, batch: DeviceBatch) -> WhatRan:  # noqa: ARG002
        """Return what a step with this batch runs, by the framework's own profiler. It may make the step to see it."""
        return WhatRan(reason=reason("no_profiler"))

    def keep(self) -> bool:
        """Copy to the host what `restore` needs, before the first step of training that is no fit. False: nothing."""
        return False

    def restore(self) -> bool:
        """Put weights and optimizer state back to what they were at first, at other addresses, and wait for that.

        Nothing is traced or compiled for it. False: this program has nothing to put back, or does not know how.
        """
        return False

    def state(self, most: int) -> Iterable[NDArray[Any]]:  # noqa: ARG002
        """Return weights and optimizer state on the host, one by one, up to `most` numbers; nothing if unknown."""
        return ()


class Program(Runnable, Protocol):
    """A network that runs. It is built with initial weights and with the optimizer's state at zero."""

    def put(self, batch: HostBatch) -> DeviceBatch:
        """Copy one batch to the device and wait until it is there. `step` takes it under feed "device"."""

    def pin(self, batch: HostBatch) -> HostBatch:
        """Return a batch in the memory that the framework copies fastest. `step` takes it under feed "host"."""
        return batch

    def predict(self, batch: HostBatch) -> NDArray[np.float32]:
        """Return the network's output for a batch, on the host, without dropout. The step is not compiled again."""

    def kernels(self) -> list[str]:
        """Return the framework's names of what decides the speed of recurrent, attention and convolution layers.

        The names are those of what runs, in alphabetical order. The call comes after a step, may make another, and
        leaves the program unusable. Without names from the framework the list is empty.
        """
        return []


class Backend(Protocol):
    """One framework, imported with its module."""

    name: str  # as in cells
    version: str  # the framework's own

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set compute threads, before anything runs on a device; None leaves them. Return how many there are now.

        It is called once before programs are built, and with None after the blocks of each.
        """

    def join(self, ranks: RankGroup, kind: str, devices: int) -> None:
        """Prepare this process, one of `ranks`, for programs that run on `devices` of a kind in it.

        Called once, before `set_threads`, if a cell has several devices. `build` then builds this process's part: its
        batches are a part of the cell's, and gradients are averaged over all parts (`RankGroup`). A framework
        binds its rank's address after `ranks.give_port`; until then nobody else has the port.
        """

    def count(self, kind: str) -> int:
        """Return how many devices of a kind of `kit.devices` the framework sees and this backend can use.

        It looks at no other kind, because some frameworks take a device by looking at it.
        """

    def share_gpu_memory(self, fraction: float) -> None:
        """Take at most this fraction of a GPU's memory. Called once, before `set_threads`, if a GPU is measured."""

    def peak_memory_b(self, device: str) -> int | None:
        """Return the most bytes that the framework's allocator has held on the device; None: it does not say."""

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> Program:
        """Build the program: layers, loss, optimizer, initial weights on the device. Compiles nothing.

        Raises:
            BackendError: a layer has no translation.
        """


class Launches(NamedTuple):
    """Calls of CUDA's runtime or driver in a step that gave the GPU work."""

    launches: int | None = None  # kernels, copies and graphs; null: the profiler showed no call
    graphs: int | None = None  # of these, replays of captured graphs


def launches_among(names: Mapping[str, int]) -> Launches:
    """Count those calls among the events of a profiler, by their names as CUPTI has them."""
    graphs = sum(count for name, count in names.items() if GRAPH_LAUNCH.match(name))
    launches = graphs + sum(count for name, count in names.items() if WORK_LAUNCH.match(name))
    return Launches(launches, graphs) if launches else Launches()


def kernel_ops(text: str) -> list[str]:
    """Return the operations that decide the speed of a program that XLA compiled, each once, in alphabetical order.

    Args:
        text: the optimized HLO module.
    """
    return sorted({operation or target for operation, target in XLA_KERNELS.findall(text)})
