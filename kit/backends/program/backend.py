"""A user's own program: a function of theirs makes a step, and this runs it as any other program's.

function(batch, device) ─► step, or {"step", "synchronize", "batches"} ─► first step: how is it waited for? ─► step …
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kit.backends.catalog import CATALOG
from kit.backends.entry import BackendError
from kit.backends.program.about import ENTRY
from kit.backends.program.results import CUDA, HOST, device_of, floats, kind_of, leaves, shapes, waits_for
from kit.backends.program.source import import_function
from kit.backends.protocol import Compilations, DeviceBatch, Output, Runnable, ThreadSetting
from kit.profile.cell import Cell
from kit.profile.reason import reason
from kit.profile.schema import ProgramSource

PARTS = ("step", "synchronize", "batches")
# No framework starts one operation in less: a step below it has done nothing, or nothing has been waited for.
STEP_LEAST_NS = 500


class OwnProgram(Runnable):
    """What a user's function has made: `kit.backends.protocol.Runnable`.

    Args:
        source: where the function is.
        cell: whose batch, device and, where the function takes it, task the function is told.

    Attributes:
        batches: what the steps take, without end.

    Raises:
        BackendError: the function cannot be called so, or made no step.
    """

    step: Callable[[DeviceBatch], Output]
    synchronize: Callable[[], None]

    def __init__(self, source: ProgramSource, cell: Cell) -> None:
        self._device = cell.device
        self._shapes: list[tuple[int, ...]] | None = None
        self._last: Output = None
        made = _made(source, cell)
        user_step: Callable[..., Output] = made["step"]
        self._call: Callable[[DeviceBatch], Output] = user_step if "batches" in made else lambda _: user_step()
        self.batches: Iterator[DeviceBatch] = _again(made["batches"]) if "batches" in made else repeat(None)
        waits_itself = "synchronize" in made
        self.step = self._call if waits_itself else self._kept_step
        self.synchronize = made["synchronize"] if waits_itself else self._first_wait

    def check(self, output: Output, step_ns: NDArray[np.int64]) -> None:
        """Look at what the last of some steps returned, and at their times, shape (steps,).

        Raises:
            BackendError: it lies on another device, is of another shape than the first step's, or took no time.
        """
        output_shapes = shapes(output)
        if self._shapes is None:
            self._check_device(output)
            self._shapes = output_shapes
        if output_shapes != self._shapes:
            raise BackendError(
                f"its first step returned {_shown(self._shapes)} and a later one {_shown(output_shapes)}, but all "
                "steps must do the same work; drop a smaller last batch, as DataLoader(…, drop_last=True) does"
            )
        if np.median(step_ns) < STEP_LEAST_NS:
            raise BackendError(
                f"a step takes {np.median(step_ns):.0f} ns, too short for any framework; "
                "let it run the model and return the result"
            )

    def _check_device(self, output: Output) -> None:
        places = {place for leaf in leaves(output) if (place := device_of(leaf)) not in (HOST, None)}
        if places and self._device not in places:
            raise BackendError(
                f"its step's result is on {', '.join(sorted(map(str, places)))}, but {self._device} is measured; "
                "put the model and batches on the device that the function gets"
            )

    def to_host(self, output: Output) -> NDArray[np.float32]:
        """Copy the floating-point numbers of what a step returned; shape (elements,)."""
        return floats(output)

    def compilations(self) -> Compilations:
        """Not known: a program may compile as it likes."""
        return Compilations(count=None, reason=reason("own_program"))

    def _kept_step(self, batch: DeviceBatch) -> Output:
        self._last = self._call(batch)
        return self._last

    def _first_wait(self) -> None:
        """Find out how steps are waited for, and wait for the first; each later one does no more than it must."""
        try:
            waits = waits_for(self._last)
        except TypeError as error:
            raise BackendError(
                f"its step returned {error}, which Steadykit cannot wait for; return the loss or the output on its "
                'device, or add "synchronize"'
            ) from None
        if not waits:
            self.step, self.synchronize = self._call, _nothing
            return

        def synchronize() -> None:
            for wait in waits:
                wait(self._last)

        synchronize()
        self.synchronize = synchronize


class ProgramBackend:
    """What members ask of a backend that builds no workload: the frameworks that the program has imported."""

    name = ENTRY.name

    @property
    def version(self) -> str:
        """The frameworks that are imported by now, each with its version: "torch 2.13.0"."""
        frameworks = [entry.module for entry in CATALOG.values() if entry is not ENTRY and entry.module in sys.modules]
        if "tensorflow" in frameworks and "jax" in frameworks:
            frameworks.remove("jax")  # TensorFlow imports it, too, where it is installed
        return ", ".join(
            f"{name} {getattr(sys.modules[name], '__version__', 'unknown')}" for name in frameworks or [ENTRY.module]
        )

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set PyTorch's pools, where it is imported; others have read the variables that this process began with."""
        torch = sys.modules.get("torch")
        if torch is None:
            return ThreadSetting(None, reason("threads_by_environment"))
        if threads is not None:
            torch.set_num_threads(threads)
            with suppress(RuntimeError):  # refused once work has begun: the program's file may have
                torch.set_num_interop_threads(threads)
        return ThreadSetting(torch.get_num_threads(), None)

    def peak_memory_b(self, device: str) -> int | None:
        """Ask PyTorch, where it is imported; others tell their own devices' alone."""
        torch = sys.modules.get("torch")
        return int(torch.cuda.max_memory_allocated()) if torch is not None and device == CUDA else None

    def count(self, kind: str) -> int:  # noqa: ARG002
        """Return one of any kind: that the program has run on its device is seen on what its first step returns."""
        return 1


