"""A cell: the coordinates of one measurement. Two numbers may be compared only if their cells say they may."""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.int64 import Int64

Task = Literal["train", "infer"]
Device = Literal["cpu", "gpu", "tpu"]
Feed = Literal["device", "host"]


class Cell(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """One workload x backend x device x task x batch x precision x compile mode x feed x device count."""

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

    @property
    def key(self) -> str:
        """The cell in one readable line: ``mlp/torch/cpu/train/b128/float32/eager/device/x1``."""
        return "/".join(
            (
                self.workload,
                self.backend,
                self.device,
                self.task,
                f"b{self.batch}",
                self.precision,
                self.compile_mode,
                self.feed,
                f"x{self.devices}",
            )
        )
