"""The processor as the operating system names it."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
from pathlib import Path
from typing import Any

import psutil

from kit.profile.identity import Cpu

CPU_ROOT = Path("/sys/devices/system/cpu")
CPUINFO = Path("/proc/cpuinfo")
_SIZE_SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@functools.cache
def asked_cpuinfo() -> dict[str, Any]:
    """What py-cpuinfo finds. It runs CPUID in child processes and takes about a second: asked once per process.

    Empty where it fails; the kernel's own /proc/cpuinfo then has to do.
    """
    try:
        import cpuinfo

        return dict(cpuinfo.get_cpu_info())
    except Exception:
        return {}


def processor(reasons: dict[str, str], cpuinfo: Path = CPUINFO, cpu_root: Path = CPU_ROOT) -> Cpu:
    """Describe the processor; what is not readable here is null, with why in `reasons`."""
    asked = asked_cpuinfo()
    listed = kernel_fields(cpuinfo)
    flags = listed.get("flags") or listed.get("Features") or " ".join(asked.get("flags", []))
    caches = cache_sizes(cpu_root)
    cpu = Cpu(
        model=asked.get("brand_raw") or listed.get("model name") or platform.processor() or platform.machine(),
        vendor=asked.get("vendor_id_raw") or listed.get("vendor_id") or listed.get("CPU implementer"),
        architecture=platform.machine(),
        cores_physical=psutil.cpu_count(logical=False),
        cores_logical=psutil.cpu_count() or os.cpu_count() or 1,
        flags_sha256=hashlib.sha256(" ".join(sorted(flags.split())).encode()).hexdigest() if flags else None,
        microcode=listed.get("microcode"),
        caches=caches,
    )
    silent = {
        "vendor": (cpu.vendor, f"neither py-cpuinfo nor {cpuinfo} names the vendor"),
        "cores_physical": (cpu.cores_physical, "the kernel shows no core topology"),
        "flags_sha256": (cpu.flags_sha256, f"{cpuinfo} lists no flags"),
        "microcode": (cpu.microcode, f"{cpuinfo} names no microcode version"),
        "caches": (cpu.caches or None, f"{cpu_root}/cpu0/cache is not there"),
    }
    reasons.update({f"cpu.{name}": why for name, (value, why) in silent.items() if value is None})
    return cpu


def kernel_fields(cpuinfo: Path = CPUINFO) -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo; empty where there is none."""
    try:
        first = cpuinfo.read_text().split("\n\n", 1)[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def cache_sizes(cpu_root: Path = CPU_ROOT) -> dict[str, int]:
    """Bytes of each cache that the first CPU sees: `L1d`, `L1i`, `L2`, `L3`."""
    sizes = {}
    for folder in sorted((cpu_root / "cpu0/cache").glob("index[0-9]*")):
        try:
            level, kind, size = (
                (folder / "level").read_text().strip(),
                (folder / "type").read_text().strip(),
                (folder / "size").read_text().strip(),
            )
        except OSError:
            continue
        found = re.fullmatch(r"(\d+)([KMG]?)", size)
        if found:
            letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
            sizes[f"L{level}{letter}"] = int(found.group(1)) * _SIZE_SUFFIX.get(found.group(2), 1)
    return sizes
