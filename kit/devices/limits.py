"""Limits for other programs and for a device's power, which runs, comparisons and the audit share."""

from __future__ import annotations

from kit.profile.identity import Accelerator

# Others may take this fraction of the usable CPUs' time in a clean block. On quiet machines blocks show up to 6 % (99
# of 100), which is the resolution of the kernel's ticks and the system's own work. With 5 % one quiet cycle in twenty
# would be measured again; with 20 % intervals beside neighbors were no narrower, and less often right
# (docs/explanation/method.md).
OTHERS_MOST = 0.10
# NVML's limits are rounded to some milliwatts; nobody caps a GPU by less than a hundredth.
CAP_SHARE = 0.99
# A GPU that is slowed by its power cap draws nearly that power; NVML's readings scatter by some percent.
NEAR_CAP = 0.9
# If a GPU is slowed in a smaller percentage of readings or time, its clock is settling at the beginning of a block.
SLOWED_LEAST_PCT = 5.0


def is_capped(gpu: Accelerator) -> bool | None:
    """Whether the power cap is below the one after a reboot; None: NVML does not show both."""
    if gpu.power_cap_w is None or gpu.power_cap_default_w is None:
        return None
    return gpu.power_cap_w < CAP_SHARE * gpu.power_cap_default_w


def reaches_cap(power_max_w: float, cap_w: float) -> bool:
    """Whether a GPU's highest power shows that the cap slows it; the mean power of bursts would not show it."""
    return power_max_w >= NEAR_CAP * cap_w
