"""A user program: a function of the user makes a step, and Steadykit runs it like the step of a network.

function(batch, device) ─► step, or {"step", "batches", "synchronize", "reset"} ─► first step: how to wait? ─► step …

This file imports no framework: what a step returned, where it is and how to wait for it is asked of the frameworks that
the program has imported.
"""

from __future__ import annotations

import linecache
import math
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.backends.entry import BackendError
from kit.backends.program.about import ENTRY
from kit.backends.program.frameworks import framework_of, made_by, threads_of, versions
from kit.backends.program.held_arrays import arrays_held_by
from kit.backends.program.program_call import refused_call
from kit.backends.program.program_module import program_module
from kit.backends.program.proof import ProgramCompilations, what_ran
from kit.backends.program.result_kinds import dense_parts, how_to_run, shape_of
from kit.backends.protocol import DeviceBatch, Runnable, StepOutput, ThreadSetting, up_to
from kit.profile.cell import Cell
from kit.profile.fields import Reason, reason
from kit.profile.program_source import ProgramSource, file_sha256
from kit.profile.schema import Compilations, WhatRan

PARTS = ("step", "synchronize", "batches", "tokens", "finite", "reset")
# No framework starts an operation in less time. A faster step did nothing, or nobody waited for it.
STEP_LEAST_NS = 500
# Folders of Python, of installed packages and of Steadykit: code in them is not the user's.
LIBRARIES = tuple(
    f"{folder}{os.sep}"
    for folder in (*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), Path(__file__).parents[2])
)
# An environment may be reached by a link, under another name than its interpreter knows.
INSTALLED = re.compile(r"/(?:site|dist)-packages/")
Wait = Callable[[Any], None]  # takes what the step returned
LeafShape = tuple[int | None, ...]

# The device of NumPy arrays and numbers: they are complete.
HOST = "host"
CUDA = "gpu"
_KINDS = {"cuda": CUDA, "rocm": CUDA}
# TensorFlow writes "/job:localhost/replica:0/task:0/device:GPU:0".
_TF_DEVICE = re.compile(r"device:([A-Za-z]+)")
# The call that waits until a device has made what a step returned.
_WAITS: dict[str, Wait] = {
    "jax": lambda result: sys.modules["jax"].block_until_ready(result),  # noqa: PLW0108 - it may not be imported
    "torch": lambda _: sys.modules["torch"].cuda.synchronize(),
    "tensorflow": lambda _: sys.modules["tensorflow"].test.experimental.sync_devices(),
}


def _wait_for_cpu(_: object) -> None:
    """Wait for all that TensorFlow has put into the queue of this thread.

    It takes 2 µs where nothing waits; `sync_devices`, the public call, takes 15 to 80 µs.
    """
    try:
        sys.modules["tensorflow.python.eager.context"].context().executor.wait()
    except (KeyError, AttributeError):
        _WAITS["tensorflow"](None)


class MadeWith(NamedTuple):
    """What made the result of a step."""

    version: str  # "torch 2.13.0"
    threads: ThreadSetting


