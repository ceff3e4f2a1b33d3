"""What differs between runs and what that may do to their numbers, and the rows that it may explain."""

from __future__ import annotations

from kit.compare.rows import Comparison
from kit.report.answer import answer
from kit.report.plain import one_line
from kit.report.words import RenderOptions, mismatch, note_lines

# Of what does not explain itself.
EFFECTS = {
    "data": "Steps were fed with other samples: accuracy and losses are another experiment's.",
    "epochs": "The time of a fit is that of its epochs.",
    "arithmetic": "From the same weights and batches they compute other losses: they are not the same program.",
    "threads": "Work is divided otherwise: one number of threads says little of another.",
    "memory_b": "Another size usually means other modules or channels, and so other bandwidth.",
    "hypervisor": "A hypervisor takes time for itself and other guests, and hides clocks and power.",
    "cpu_flags": "Libraries choose kernels by the instructions they find.",
    "microcode": "Microcode brings mitigations, some of which cost time.",
    "cpu_limit": "Beyond its quota a process is throttled: steps stretch and scatter.",
    "memory_limit_b": "Near its limit a container reclaims page cache or is killed.",
    "container": "Another engine may mean other limits, file systems and security filters.",
    "kernel": "Scheduling, memory management and mitigations are the kernel's.",
    "package": "What is measured, or what its arithmetic runs through.",
    "program": "The file of a user's own program was another: it may compute something else.",
    "python": "What a framework does between kernels it does in Python: short steps feel it most.",
    "environment": "Libraries read it to choose kernels, threads or allocators.",
    "plan": "Shorter rounds scatter more; a shorter warm-up may not be enough.",
    "governor": "It decides how fast clocks rise and how high.",
    "turbo": "With turbo, clocks follow temperature and load.",
    "power_cap_w": "A lower cap lowers the clocks as soon as the load reaches it.",
    "load_1min": "What else ran took CPUs, caches and memory bandwidth.",
    "temperature_c": "A warm processor reaches its thermal limit sooner.",
    "stolen_pct": "The hypervisor gave that time to others.",
    "waiting_pct": "Tasks were ready and found no free CPU.",
}


def render(comparison: Comparison, _: RenderOptions) -> str:
    """Return the rows' answers, then every difference, gravest first, with its effect."""
    lines = [
        one_line(f"{' · '.join(group.title)}: {row.name}: {answer(row)}")
        for group in comparison.groups
        for row in group.rows
        if not row.is_baseline
    ]
    lines.append("")
    for one in comparison.mismatches:
        lines.append(f"{one.grade:<6} {mismatch(one)}")
        lines += [f"       {EFFECTS[one.kind]}"] if one.kind in EFFECTS else []
    if not comparison.mismatches:
        lines.append("As far as recorded, machine, software and settings are the same.")
    return "\n".join([*lines, "", *note_lines(comparison)]).rstrip() + "\n"
