"""What the bits of NVML's clocks event reasons say: which of them slow a GPU below the clock it was asked for.

Bits and meanings: NVML reference, NvmlClocksEventReasons (once NvmlClocksThrottleReasons). Written here as numbers:
whoever reads a sample need not load NVML.
"""

from __future__ import annotations

SUFFIX = "clock_events"  # of the sensor's name, after "nvml.N."

SLOWING = {
    0x004: "software power cap",
    0x008: "hardware slowdown",  # to half the clock or less: heat, power brake, or power drawn too fast
    0x010: "sync boost",  # held down to the slowest GPU of its group
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
    0x200: "board limit",
    0x400: "reliability limit",
}
# Not slowed, but at the clock that was asked for: 0x001 idle (nothing runs, so no work waits), 0x002 applications
# clocks and 0x100 display clocks (a setting, the same in every launch; the state says it as its clock limit).
ASKED_FOR = 0x001 | 0x002 | 0x100


def slowing_reasons(mask: int) -> list[str]:
    """In words. A bit that the reference did not name when this was written is said by its number, not passed over."""
    bits = [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
    return [SLOWING.get(bit, f"unnamed reason {bit:#x}") for bit in bits if not bit & ASKED_FOR]
