"""What a machine or a container does to a measurement: limits, neighbours, frequencies; each fine, or with a remedy.

Nothing here stops a run: `kit doctor` tells, and what did disturb a launch is marked in it.
"""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from kit.fingerprint.container import container
from kit.profile.identity import Container
from kit.profile.reason import Reason, Value, reason
from kit.sensors import nvml, tpu

# Four members of three frameworks, each with a network of the built-in suites, take about this.
MEMORY_B = 4 << 30
# A profile with its raw steps; and what torch.compile and XLA write while they compile.
DISK_B, TMP_B = 1 << 30, 1 << 30
# Docker's default of 64 MiB is too little for a data loader's worker processes.
SHM_B = 256 << 20
# Above this, stolen or taken time shows in most rounds.
STEAL_PCT = 0.5
LOAD_SHARE = 0.25
# A stamp by one of these costs a microsecond and more; the others cost tens of nanoseconds.
SLOW_CLOCKSOURCES = ("hpet", "acpi_pm", "refined-jiffies", "jiffies")
# proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
STEAL_FIELD = 7
UNLIMITED_B = 1 << 62


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that bounds or disturbs measurements."""

    subject: str
    fine: bool
    what: Reason


class Place(NamedTuple):
    """Where conditions are looked for."""

    root: Path = Path("/")
    folder: Path = Path()  # profiles go here

    def text(self, name: str) -> str | None:
        """Return what a file below the root holds; null where it is not there."""
        try:
            return (self.root / name).read_text().strip()
        except OSError:
            return None


def conditions(cpus: Sequence[int], threads: int, place: Place = Place()) -> list[Condition]:  # noqa: B008 - immutable
    """Return every condition that can be told here.

    Args:
        cpus: that this process may use.
        threads: that a framework gets for them.
        place: where /proc, /sys and /dev are, and where profiles go.
    """
    inside = container(place.root)
    return [
        *_cpus(cpus, threads, inside, place),
        *_memory(inside, place),
        *_folders(inside, place),
        *_frequency(place),
        *_clocksource(place),
        *_neighbours(cpus, inside, place),
        *_compiling(),
        *_gpus(),
        *_locked_memory(place),
    ]


def _told(subject: str, fine: bool, codes: tuple[str, str], **values: Value) -> Condition:
    """Return a condition with the first code where it is fine, else the second."""
    return Condition(subject=subject, fine=fine, what=reason(codes[not fine], **values))


def _cpus(cpus: Sequence[int], threads: int, inside: Container, place: Place) -> Iterator[Condition]:
    limit = len(cpus) if inside.cpu_limit is None else inside.cpu_limit
    codes = ("no_quota", "quota_in_container" if inside.engine else "quota")
    yield _told("CPU quota", limit >= len(cpus), codes, cpus=len(cpus), limit=limit, threads=threads)
    lists = (place.text(f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in cpus)
    cores = sorted({tuple(_listed(text)) for text in lists if text is not None})
    first = ",".join(str(core[0]) for core in cores)
    fine = len(cores) in (0, len(cpus))
    yield _told("SMT", fine, ("no_shared_cores", "shared_cores"), cpus=len(cpus), cores=len(cores), first=first)


def _memory(inside: Container, place: Place) -> Iterator[Condition]:
    free_b = min(psutil.virtual_memory().available, inside.memory_limit_b or UNLIMITED_B)
    yield _told("memory", free_b >= MEMORY_B, ("memory_free", "memory_small"), memory_b=free_b, needed_b=MEMORY_B)
    shm = place.root / "dev/shm"
    if shm.is_dir():
        shm_b = shutil.disk_usage(shm).total
        yield _told("shared memory", shm_b >= SHM_B, ("shm_enough", "shm_small"), shm_b=shm_b)


def _folders(inside: Container, place: Place) -> Iterator[Condition]:
    temporary = Path(tempfile.gettempdir())
    for subject, folder, needed_b in (("profiles", place.folder, DISK_B), ("temporary files", temporary, TMP_B)):
        free_b, where = shutil.disk_usage(folder).free, str(folder.resolve())
        stays = inside.image is not None and folder.stat().st_dev == Path("/").stat().st_dev
        if stays and subject == "profiles":
            yield Condition(subject=subject, fine=False, what=reason("folder_in_container", folder=where))
        elif os.access(folder, os.W_OK):
            yield _told(subject, free_b >= needed_b, ("disk_free", "disk_small"), folder=where, free_b=free_b)
        else:
            yield Condition(subject=subject, fine=False, what=reason("folder_read_only", folder=where))
    if os.statvfs(temporary).f_flag & os.ST_NOEXEC:
        yield Condition(subject="temporary files", fine=False, what=reason("tmp_noexec", folder=str(temporary)))


def _frequency(place: Place) -> Iterator[Condition]:
    cpu = place.root / "sys/devices/system/cpu"
    governors = {file.read_text().strip() for file in cpu.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    codes = ("governor_fixed" if governors else "no_governor", "governor_varies")
    yield _told("governor", governors <= {"performance"}, codes, governor=" and ".join(sorted(governors)))
    for switch, on in ((cpu / "intel_pstate/no_turbo", "0"), (cpu / "cpufreq/boost", "1")):
        if switch.exists():
            fine = switch.read_text().strip() != on
            yield _told("turbo", fine, ("turbo_off", "turbo_on"), switch=str(switch))
            return
    yield Condition(subject="turbo", fine=True, what=reason("no_turbo_switch"))


def _clocksource(place: Place) -> Iterator[Condition]:
    source = place.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    if source is not None:
        fine = source not in SLOW_CLOCKSOURCES
        yield _told("clocksource", fine, ("clocksource_fast", "clocksource_slow"), source=source)


def _neighbours(cpus: Sequence[int], inside: Container, place: Place) -> Iterator[Condition]:
    ticks = [int(word) for word in (place.text("proc/stat") or "").partition("\n")[0].split()[1:]]
    if len(ticks) > STEAL_FIELD:
        steal_pct = 100 * ticks[STEAL_FIELD] / sum(ticks[: STEAL_FIELD + 1])
        yield _told("steal", steal_pct < STEAL_PCT, ("steal_low", "steal_high"), steal_pct=steal_pct)
    load = place.text("proc/loadavg")
    if load is not None:
        load_1min = float(load.split()[0])
        fine = load_1min < LOAD_SHARE * len(cpus)
        yield _told("load", fine, ("load_low", "load_high"), load_1min=load_1min, cpus=len(cpus))
    if inside.engine is not None:
        # The kernel's own threads are seen from the host's PID namespace alone.
        of_host = place.text("proc/2/comm") == "kthreadd"
        yield _told("PID namespace", of_host, ("pid_namespace_host", "pid_namespace_own"))


def _compiling() -> Iterator[Condition]:
    compiler = next((name for name in ("g++", "clang++", "c++") if shutil.which(name)), None)
    yield _told("C++ compiler", compiler is not None, ("compiler", "no_compiler"), name=compiler or "")


def _gpus() -> Iterator[Condition]:
    """Look at each board's modes; NVML_ERROR_NOT_SUPPORTED: it has no such mode."""
    boards = nvml.open_boards()
    if isinstance(boards, Reason):
        return
    library, handles = boards
    modes = (
        ("compute mode", "nvmlDeviceGetComputeMode", library.NVML_COMPUTEMODE_DEFAULT, ("gpu_shared", "gpu_exclusive")),
        ("MIG", "nvmlDeviceGetMigMode", library.NVML_DEVICE_MIG_DISABLE, ("mig_off", "mig_on")),
        ("persistence", "nvmlDeviceGetPersistenceMode", library.NVML_FEATURE_ENABLED, ("persists", "persists_not")),
    )
    for index, handle in enumerate(handles):
        for subject, call, wanted, codes in modes:
            with suppress(library.NVMLError):
                value = getattr(library, call)(handle)
                # Of MIG: the mode now, and after the next reset.
                now = value[0] if isinstance(value, list | tuple) else value
                yield _told(f"GPU {index} {subject}", now == wanted, codes, gpu=index)
    library.nvmlShutdown()


def _locked_memory(place: Place) -> Iterator[Condition]:
    if tpu.devices(place.root / "dev", place.root / "sys/bus/pci/devices"):
        fine = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY
        yield _told("locked memory", fine, ("memlock_unlimited", "memlock_small"))


def _listed(text: str) -> list[int]:
    """Return the numbers of a kernel list such as ``0-1,4``."""
    bounds = [part.partition("-") for part in text.split(",")]
    return [number for first, _, last in bounds for number in range(int(first), int(last or first) + 1)]
