"""What a machine or a container does to a measurement: limits, neighbours, frequencies; each fine, or with a remedy.

Nothing here stops a run: `kit doctor` prints it, and a launch notes what disturbed it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from kit.devices.catalog import DEVICES
from kit.fingerprint.container import container
from kit.fingerprint.machine_state import governors, turbo_switch
from kit.fingerprint.others_now import others_now
from kit.profile.identity import Facts
from kit.profile.reason import Reason, Value, reason

# Four workers of three frameworks, each with a network of the built-in suites, take about this.
MEMORY_B = 4 << 30
# A profile with its raw steps; and what torch.compile and XLA write while they compile.
DISK_B, TMP_B = 1 << 30, 1 << 30
# Docker's default of 64 MiB is too little for a data loader's worker processes.
SHM_B = 256 << 20
# Above this, stolen time shows in most rounds.
STEAL_PCT = 0.5
# A stamp by one of these costs a microsecond and more; the others cost tens of nanoseconds.
SLOW_CLOCKSOURCES = ("hpet", "acpi_pm", "refined-jiffies", "jiffies")
# proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
STEAL_FIELD = 7


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that bounds or disturbs measurements."""

    subject: str
    fine: bool
    what: Reason


class Machine(NamedTuple):
    """What is looked at."""

    cpus: Sequence[int]  # that this process may use
    threads: int  # that a framework gets for them
    root: Path  # where /proc, /sys and /dev are
    folder: Path  # where profiles go
    container: Facts

    def text(self, name: str) -> str | None:
        """Return what a file below the root holds; null where it is not there."""
        try:
            return (self.root / name).read_text().strip()
        except OSError:
            return None


def conditions(cpus: Sequence[int], threads: int, root: Path = Path("/"), folder: Path = Path()) -> list[Condition]:
    """Return every condition that can be checked here; for the arguments see `Machine`."""
    machine = Machine(cpus, threads, root, folder, container(root))
    checks = (_cpus, _memory, _folders, _clocks, _neighbors, _tools)
    return [condition for check in checks for condition in check(machine)]


def _condition(subject: str, fine: bool, codes: tuple[str, str], **values: Value) -> Condition:
    """Return a condition with the first code where it is fine, else the second."""
    return Condition(subject=subject, fine=fine, what=reason(codes[not fine], **values))


def _cpus(machine: Machine) -> Iterator[Condition]:
    cpus = len(machine.cpus)
    limit = machine.container.number("container.cpu_limit") or cpus
    codes = ("no_quota", "quota_in_container" if machine.container.text("container.engine") else "quota")
    yield _condition("CPU quota", limit >= cpus, codes, cpus=cpus, limit=limit, threads=machine.threads)
    lists = (machine.text(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in machine.cpus)
    # The CPUs of a core share a list, such as 0-1 or 0,4: its first number identifies the core.
    cores = sorted({int(re.split("[-,]", text)[0]) for text in lists if text is not None})
    codes, first = ("no_shared_cores", "shared_cores"), ",".join(map(str, cores))
    yield _condition("SMT", len(cores) in (0, cpus), codes, cpus=cpus, cores=len(cores), first=first)


def _memory(machine: Machine) -> Iterator[Condition]:
    free_b = psutil.virtual_memory().available
    free_b = min(free_b, machine.container.integer("container.memory_limit_b") or free_b)
    yield _condition("memory", free_b >= MEMORY_B, ("memory_free", "memory_small"), memory_b=free_b, needed_b=MEMORY_B)
    shm = machine.root / "dev/shm"
    if shm.is_dir():
        shm_b = shutil.disk_usage(shm).total
        yield _condition("shared memory", shm_b >= SHM_B, ("shm_enough", "shm_small"), shm_b=shm_b)


def _folders(machine: Machine) -> Iterator[Condition]:
    temporary, in_image = Path(tempfile.gettempdir()), machine.container.text("container.image") is not None
    for subject, folder, needed_b in (("profiles", machine.folder, DISK_B), ("temporary files", temporary, TMP_B)):
        free_b, where = shutil.disk_usage(folder).free, str(folder.resolve())
        if subject == "profiles" and in_image and folder.stat().st_dev == Path("/").stat().st_dev:
            yield Condition(subject=subject, fine=False, what=reason("folder_in_container", folder=where))
        elif not os.access(folder, os.W_OK):
            yield Condition(subject=subject, fine=False, what=reason("folder_read_only", folder=where))
        else:
            yield _condition(subject, free_b >= needed_b, ("disk_free", "disk_small"), folder=where, free_b=free_b)
    if os.statvfs(temporary).f_flag & os.ST_NOEXEC:
        yield Condition(subject="temporary files", fine=False, what=reason("tmp_noexec", folder=str(temporary)))


def _clocks(machine: Machine) -> Iterator[Condition]:
    cpu = machine.root / "sys/devices/system/cpu"
    names = governors(cpu)
    codes = ("governor_fixed" if names else "no_governor", "governor_varies")
    yield _condition("governor", names in ([], ["performance"]), codes, governor=" and ".join(names))
    if switch := turbo_switch(cpu):
        file, on = switch
        yield _condition("turbo", not on, ("turbo_off", "turbo_on"), switch=str(file))
    else:
        yield Condition(subject="turbo", fine=True, what=reason("no_turbo_switch"))
    source = machine.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source is not None:
        fine = source not in SLOW_CLOCKSOURCES
        yield _condition("clocksource", fine, ("clocksource_fast", "clocksource_slow"), source=source)


def _neighbors(machine: Machine) -> Iterator[Condition]:
    ticks = [int(word) for word in (machine.text("proc/stat") or "").partition("\n")[0].split()[1:]]
    if len(ticks) > STEAL_FIELD:
        steal_pct = 100 * ticks[STEAL_FIELD] / sum(ticks[: STEAL_FIELD + 1])
        yield _condition("steal", steal_pct < STEAL_PCT, ("steal_low", "steal_high"), steal_pct=steal_pct)
    others = others_now(machine.cpus, root=machine.root)
    what = others.reason if others.is_quiet else reason(f"{others.reason.code}_remedy", **others.reason.values)
    yield Condition(subject="other programs", fine=others.is_quiet, what=what)
    if machine.container.text("container.engine") is not None:
        # The kernel's own threads are seen in the host's PID namespace alone.
        is_host = machine.text("proc/2/comm") == "kthreadd"
        yield _condition("PID namespace", is_host, ("pid_namespace_host", "pid_namespace_own"))


def _tools(machine: Machine) -> Iterator[Condition]:
    compiler = next(filter(shutil.which, ("g++", "clang++", "c++")), None)
    yield _condition("C++ compiler", compiler is not None, ("compiler", "no_compiler"), name=compiler or "")
    for device in DEVICES.values():
        for subject, fine, what in device.conditions(machine.root):
            yield Condition(subject=subject, fine=fine, what=what)