class UserProgram(Runnable):
    """What a user's function made: `kit.backends.protocol.Runnable`.

    Args:
        source: where the function is.
        cell: the function gets its batch, its device and, if it takes one, its task.

    Attributes:
        batches: what the steps take, without end.
        tokens: that a step handles; None: the program does not say.
        must_be_finite: what a step returns; False: the program says that infinities and NaN belong to it.
        unread: the types of what `to_host` could not copy.

    Raises:
        BackendError: the function does not take these arguments, or made no step.
    """

    step: Callable[[DeviceBatch], StepOutput]
    synchronize: Callable[[], None]

    def __init__(self, source: ProgramSource, cell: Cell) -> None:
        self._made_by(lambda: _parts(source, cell), cell.device)

    def _made_by(self, make: Callable[[], dict[str, Any]], device: str) -> None:
        self._compiled = ProgramCompilations()
        self._compiled.begin()
        parts = make()
        self._compiled.end()
        user_step: Callable[..., StepOutput] = parts["step"]
        self.tokens: int | None = parts.get("tokens")
        self._user_step = user_step
        self._reset: Callable[[], object] | None = parts.get("reset")
        self.must_be_finite: bool = parts.get("finite", True)
        self.unread: set[str] = set()
        self._device = device
        self._shapes: list[LeafShape] | None = None  # of the first step's result
        self._batch_shapes: list[LeafShape] = []  # of the first batch
        self._frameworks: set[str] = set()  # of the first step's result
        self._is_complete = False  # when a step returns, so that nothing waits for it
        self._output: StepOutput = None
        self._call: Callable[[DeviceBatch], StepOutput] = user_step if "batches" in parts else lambda _: user_step()
        self.batches: Iterator[DeviceBatch] = _repeated(parts["batches"]) if "batches" in parts else repeat(None)
        if "synchronize" in parts:
            self.step, self.synchronize = self._call, parts["synchronize"]
        else:
            self.step, self.synchronize = self._remembered_step, self._first_wait

    def begin(self) -> None:
        """Prepare to make steps, outside of their times."""
        self._compiled.begin()

    def check(self, output: StepOutput, step_ns: NDArray[np.int64]) -> None:
        """Check what the last of some steps returned, and their times, shape (steps,).

        Raises:
            BackendError: the output is on another device, or differs in shape from the first, or took no time, or
                nobody waited for it.
        """
        self._compiled.end()
        output_shapes = shapes(output)
        if self._shapes is None:
            _refuse_lazy(output)
            self._shapes = output_shapes
            self._frameworks = {name for leaf in leaves(output) if (name := framework_of(leaf)) is not None}
            devices = {device for leaf in leaves(output) if (device := device_of(leaf)) not in (HOST, None)}
            if devices and self._device not in devices:
                raise BackendError(
                    f"its step's result is on {', '.join(sorted(map(str, devices)))}, but {self._device} is measured; "
                    "put the model and batches on the device that the function gets"
                )
        if output_shapes != self._shapes:
            raise BackendError(
                f"its first step returned {_joined(self._shapes)} and a later one {_joined(output_shapes)}, but all "
                f"steps must do the same work; {_remedy(self._shapes, output_shapes)}"
            )
        if self._is_complete and waits_for(output):
            raise BackendError(
                "what its first step returned was complete, and what a later one returned is not, so nobody waited for "
                "it; switch asynchronous execution on before the first step, in the function"
            )
        if np.median(step_ns) < STEP_LEAST_NS:
            raise BackendError(
                f"a step takes {np.median(step_ns):.0f} ns, too short for any framework; "
                "let it run the model and return the result"
            )

    def to_host(self, output: StepOutput) -> NDArray[np.float32]:
        """Copy the floating-point numbers of what a step returned; shape (elements,)."""
        numbers, self.unread = floats(output)
        return numbers

    def why_unchecked(self) -> Reason | None:
        """Return why it is not known, after `to_host`, whether a step's result is finite; None where it is."""
        if not self.must_be_finite:
            return reason("output_need_not_be_finite")
        return reason("output_not_read", kinds=", ".join(sorted(self.unread))) if self.unread else None

    def checked_batches(self) -> Iterator[DeviceBatch]:
        """Yield the next batches, each of the first one's shapes: for steps whose times do not count.

        Raises:
            BackendError: a batch has others.
        """
        for batch in self.batches:
            if batch is not None:
                self._batch_shapes = self._batch_shapes or shapes(batch)
                _check_batch(self._batch_shapes, batch)
            yield batch

    def compilations(self) -> Compilations:
        """Return what its frameworks compiled for it."""
        return self._compiled.counted()

    def what_ran(self, batch: DeviceBatch) -> WhatRan:
        """Return what the profiler of its framework sees of one or two more steps."""
        return what_ran(self, batch, self._frameworks)

    def restore(self) -> bool:
        """Let the program put back what its steps have changed, if it can. The lead-in waits for what that started."""
        if self._reset is not None:
            self._reset()
        return self._reset is not None

    def state(self, most: int) -> Iterator[NDArray[Any]]:
        """Return the floating-point arrays that the step holds: weights, optimizer state, perhaps batches."""
        arrays = (array for array in arrays_held_by(self._user_step, LIBRARIES) if is_dense_float(array))
        for array in up_to(most, arrays):
            with suppress(Exception):  # without numbers: of PyTorch's meta device, or donated by JAX
                yield on_host(array)

    def made_with(self, output: StepOutput) -> MadeWith:
        """Return the frameworks whose results a step returned, with their versions, and their threads now."""
        modules = made_by(leaves(output))
        return MadeWith(versions(modules), threads_of(modules))

    def _remembered_step(self, batch: DeviceBatch) -> StepOutput:
        self._output = self._call(batch)
        return self._output

    def _first_wait(self) -> None:
        """Wait for the first step, and choose how to wait for later ones: each does no more than it must."""
        _refuse_lazy(self._output)
        try:
            waits = waits_for(self._output)
        except TypeError as error:
            raise BackendError(
                f"its step returned {error}, which Steadykit cannot wait for; return the loss or the output on its "
                'device, or add "synchronize"'
            ) from None
        if not waits:  # what the step returns is complete, so nothing needs to remember it
            self._is_complete = True
            self.step, self.synchronize = self._call, lambda: None
            return

        def synchronize() -> None:
            for wait in waits:
                wait(self._output)

        synchronize()
        self.synchronize = synchronize


