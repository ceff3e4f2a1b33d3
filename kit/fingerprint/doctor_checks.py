"""What limits or disturbs measurements on this machine or in this container: each check passes, or names a remedy.

Nothing here stops a run; `kit doctor` prints it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from kit.devices import DEVICES
from kit.devices.device import Condition, condition
from kit.fingerprint.machine_state import governors, others_now, turbo_switch
from kit.fingerprint.this_machine import container
from kit.profile.facts import Facts
from kit.profile.fields import reason
from kit.sensors.sources import read_text

# Four workers of three frameworks, each with a network of the built-in suites, take about this.
MEMORY_B = 4 << 30
# A profile with its raw steps needs the first; what torch.compile and XLA write while they compile, the second.
DISK_B, TMP_B = 1 << 30, 1 << 30
# Docker's default of 64 MiB is too little for a data loader's worker processes.
SHM_B = 256 << 20
# Above this, stolen time shows in most rounds.
STEAL_PCT = 0.5
# A stamp by one of these costs a microsecond and more; the others cost tens of nanoseconds.
SLOW_CLOCKSOURCES = ("hpet", "acpi_pm", "refined-jiffies", "jiffies")
# The times of a CPU that add up to all; those of guests are in `user` and `nice`, too.
OF_CPU_TIME = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def conditions(
    cpus: Sequence[int], threads: int, others_most: float, root: Path = Path("/"), folder: Path = Path()
) -> Iterator[Condition]:
    """Yield every condition that can be checked here.

    Args:
        cpus: CPUs that this process can use.
        threads: threads that a framework gets for them.
        others_most: fraction of the CPUs' time that other programs may take.
        root: where /proc, /sys and /dev are.
        folder: where profiles go.
    """
    inside = container(root)
    yield from _processors(cpus, threads, root, inside)
    yield from _memory(root, inside)
    yield from _folders(folder, inside)
    yield from _clocks(root)
    yield from _neighbors(cpus, others_most, root, inside)
    compiler = next(filter(shutil.which, ("g++", "clang++", "c++")), "")
    yield condition("C++ compiler", bool(compiler), ("compiler", "no_compiler"), name=compiler)
    for device in DEVICES.values():
        yield from device.conditions(root)


def _processors(cpus: Sequence[int], threads: int, root: Path, inside: Facts) -> Iterator[Condition]:
    count = len(cpus)
    limit = inside.number("container.cpu_limit") or count
    codes = ("no_quota", "quota_in_container" if inside.text("container.engine") else "quota")
    yield condition("CPU quota", limit >= count, codes, cpus=count, limit=limit, threads=threads)
    lists = [read_text(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in cpus]
    # The CPUs of a core share a list, such as 0-1 or 0,4: its first number identifies the core.
    cores = sorted({int(re.split("[-,]", text)[0]) for text in lists if text})
    codes, first = ("no_shared_cores", "shared_cores"), ",".join(map(str, cores))
    yield condition("SMT", len(cores) in (0, count), codes, cpus=count, cores=len(cores), first=first)


def _memory(root: Path, inside: Facts) -> Iterator[Condition]:
    free_b = psutil.virtual_memory().available
    free_b = min(free_b, inside.integer("container.memory_limit_b") or free_b)
    yield condition("memory", free_b >= MEMORY_B, ("memory_free", "memory_small"), memory_b=free_b, needed_b=MEMORY_B)
    shm = root / "dev/shm"
    if shm.is_dir():
        shm_b = psutil.disk_usage(str(shm)).total
        yield condition("shared memory", shm_b >= SHM_B, ("shm_enough", "shm_small"), shm_b=shm_b)


def _folders(profiles: Path, inside: Facts) -> Iterator[Condition]:
    temporary = Path(tempfile.gettempdir())
    is_lost = inside.text("container.image") is not None and profiles.stat().st_dev == Path("/").stat().st_dev
    for subject, folder, needed_b in (("profiles", profiles, DISK_B), ("temporary files", temporary, TMP_B)):
        free_b, where = psutil.disk_usage(str(folder)).free, str(folder.resolve())
        if subject == "profiles" and is_lost:
            yield Condition(subject=subject, fine=False, what=reason("folder_in_container", folder=where))
        elif not os.access(folder, os.W_OK):
            yield Condition(subject=subject, fine=False, what=reason("folder_read_only", folder=where))
        else:
            yield condition(subject, free_b >= needed_b, ("disk_free", "disk_small"), folder=where, free_b=free_b)
    if os.statvfs(temporary).f_flag & os.ST_NOEXEC:
        yield Condition(subject="temporary files", fine=False, what=reason("tmp_noexec", folder=str(temporary)))


def _clocks(root: Path) -> Iterator[Condition]:
    cpu = root / "sys/devices/system/cpu"
    names = governors(cpu)
    codes = ("governor_fixed" if names else "no_governor", "governor_varies")
    yield condition("governor", names in ([], ["performance"]), codes, governor=" and ".join(names))
    if switch := turbo_switch(cpu):
        file, on = switch
        yield condition("turbo", not on, ("turbo_off", "turbo_on"), switch=str(file))
    else:
        yield Condition(subject="turbo", fine=True, what=reason("no_turbo_switch"))
    if source := read_text(root / "sys/devices/system/clocksource/clocksource0/current_clocksource"):
        codes = ("clocksource_fast", "clocksource_slow")
        yield condition("clocksource", source not in SLOW_CLOCKSOURCES, codes, source=source)


def _neighbors(cpus: Sequence[int], others_most: float, root: Path, inside: Facts) -> Iterator[Condition]:
    times = psutil.cpu_times()
    if total_s := sum(getattr(times, name) for name in OF_CPU_TIME):
        steal_pct = 100 * times.steal / total_s
        yield condition("steal", steal_pct < STEAL_PCT, ("steal_low", "steal_high"), steal_pct=steal_pct)
    others = others_now(cpus, others_most, root=root)
    code = others.reason.code if others.is_quiet else f"{others.reason.code}_remedy"
    yield condition("other programs", others.is_quiet, (code, code), **others.reason.values)
    if inside.text("container.engine") is not None:
        # The kernel's own threads are seen in the host's PID namespace alone.
        is_host = psutil.pid_exists(2) and psutil.Process(2).name() == "kthreadd"
        yield condition("PID namespace", is_host, ("pid_namespace_host", "pid_namespace_own"))
