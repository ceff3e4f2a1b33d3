"""Whose settings decide speed on an accelerator: the kit's, which are the same in all frameworks, or each one's own."""

from __future__ import annotations

import os

from kit.environment import FRAMEWORK_DEFAULTS
from kit.profile.cell import FRAMEWORKS_OWN, Cell

# Beats what a program asks of cuBLAS and cuDNN.
TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"


def keeps_defaults() -> bool:
    """Whether nothing is set that has a default of the framework."""
    return os.environ.get(FRAMEWORK_DEFAULTS, "") not in ("", "0")


def keeps_precision(cell: Cell) -> bool:
    """Whether the framework decides what float32 is computed in."""
    return cell.device != "cpu" and cell.precision == FRAMEWORKS_OWN


def tf32_setting(value: object) -> str:
    """Return a switch of float32's precision on a GPU, with what beats it in NVIDIA's libraries."""
    override = os.environ.get(TF32_OVERRIDE)
    return str(value) if override is None else f"{value} ({TF32_OVERRIDE}={override})"


def variables_set(*names: str) -> dict[str, str]:
    """Return FRAMEWORK_DEFAULTS and others, those that are set."""
    return {name: value for name in (FRAMEWORK_DEFAULTS, *names) if (value := os.environ.get(name))}