class ProgramBackend:
    """The backend of user programs: it answers for the frameworks that the program has imported."""

    name = ENTRY.name

    @property
    def version(self) -> str:
        """The imported frameworks, each with its version, until a program's result shows which of them made it."""
        return versions(made_by([]))

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set PyTorch's pools if it is imported; the others read their variables when this process began."""
        torch = sys.modules.get("torch")
        if torch is None:
            return ThreadSetting(None, reason("threads_by_environment"))
        if threads is not None:
            torch.set_num_threads(threads)
            with suppress(RuntimeError):  # PyTorch refuses once work has begun, perhaps in the program's file
                torch.set_num_interop_threads(threads)
        return ThreadSetting(torch.get_num_threads(), None)

    def peak_memory_b(self, device: str) -> int | None:
        """Ask PyTorch if it is imported; the other frameworks do not report it."""
        torch = sys.modules.get("torch")
        return int(torch.cuda.max_memory_allocated()) if torch is not None and device == CUDA else None

    def count(self, kind: str) -> int:  # noqa: ARG002
        """Return 1 for every kind: the result of the first step shows whether the program ran on its device."""
        return 1


def import_function(source: ProgramSource) -> Callable[..., Any]:
    """Import the program's file, once in a process, and return its function. Exceptions of the file pass.

    Raises:
        BackendError: the file has changed since the run was planned, or has no such function.
    """
    module = program_module(source)
    if file_sha256(module.__file__ or "") != source.sha256:
        raise BackendError(f"{module.__file__} differs from {source.path} at the start of the run; start a new run")
    function = getattr(module, source.function, None)
    if not callable(function):
        raise BackendError(f"{source.path} has no function {source.function!r}; define one that takes batch and device")
    return function  # type: ignore[no-any-return]


def line_in(source: ProgramSource, error: BaseException) -> tuple[str, int] | None:
    """Return the last line of the user's own code that the exception passed, and its file; None if it passed none.

    Own is what lies in no library: the program, its neighbors, the script that sent it, or cells of a notebook, whose
    sources are known, though they are no files.
    """

    def is_own(name: str) -> bool:
        if Path(name).exists():
            return name == source.path or not (name.startswith(LIBRARIES) or INSTALLED.search(name))
        return name in linecache.cache and name.startswith(("/", "<ipython"))  # others are made by libraries

    frames = traceback.extract_tb(error.__traceback__)
    return next(((frame.filename, frame.lineno or 0) for frame in reversed(frames) if is_own(frame.filename)), None)


def defined_at(source: ProgramSource, error: BaseException) -> tuple[str, int] | None:
    """Return the file and the line in which the program's function begins, for an exception that passed no own line.

    None where that is not known, or where Steadykit itself raised.
    """
    raised_in = [frame.filename for frame in traceback.extract_tb(error.__traceback__)][-1:]
    if not raised_in or (raised_in[0] != __file__ and raised_in[0].startswith(LIBRARIES[-1])):
        return None
    with suppress(Exception):  # of the file, or of a command, which has no function
        code = getattr(import_function(source), "__code__", None)
        return None if code is None else (code.co_filename, code.co_firstlineno)
    return None


