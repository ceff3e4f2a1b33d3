"""A cell: the coordinates of one measurement. Two numbers may be compared only if their cells say they may."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Task = Literal["train", "infer"]
Device = Literal["cpu", "gpu", "tpu"]
Feed = Literal["device", "host"]

# JSON has no largest integer, arithmetic has: a longer one overflows wherever it is divided. 2^63 ns are 292 years.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Positive = Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]

DEFAULT_VARIANT = "default"


class Cell(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """One workload x backend x device x task x batch x precision x compile mode x feed x device count x variant."""

    workload: str
    backend: str
    device: Device
    task: Task
    batch: Int64  # samples per step
    precision: str  # "float32"
    compile_mode: str  # the backend's own word: "graph" | "xla" | "eager" | "compile" | "jit"
    # "device": batches resident before the step; "host": handed over from NumPy in each step, as the framework does it.
    # To an accelerator that is a copy; on a CPU TensorFlow copies, PyTorch and JAX share the memory.
    feed: Feed
    devices: Int64 = 1
    variant: str = DEFAULT_VARIANT

    @property
    def key(self) -> str:
        """The cell in one readable line: ``mlp/torch/cpu/train/b128/float32/eager/device/x1[/variant]``."""
        fields = [
            self.workload,
            self.backend,
            self.device,
            self.task,
            f"b{self.batch}",
            self.precision,
            self.compile_mode,
            self.feed,
            f"x{self.devices}",
        ]
        return "/".join(fields if self.variant == DEFAULT_VARIANT else [*fields, self.variant])


# What a suite may compare, and what cells may share a process over.
AXES = ("workload", "backend", "device", "task", "batch", "precision", "compile_mode", "feed", "devices", "variant")


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """A named difference that is not an axis: another interpreter, environment variables, a planted slow-down."""

    name: str
    python: str | None = None  # the interpreter of its members; null: the backend's
    env: dict[str, str] = {}  # set for its members
    slowdown_pct: float = 0.0  # planted in every step of its members, as `kit selftest` does; stamped by itself