def _made(source: ProgramSource, cell: Cell) -> dict[str, Any]:
    """Call the user's function; return its parts, of which "step" is one."""
    function = import_function(source)
    given: dict[str, Any] = {"batch": cell.batch, "device": cell.device}
    if source.takes_task:
        given["task"] = cell.task
    signature = inspect.signature(function)
    try:
        signature.bind(**given)
    except TypeError:
        wanted = ", ".join(given)
        if inspect.isclass(function):
            raise BackendError(
                f"{source.function} is a class, but a user program is a function that returns a step; "
                f"define program({wanted}), see docs/how-to/own-model.md"
            ) from None
        raise BackendError(
            f"{source.function}{signature} does not accept {wanted}; write def {source.function}({wanted})"
        ) from None
    made = function(**given)
    parts = made if isinstance(made, dict) else {"step": made}
    for name, part in parts.items():
        if name not in PARTS:
            raise BackendError(f"{source.function} returned an unknown part {name!r}; choose from {', '.join(PARTS)}")
        if not (isinstance(part, Iterable) if name == "batches" else callable(part)):
            wanted = "an iterable" if name == "batches" else "a callable"
            raise BackendError(f"{source.function} returned {kind_of(part)} for {name}; return {wanted}")
    if "step" not in parts:
        raise BackendError(f"{source.function} returned no step; return a callable that runs one")
    return parts


def _again(batches: Iterable[DeviceBatch]) -> Iterator[DeviceBatch]:
    """Yield the batches over and over; what it costs to get one is in its step.

    Raises:
        BackendError: there is none (an iterator has none the second time), or the last is of another shape.
    """
    while True:
        iterator = iter(batches)
        try:
            last = first = next(iterator)
        except StopIteration:
            why = "its batches are empty, or can be iterated only once; return a list or another repeatable iterable"
            raise BackendError(why) from None
        yield first
        for last in iterator:
            yield last
        if (wanted := shapes(first)) != (last_shapes := shapes(last)):
            raise BackendError(
                f"its first batch is {_shown(wanted)} and its last {_shown(last_shapes)}; drop an incomplete batch, "
                "as DataLoader(…, drop_last=True) does"
            )


def _shown(of_leaves: list[tuple[int, ...]]) -> str:
    return " and ".join(map(str, of_leaves)) or "nothing"


def _nothing() -> None:
    """What was returned is done."""


BACKEND = ProgramBackend()
