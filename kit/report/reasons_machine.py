"""Sentences for what the identity and the state of a machine do not show. Code -> template with the reason's values."""

from __future__ import annotations

MACHINE_REASONS: dict[str, str] = {
    "not_shown": "{source} does not show it",
    "interpreter_not_asked": "{python} could not be asked for its packages: {error}",
    "libc_not_named": "the C library does not name itself (musl does not)",
    "no_governor": "no cpufreq driver here (usual in a virtual machine): the host sets the governor",
    "no_turbo_switch": "neither intel_pstate/no_turbo nor cpufreq/boost is there (usual in a virtual machine)",
    "no_thermometer": "the kernel shows no CPU thermometer (usual in a virtual machine)",
    "state_not_as_expected": "not readable: {error}",
}
