"""Limits that a run keeps to and its comparison and audit judge by: of other programs, and of a device's power."""

from __future__ import annotations

from kit.profile.identity import Accelerator

# Others may take this fraction of the usable CPUs' time in a clean block. On quiet machines blocks show up to 6 % (99
# of 100), which is the resolution of the kernel's ticks and the system's own work. With 5 % one quiet cycle in twenty
# would be measured again; with 20 % intervals beside neighbors were no narrower, and less often right
# (docs/explanation/method.md).
OTHERS_MOST = 0.10
# NVML's limits are rounded to some milliwatts; nobody caps a board by less than a hundredth.
CAP_SHARE = 0.99
# A board that is held back by its power draws nearly what it may; NVML's readings scatter by some percent.
NEAR_CAP = 0.9
# Of readings or of the time: below, it is a clock that settles at the begin of a block.
SLOWED_LEAST_PCT = 5.0


def is_capped(board: Accelerator) -> bool | None:
    """Whether a board may draw less than it may after a reboot; None: it does not tell."""
    if board.power_cap_w is None or board.power_cap_default_w is None:
        return None
    return board.power_cap_w < CAP_SHARE * board.power_cap_default_w


def reaches_cap(power_max_w: float, cap_w: float) -> bool:
    """Whether a board's highest power shows that its cap is what holds it; the mean of bursts would not."""
    return power_max_w >= NEAR_CAP * cap_w
