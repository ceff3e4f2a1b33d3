"""A cell: the coordinates of one measurement. Two numbers may be compared only if their cells say they may."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from kit.environment import NO_ALL_REDUCE
from kit.profile.fields import Batch, Name, Parameter, Percent, ThreadCount, VariantName

# "train", "infer" and "decode" are steps, the last of one token of each sample; "fit" is whole epochs over the training
# split, scored at the end.
Task = Literal["train", "infer", "decode", "fit"]


class TaskTraits(NamedTuple):
    """What tells cells of one task from those of another, wherever they are measured, compared or shown."""

    title: str
    trains: bool  # on the training split; if not, it predicts samples of the test split
    # Cells take turns in blocks. If not, each runs by itself from its begin to its end, in stretches of unlike lengths:
    # a round of it is clean or not as a whole, its step is the mean of all, and it is judged by its whole time.
    in_blocks: bool
    energy: Literal["steady", "fit"]  # kind of the joules that are its own
    judged: str  # metric that a verdict on its time is about; empty: the one that was asked for


TASKS: dict[Task, TaskTraits] = {
    "train": TaskTraits("training", True, True, "steady", ""),
    "infer": TaskTraits("inference", False, True, "steady", ""),
    "decode": TaskTraits("decoding", False, True, "steady", ""),
    "fit": TaskTraits("fit", True, False, "fit", "fit_total_ns"),
}
Feed = Literal["device", "host", "own"]

DEFAULT_VARIANT = "default"
# Stands for the value of an environment variable of which only the name is recorded.
NOT_RECORDED = "<not recorded>"
# Precision, compile mode and feed of a user program: what it does in its steps is unknown.
OWN = "own"
# A precision: float32 arrays on an accelerator, multiplied as the framework does it by default.
FRAMEWORKS_OWN = "default"


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One workload x backend x device x task x batch x precision x compile mode x feed x device count x variant."""

    workload: Name
    parameters: dict[Name, Parameter] = {}  # all of the workload's own, as {"layers": 2, "units": 64}
    backend: Name
    device: Name  # a kind that `kit.devices` has
    task: Task
    batch: Batch  # samples per step
    # "float32" | "bfloat16" | "tf32" | "default": an accelerator's float32 as the framework has it | "own"
    precision: Name
    compile_mode: Name  # the backend's own word: "graph" | "xla" | "eager" | "compile" | "jit" | "own"
    # "device": batches resident before the step; "host": handed over from NumPy in each step, as the framework does it.
    # To an accelerator that is a copy; on a CPU TensorFlow copies, PyTorch and JAX share the memory.
    feed: Feed
    devices: ThreadCount = msgspec.field(default=1, name="device_count")
    threads: ThreadCount | None = None  # compute threads; null: one for each usable CPU
    variant: VariantName = DEFAULT_VARIANT

    def __hash__(self) -> int:
        # Many profiles have the same cells: what follows from cells alone is looked up.
        return hash(_coordinates(self))

    @property
    def traits(self) -> TaskTraits:
        """What its task makes of it."""
        return TASKS[self.task]

    @property
    def in_blocks(self) -> bool:
        """Whether it takes turns in blocks."""
        return TASKS[self.task].in_blocks

    @property
    def key(self) -> str:
        """The cell in one readable line: ``mlp/torch/cpu/train/b128/float32/eager/device/x1[/t1][/variant]``.

        A workload with parameters names them: ``dblstm(layers=2,units=64)/…``.
        """
        return self.key_without(())

    def key_without(self, axes: Collection[str]) -> str:
        """Return the key with `*` instead of these axes."""
        # A profile's JSON sorts its keys, too.
        return _key(tuple(sorted(self.parameters.items())), _coordinates(self), frozenset(axes))

    def value(self, axis: str) -> str | int | None:
        """Return the coordinate on an axis: one of AXES, or a parameter; null for one that the workload has not."""
        return self.parameters.get(axis) if axis not in AXES else getattr(self, axis)


# What a suite may compare, and the parameters of its workloads.
AXES = tuple(name for name in Cell.__struct_fields__ if name != "parameters")
# In a cell's key: what precedes a number, and values that are not shown.
PREFIXES = {"batch": "b", "devices": "x", "threads": "t"}
LEFT_OUT = {"threads": None, "variant": DEFAULT_VARIANT}
KEY_PARTS = [(axis, PREFIXES.get(axis, ""), LEFT_OUT.get(axis, "")) for axis in AXES]
_coordinates = attrgetter(*AXES)
# What else an axis is called, in options and in tables.
OTHER_NAMES = {"program": "workload", "network": "workload", "framework": "backend", "dtype": "precision"}


def axis_named(name: str, known: Collection[str] = AXES) -> str:
    """Return the axis that is called so, if it is among the `known` ones; else the name as it is."""
    written = name.replace("-", "_")
    axis = OTHER_NAMES.get(written, written)
    return axis if name not in known and axis in known else name


@lru_cache(maxsize=4096)  # many profiles have the same cells
def _key(parameters: tuple[tuple[str, int], ...], coordinates: tuple[object, ...], axes: Collection[str]) -> str:
    """Return the key of a cell with these coordinates, with `*` instead of `axes`."""
    named = ",".join(f"{name}={'*' if name in axes else value}" for name, value in parameters)
    fields = [
        "*" if axis in axes else f"{prefix}{value}"
        for (axis, prefix, left_out), value in zip(KEY_PARTS, coordinates, strict=True)
        if axis in axes or value != left_out
    ]
    if named and fields[0] != "*":
        fields[0] += f"({named})"
    return "/".join(fields)


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A named difference that is not an axis: another interpreter, environment variables, an injected delay."""

    name: VariantName
    python: str | None = None  # the interpreter of its workers; null: the backend's
    image: str | None = None  # its workers run in containers of this Docker image; null: on this machine as it is
    image_digest: str | None = None  # of the image's configuration, sha256:…, as it was when the run began
    env: dict[str, str] = {}  # set for its workers
    slowdown_pct: Percent = 0.0  # injected into every step of its workers, as the suite selftest does; timed separately

    @property
    def names_code(self) -> bool:
        """Whether its workers run what the kit does not have: another interpreter, an image, or what variables load."""
        return bool(self.python or self.image or self.env)

    @property
    def all_reduces(self) -> bool:
        """Whether its devices average their gradients."""
        return self.env.get(NO_ALL_REDUCE, "") in ("", "0")