def _parts(source: ProgramSource, cell: Cell) -> dict[str, Any]:
    """Call the user's function and return its parts, one of them "step"."""
    function = import_function(source)
    arguments: dict[str, Any] = {"batch": cell.batch, "device": cell.device}
    if source.takes_task:
        arguments["task"] = cell.task
    if (why := refused_call(source.function, function, arguments)) is not None:
        raise BackendError(why)
    made = function(**arguments)
    parts = made if isinstance(made, dict) else {"step": made}
    for name, part in parts.items():
        if name not in PARTS:
            raise BackendError(f"{source.function} returned an unknown part {name!r}; choose from {', '.join(PARTS)}")
        if name == "tokens":
            if type(part) is not int or part < 1:
                raise BackendError(
                    f"{source.function} returned {part!r} for tokens; return how many a step handles, such as 4096"
                )
        elif name == "finite":
            if type(part) is not bool:
                raise BackendError(
                    f"{source.function} returned {part!r} for finite; return False if infinities and NaN belong to "
                    "what a step returns"
                )
        elif not (isinstance(part, Iterable) if name == "batches" else callable(part)):
            wanted = "an iterable" if name == "batches" else "a callable"
            raise BackendError(f"{source.function} returned {kind_of(part)} for {name}; return {wanted}")
    if "step" not in parts:
        raise BackendError(f"{source.function} returned no step; return a callable that runs one")
    return parts


def _refuse_lazy(output: StepOutput) -> None:
    """Raise BackendError where a step returned something whose work has not run."""
    for leaf in leaves(output):
        if framework_of(leaf) is None and (remedy := how_to_run(leaf)) is not None:
            raise BackendError(f"its step returned {kind_of(leaf)}, whose work has not run; {remedy}")


def _repeated(batches: Iterable[DeviceBatch]) -> Iterator[DeviceBatch]:
    """Yield the batches over and over. A step's time includes the time to get its batch.

    Raises:
        BackendError: there is no batch (an iterator has none the second time), or one has another shape: in a list any,
            of others the last.
    """
    if isinstance(batches, list | tuple) and batches:
        wanted = shapes(batches[0])
        for batch in batches:
            _check_batch(wanted, batch)
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
        _check_batch(shapes(first), last)


def _check_batch(wanted: list[LeafShape], batch: DeviceBatch) -> None:
    """Raise BackendError where a batch has other shapes than the first."""
    if (others := shapes(batch)) != wanted:
        raise BackendError(
            f"its first batch is {_joined(wanted)} and another {_joined(others)}, but all steps must do the same work; "
            f"{_remedy(wanted, others)}"
        )


def _joined(leaf_shapes: list[LeafShape]) -> str:
    return " and ".join(map(str, leaf_shapes)) or "nothing"


def _remedy(first: list[LeafShape], other: list[LeafShape]) -> str:
    """Return what to do about batches, or results, of two shapes."""
    pairs = list(zip(first, other, strict=False))
    is_cut = len(first) == len(other) and all(
        len(whole) == len(cut) and whole[1:] == cut[1:] and (whole[:1] == cut[:1] or (cut[0] or 0) < (whole[0] or 0))
        for whole, cut in pairs
    )
    if is_cut:
        return "drop a smaller last batch, as DataLoader(…, drop_last=True) does"
    return "pad what varies to one shape, or measure each shape as a program of its own"


def leaves(result: Any) -> list[Any]:  # noqa: ANN401 - whatever a user's step returns
    """Return what a tree of dicts, lists, tuples and their subclasses holds; of other trees what JAX knows of them.

    What a container is must not depend on JAX: another program may import it, and it takes an unknown dict for a leaf.
    """
    return [part for leaf in _leaves(result) for part in dense_parts(leaf) or [leaf]]


