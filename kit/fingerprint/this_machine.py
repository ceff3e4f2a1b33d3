"""The machine that this process runs on: processor and hypervisor as the system names them, and the container's limits.

    py-cpuinfo, a second in a process of its own ─► name, vendor ─┐
    the kernel's files ─► features, microcode, caches, cores ─────┴─► facts `cpu.…`
    lscpu ─► hypervisor

Where one of them is silent, another is asked. A container's limits are not the host's.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import cast

import psutil

from kit.environment import IMAGE, IMAGE_DIGEST
from kit.import_order import module_command
from kit.profile.facts import BARE_METAL, Facts, Values, cpus_listed
from kit.profile.fields import Reason, reason
from kit.sensors import cgroup
from kit.sensors.sources import fields, read_text

LSCPU_TIMEOUT_S = 10.0
# It takes one to two seconds: it counts the processor's ticks for one of them.
CPUINFO_TIMEOUT_S = 10.0
# A cache's name in sysfs -> py-cpuinfo's.
CPUINFO_CACHES = {"L1d": "l1_data_cache_size", "L1i": "l1_instruction_cache_size", "L2": "l2_cache_size"}
# What a hypervisor that hides the name shows in its place.
HIDDEN = "-"


class CpuInfo:
    """py-cpuinfo at work, in a process of its own: it runs machine code that it has assembled, and keeps a CPU busy."""

    def __init__(self) -> None:
        command = module_command(sys.executable, "cpuinfo")
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen([*command, "--json"], stdout=PIPE, stderr=DEVNULL, stdin=DEVNULL)

    def answer(self) -> dict[str, object]:
        """Wait, and return what it found; nothing where it is not installed, failed, or took too long."""
        if self._process is None:
            return {}
        with self._process:
            try:
                info = json.loads(self._process.communicate(timeout=CPUINFO_TIMEOUT_S)[0])
            except (subprocess.TimeoutExpired, ValueError):
                self._process.kill()
                return {}
        return info if isinstance(info, dict) else {}


def processor(reasons: dict[str, Reason], info: Mapping[str, object], root: Path = Path("/")) -> Values:
    """Return the facts ``cpu.…`` and the hypervisor. A fact that cannot be read is null, and `reasons` gets why.

    The hypervisor is BARE_METAL where there is none. x86 processors show their guests a CPUID bit, so its absence means
    bare metal; other architectures have no such bit.

    Args:
        reasons: gets them.
        info: what `CpuInfo` answered.
        root: where /proc and /sys are.
    """
    file, cpus = root / "proc/cpuinfo", root / "sys/devices/system/cpu"
    listed, named = fields(read_text(file).partition("\n\n")[0]), _lscpu()
    flags = listed.get("flags")
    # Features are the kernel's: py-cpuinfo adds CPUID's, under other names for the same (`rdrnd` beside `rdrand`).
    known = flags or listed.get("Features") or " ".join(map(str, cast("list[str]", info.get("flags", []))))
    facts: Values = {
        # Arm's kernels list numbers instead of names.
        "cpu.model": _first(info.get("brand_raw"), listed.get("model name"), named.get("Model name"))
        or platform.machine(),
        "cpu.vendor": _first(
            info.get("vendor_id_raw"), listed.get("vendor_id"), named.get("Vendor ID"), listed.get("CPU implementer")
        ),
        "cpu.architecture": platform.machine(),
        "cpu.cores_physical": psutil.cpu_count(logical=False),
        "cpu.cores_logical": psutil.cpu_count() or 1,
        "cpu.flags": " ".join(sorted(known.split())) or None,
        "cpu.microcode": listed.get("microcode"),
    }
    reasons |= {name: reason("not_shown", source=str(file)) for name, value in facts.items() if value is None}
    siblings = (cpus / f"cpu{cpu}/topology/thread_siblings_list" for cpu in os.sched_getaffinity(0))
    nodes = (cpus.parent / "node").glob("node[0-9]*/cpulist")
    lists: dict[str, Values] = {
        "cache": {f"{name}_b": size_b for name, size_b in (_cache_sizes_b(cpus) or _caches_of(info)).items()},
        "core": {str(index): text for index, text in enumerate(cpu_lists(siblings))},
        "node": {str(index): text for index, text in enumerate(cpu_lists(nodes))},
    }
    for kind, values in lists.items():
        facts |= {f"cpu.{kind}.{name}": value for name, value in values.items()}
        if not values:
            reasons[f"cpu.{kind}"] = reason("not_shown", source=str(cpus))
    hypervisor = named.get("Hypervisor vendor", "").lower() or (None if flags is None else "unnamed")
    if flags is not None and "hypervisor" not in flags.split():
        hypervisor = BARE_METAL
    if hypervisor is None:
        reasons["hypervisor"] = reason("not_shown", source="lscpu")
    return facts | {"hypervisor": hypervisor}


def _first(*names: object) -> str | None:
    """Return the first name that is one."""
    return next((name for name in names if isinstance(name, str) and name not in ("", HIDDEN)), None)


def _caches_of(info: Mapping[str, object]) -> dict[str, int]:
    """Return the sizes that CPUID gives; the third level's is not asked: on AMD's processors it is the second's."""
    sizes_b = {name: info.get(key) for name, key in CPUINFO_CACHES.items()}
    return {name: size_b for name, size_b in sizes_b.items() if isinstance(size_b, int) and size_b > 0}


