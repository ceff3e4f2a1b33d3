"""The processor as the operating system names it, and what it runs on top of: bare metal, or which hypervisor."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from kit.profile.identity import Values, cpus_listed
from kit.profile.reason import Reason, reason
from kit.sensors.frequency import CPU_ROOT, CPUINFO

LSCPU_TIMEOUT_S = 10.0


def processor(reasons: dict[str, Reason], cpuinfo: Path = CPUINFO, cpu_root: Path = CPU_ROOT) -> Values:
    """Return the facts ``cpu.…``; what is not readable here is null, with the reason in `reasons`."""
    listed = kernel_fields(cpuinfo)
    # Arm's kernels list numbers instead of names.
    cpuid = {} if {"model name", "vendor_id"} <= listed.keys() else asked_cpuinfo()
    facts: Values = {
        "cpu.model": listed.get("model name") or cpuid.get("brand_raw") or platform.processor() or platform.machine(),
        "cpu.vendor": listed.get("vendor_id") or cpuid.get("vendor_id_raw") or listed.get("CPU implementer"),
        "cpu.architecture": platform.machine(),
        "cpu.cores_physical": psutil.cpu_count(logical=False),
        "cpu.cores_logical": psutil.cpu_count() or 1,
        "cpu.flags": " ".join(sorted((listed.get("flags") or listed.get("Features", "")).split())) or None,
        "cpu.microcode": listed.get("microcode"),
    }
    reasons |= {name: reason("not_shown", source=str(cpuinfo)) for name, value in facts.items() if value is None}
    siblings = (cpu_root / f"cpu{cpu}/topology/thread_siblings_list" for cpu in os.sched_getaffinity(0))
    nodes = (cpu_root.parent / "node").glob("node[0-9]*/cpulist")
    lists: dict[str, Values] = {
        "cache": {f"{name}_b": size for name, size in cache_sizes(cpu_root).items()},
        "core": {str(index): text for index, text in enumerate(cpu_lists(siblings))},
        "node": {str(index): text for index, text in enumerate(cpu_lists(nodes))},
    }
    for kind, values in lists.items():
        facts |= {f"cpu.{kind}.{name}": value for name, value in values.items()}
        if not values:
            reasons[f"cpu.{kind}"] = reason("not_shown", source=str(cpu_root))
    return facts


def asked_cpuinfo() -> dict[str, Any]:
    """Return what py-cpuinfo finds; empty where it fails. It runs CPUID in child processes and takes about a second."""
    try:
        import cpuinfo

        return dict(cpuinfo.get_cpu_info())
    except Exception:
        return {}


def kernel_fields(cpuinfo: Path) -> dict[str, str]:
    """Return the fields of the first processor in /proc/cpuinfo; empty where there is none."""
    try:
        return fields(cpuinfo.read_text().split("\n\n", 1)[0])
    except OSError:
        return {}


def cache_sizes(cpu_root: Path) -> dict[str, int]:
    """Return the bytes of each cache that the first CPU sees: `L1d`, `L1i`, `L2`, `L3`; those that can be read."""
    sizes = {}
    for folder in sorted((cpu_root / "cpu0/cache").glob("index[0-9]*")):
        with suppress(OSError, ValueError):  # a virtual machine or an Arm kernel may show a cache without its size
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
            letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
            sizes[f"L{level}{letter}"] = int(size.removesuffix("K")) * 1024  # the kernel writes them in KiB
    return sizes


def cpu_lists(files: Iterable[Path]) -> list[str]:
    """Return the CPUs that files list, as ``0-3,8``, each list once; without those that are unreadable or empty."""
    lists = {}
    for file in files:
        with suppress(OSError, ValueError):
            text = file.read_text().strip()
            lists[text] = cpus_listed(text)
    return sorted(lists, key=lambda text: lists[text])


def hypervisor(reasons: dict[str, Reason], cpuinfo: Path = CPUINFO) -> str | None:
    """Return the hypervisor's name; "none" on bare metal; None, with why in `reasons`, where it is unknown.

    x86 processors show their guests a CPUID bit, so its absence means bare metal; other architectures have no such bit.
    """
    flags = kernel_fields(cpuinfo).get("flags")
    if flags is not None and "hypervisor" not in flags.split():
        return "none"
    named = lscpu().get("Hypervisor vendor", "").lower()
    if not named and flags is None:
        reasons["hypervisor"] = reason("not_shown", source="lscpu")
    return named or (None if flags is None else "unnamed")


def lscpu() -> dict[str, str]:
    """Return what `lscpu` knows of CPUID and of firmware's tables; empty where it is not there or fails."""
    try:
        shown = subprocess.run(
            ["lscpu"], capture_output=True, text=True, check=True, timeout=LSCPU_TIMEOUT_S, env={"LC_ALL": "C"}
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return fields(shown)


def fields(text: str) -> dict[str, str]:
    """Return the lines "name: value" of a text."""
    return {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}