def _leaves(result: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield what the tree holds; a sparse, ragged, nested, indexed or masked array is one leaf."""
    if isinstance(result, Mapping | list | tuple):
        for part in result.values() if isinstance(result, Mapping) else result:
            yield from _leaves(part)
    elif isinstance(result, Iterator):
        yield result  # JAX warns of them
    elif result is not None:
        jax = sys.modules.get("jax")
        parts = [result] if jax is None else jax.tree.leaves(result)
        if any(part is result for part in parts):
            yield result
        else:
            for part in parts:
                yield from _leaves(part)


def shapes(result: Any) -> list[LeafShape]:  # noqa: ANN401
    """Return the shape of each leaf; a leaf that has none counts as a number, ()."""
    return [shape_of(leaf) for leaf in _leaves(result)]


def device_of(leaf: Any) -> str | None:  # noqa: ANN401
    """Return "cpu", "gpu", "tpu" or another device's own name; HOST for NumPy and numbers; None for no array."""
    if isinstance(leaf, np.ndarray | np.generic | int | float):
        return HOST
    match framework_of(leaf):
        case "jax":
            kind = next(iter(leaf.devices())).platform
        case "torch":
            kind = leaf.device.type
        case "tensorflow":
            named = _TF_DEVICE.search(leaf.device)
            kind = named[1].lower() if named else "cpu"
        case _:
            return None
    return _KINDS.get(kind, str(kind))


def kind_of(value: object) -> str:
    """Return the name of a value's type."""
    return "None" if value is None else type(value).__name__


def waits_for(result: Any) -> set[Wait]:  # noqa: ANN401
    """Return the calls that wait until devices have made the result; none if it is already complete.

    On a CPU an operation of PyTorch returns when it is done, and so does one of TensorFlow unless the program has
    switched its synchronous execution off; one of JAX does not.

    Raises:
        TypeError: Steadykit cannot wait for what the message names.
    """
    result_leaves, waits = leaves(result), set[Wait]()
    if not result_leaves:
        raise TypeError(kind_of(result))
    for leaf in result_leaves:
        device, framework = device_of(leaf), framework_of(leaf)
        if device == HOST or (device == "cpu" and framework == "torch"):
            continue
        if device == "cpu" and framework == "tensorflow":
            # Its call may return before it is done.
            if not sys.modules["tensorflow"].config.experimental.get_synchronous_execution():
                waits.add(_wait_for_cpu)
            continue
        if framework is None or (framework == "torch" and device != CUDA):
            raise TypeError(f"{kind_of(leaf)} on {device}" if device else kind_of(leaf))
        waits.add(_WAITS[framework])
    return waits


def floats(result: Any) -> tuple[NDArray[np.float32], set[str]]:  # noqa: ANN401
    """Copy all floating-point leaves to the host, shape (elements,); return the types of those that cannot be, too."""
    arrays, unread = [np.empty(0, np.float32)], set()
    for leaf in leaves(result):
        is_array = device_of(leaf) is not None and "float" in str(getattr(leaf, "dtype", ""))
        if not (is_array or isinstance(leaf, float)):
            continue
        try:
            on_host = leaf.detach().float().cpu() if framework_of(leaf) == "torch" else leaf
            arrays.append(np.ravel(np.asarray(on_host, np.float32)))
        except Exception:  # of its framework, whatever it is
            unread.add(type(leaf).__name__)
    return np.concatenate(arrays), unread


def is_dense_float(array: Any) -> bool:  # noqa: ANN401
    """Return whether an array has floating-point numbers, in this process, in one piece."""
    try:
        math.prod(map(int, array.shape))  # a nested tensor and a lazy parameter have none
        is_whole = getattr(array, "is_fully_addressable", True) and not getattr(array, "is_sparse", False)
        return is_whole and "float" in str(array.dtype)
    except Exception:  # of its framework
        return False


def on_host(array: Any) -> NDArray[Any]:  # noqa: ANN401
    """Copy an array of any framework. PyTorch gives NumPy no bfloat16; in float32 such numbers stay what they are."""
    if framework_of(array) != "torch":
        return np.asarray(array)
    array = array.detach().cpu()
    return np.asarray(array.float() if "bfloat16" in str(array.dtype) else array)


BACKEND = ProgramBackend()