def _lscpu() -> dict[str, str]:
    """Return what `lscpu` knows from CPUID and the firmware's tables; nothing if it is not installed or fails."""
    english = os.environ | {"LC_ALL": "C"}
    try:
        shown = subprocess.run(
            ["lscpu"], capture_output=True, text=True, check=True, timeout=LSCPU_TIMEOUT_S, env=english
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return fields(shown.stdout)


def cpu_lists(files: Iterable[Path]) -> list[str]:
    """Return the lists of CPUs, such as ``0-3,8``, that files hold, each once; without unreadable and empty files."""
    lists = {}
    for file in files:
        with suppress(OSError, ValueError):
            text = file.read_text().strip()
            lists[text] = cpus_listed(text)
    return sorted(lists, key=lambda text: lists[text])


def _cache_sizes_b(cpus: Path) -> dict[str, int]:
    """Return the size of each cache of the first CPU that can be read, by name: `L1d`, `L1i`, `L2`, `L3`."""
    sizes_b = {}
    for folder in sorted((cpus / "cpu0/cache").glob("index[0-9]*")):
        with suppress(OSError, ValueError):  # a virtual machine or an Arm kernel may show a cache without its size
            level, kind, size = ((folder / name).read_text().strip() for name in ("level", "type", "size"))
            letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
            sizes_b[f"L{level}{letter}"] = int(size.removesuffix("K")) * 1024  # the kernel writes them in KiB
    return sizes_b


def container(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> Facts:
    """Return the facts ``container.…``, from files that engines leave and the limits of this control group.

    Args:
        root: where /proc, /run, /sys and /.dockerenv are.
        environment: KIT_IMAGE and KIT_IMAGE_DIGEST name the image, which no engine shows inside.
    """
    if "KUBERNETES_SERVICE_HOST" in environment:
        engine = "kubernetes"
    elif (root / "run/.containerenv").exists():
        engine = "podman"
    elif (root / ".dockerenv").exists():
        engine = "docker"
    else:  # systemd's convention, which podman, lxc and systemd-nspawn follow
        engine = environment.get("container", "")
    return Facts(
        facts={
            "container.engine": engine or None,
            "container.cpu_limit": cgroup.cpu_limit(root),
            "container.memory_limit_b": cgroup.memory_limit_b(root),
            "container.image": environment.get(IMAGE) or None,
            "container.image_digest": environment.get(IMAGE_DIGEST) or None,
        }
    )
