"""NVIDIA GPUs, as NVML lists them; what it does not list may still be here, and a framework may see it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import product, takewhile
from pathlib import Path
from typing import Any

from kit.devices.device import DEV, Condition, Device, InContainer
from kit.errors import KitError
from kit.profile.identity import Accelerator
from kit.profile.reason import Reason, reason
from kit.sensors import nvml

# CUDA programming guide, "CUDA environment variables": the GPUs that a process sees, by index, UUID or its beginning.
VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
BY_BUS_ID = "PCI_BUS_ID"  # as NVML counts; workers are started so, unless the user has chosen
# Each word has 64 CPUs; the kernel's own sets of CPUs have as many as a rule.
MASK_WORDS = 1024 // 64
# NVML reference, nvmlComputeMode_t.
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
# Fact -> the end of a call's name, its constants, and what makes the fact of its answer. MIG and ECC have two modes:
# now, and after the next reset. Remapped rows are corrected, uncorrected, pending and failed. The call for processes
# has a version because the plain name raises another kind of error where the driver is older.
SM, UNCORRECTED = ("NVML_CLOCK_SM",), ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC")
STATE: dict[str, tuple[str, tuple[str, ...], Callable[[Any], object]]] = {
    "power_cap_w": ("EnforcedPowerLimit", (), lambda milliwatts: milliwatts / 1000),
    "power_cap_default_w": ("PowerManagementDefaultLimit", (), lambda milliwatts: milliwatts / 1000),
    "clock_limit_mhz": ("ApplicationsClock", SM, float),
    "clock_mhz": ("ClockInfo", SM, float),
    "clock_max_mhz": ("MaxClockInfo", SM, float),
    "temperature_c": ("Temperature", ("NVML_TEMPERATURE_GPU",), float),
    "compute_mode": ("ComputeMode", (), COMPUTE_MODES.get),
    "mig": ("MigMode", (), lambda modes: bool(modes[0])),
    "ecc": ("EccMode", (), lambda modes: bool(modes[0])),
    "processes": ("ComputeRunningProcesses_v3", (), len),
    "power_violation_ns": ("ViolationStatus", ("NVML_PERF_POLICY_POWER",), lambda status: int(status.violationTime)),
    "thermal_violation_ns": (
        "ViolationStatus",
        ("NVML_PERF_POLICY_THERMAL",),
        lambda status: int(status.violationTime),
    ),
    "pcie_width": ("CurrPcieLinkWidth", (), int),
    "pcie_width_max": ("MaxPcieLinkWidth", (), int),
    "pcie_generation": ("CurrPcieLinkGeneration", (), int),
    "pcie_generation_max": ("MaxPcieLinkGeneration", (), int),
    "ecc_uncorrected": ("TotalEccErrors", UNCORRECTED, int),
    "remapped_rows": ("RemappedRows", (), lambda rows: rows[1]),
    "remap_pending": ("RemappedRows", (), lambda rows: bool(rows[2])),
    "remap_failed": ("RemappedRows", (), lambda rows: bool(rows[3])),
}
# Subject, NVML's constant of a mode that is well, the call, and the codes if it is well and if not.
MODES = (
    ("compute mode", "NVML_COMPUTEMODE_DEFAULT", "nvmlDeviceGetComputeMode", ("gpu_shared", "gpu_exclusive")),
    ("MIG", "NVML_DEVICE_MIG_DISABLE", "nvmlDeviceGetMigMode", ("mig_off", "mig_on")),
    ("persistence", "NVML_FEATURE_ENABLED", "nvmlDeviceGetPersistenceMode", ("persists", "persists_not")),
)


def _why_no_gpus(engine: Mapping[str, Any]) -> str | None:
    """Since Docker 28.3 devices may come by the Container Device Interface, without a runtime of its own."""
    if "nvidia" in str([*engine["Runtimes"], *(engine.get("DiscoveredDevices") or ())]):
        return None
    return (
        "the engine has no NVIDIA runtime; install the NVIDIA Container Toolkit on its host and run "
        "`sudo nvidia-ctk runtime configure --runtime=docker`, or measure with `kit launch cpu`"
    )


class Gpu(Device):
    """See `kit.devices.device.Device`."""

    kind = "gpu"
    rank = 1
    energy_source = "nvml"
    # NVIDIA (nvhost*, nvmap: Tegra), AMD (kfd), WSL (dxg).
    files = ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg")
    joule_sensors = nvml.JOULE_SENSORS
    precisions = ("tf32",)
    shares_memory = True
    hidden_by = {VISIBLE: ""}  # noqa: RUF012
    in_container = InContainer(gpus="all", why_not=_why_no_gpus)

    def listed(self) -> list[Accelerator] | Reason:
        """Return every GPU, in NVML's order."""
        gpus, driver = nvml.open_gpus(), None
        if isinstance(gpus, Reason):
            return gpus
        with suppress(gpus[0].nvml.NVMLError):
            driver = gpus[0].nvml.nvmlSystemGetDriverVersion()
        memory = {gpu.nvml_index: gpu.ask("nvmlDeviceGetMemoryInfo") for gpu in gpus}
        return [
            Accelerator(
                name=f"{self.kind} {gpu.nvml_index}",
                model=gpu.ask("nvmlDeviceGetName") or "unnamed",
                memory_b=memory[gpu.nvml_index] and int(memory[gpu.nvml_index].total),
                driver=driver,
                uuid_sha256=gpu.uuid_sha256(),
                device_id=gpu.bus_id(),
            )
            for gpu in gpus
        ]

    def states(self) -> list[Accelerator]:
        """Return caps, clocks and modes of every GPU: a forgotten power cap explains a slow run."""
        # NVIDIA documents this pipe for its Multi-Process Service; it is there while the service runs.
        mps = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps", "control").exists()
        states = []
        for gpu in _used():
            facts: dict[str, Any] = {}
            for name, (call, constants, convert) in STATE.items():
                answer = gpu.ask(f"nvmlDeviceGet{call}", *(getattr(gpu.nvml, constant) for constant in constants))
                facts[name] = None if answer is None else convert(answer)
            name = f"{self.kind} {gpu.nvml_index}"
            states.append(Accelerator(name=name, device_id=gpu.bus_id(), mps=mps, **facts))
        return states

    def processes(self, count: int, environment: Mapping[str, str]) -> int | None:
        """Return NVML's number, whosever they are."""
        known = [processes for gpu in _used(count, environment) if (processes := _processes(gpu)) is not None]
        return max(known, default=None)

    def ids(self, count: int) -> list[str]:
        """Return PCI bus ids."""
        return nvml.pci_bus_ids(count)

    def shown_by(self, count: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Name GPUs by UUID, whatever the order is; a slice of a GPU, which no UUID names, as it was given."""
        uuids = [gpu.ask("nvmlDeviceGetUUID") for gpu in _used(count, environment) if not _is_sliced(gpu)]
        if len(uuids) == count and all(uuids):
            return {VISIBLE: ",".join(uuids)}
        given = environment.get(VISIBLE)
        return {} if given is None else {VISIBLE: ",".join(given.split(",")[:count])}

    def shown_to_rank(self, rank: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variable with one entry."""
        given = environment.get(VISIBLE)
        entries = None if given is None else _entries(given)
        if entries is not None and rank >= len(entries):
            raise KitError(f"rank {rank} has no GPU: {VISIBLE}={given} shows {len(entries)}; give fewer --devices")
        return {VISIBLE: str(rank) if entries is None else entries[rank]}

    def cpus_near(self, count: int, environment: Mapping[str, str]) -> list[set[int]]:
        """Return the CPUs that NVML calls ideal for each GPU: those of its NUMA node."""
        masks = [gpu.ask("nvmlDeviceGetCpuAffinity", MASK_WORDS) for gpu in _used(count, environment)]
        if len(masks) < count or None in masks:
            return []
        return [
            {64 * index + bit for index, word in enumerate(mask) for bit in range(64) if word >> bit & 1}
            for mask in masks
        ]

    def check_count(self, count: int, environment: Mapping[str, str]) -> None:
        """Compare with the entries of the variable; without it the framework counts."""
        given = environment.get(VISIBLE)
        if given is not None and len(entries := _entries(given)) < count:
            raise KitError(
                f"--devices {count}: {VISIBLE}={given} shows only {len(entries)} GPU; name more in it, or give fewer"
            )

    def why_missing(self, dev: Path = DEV) -> Reason | None:
        """A GPU that another process holds for itself is missing, too."""
        for gpu in _used(1, os.environ):
            if _is_exclusive(gpu) and _processes(gpu):
                return reason("gpu_held", gpu=gpu.nvml_index)
        return super().why_missing(dev)

    def is_exclusive(self, count: int) -> bool:
        """Whether the compute mode of one that is used says so."""
        return any(_is_exclusive(gpu) for gpu in _used(count, os.environ))

    def conditions(self, root: Path) -> Iterator[Condition]:
        """Yield the modes of each GPU."""
        for gpu, (subject, wanted, call, codes) in product(_used(), MODES):
            mode = gpu.ask(call)
            if mode is not None:
                # MIG has two: the mode now, and after the next reset.
                fine = (mode[0] if isinstance(mode, list | tuple) else mode) == getattr(gpu.nvml, wanted)
                yield f"GPU {gpu.nvml_index} {subject}", fine, reason(codes[not fine], gpu=gpu.nvml_index)


def _used(count: int | None = None, environment: Mapping[str, str] | None = None) -> list[nvml.Gpu]:
    """Return the first `count` GPUs that a process with this environment sees; by default all that NVML lists."""
    gpus = nvml.open_gpus()
    if isinstance(gpus, Reason) or environment is None or VISIBLE not in environment:
        return [] if isinstance(gpus, Reason) else gpus[:count]
    by_bus_id, used = environment.get(ORDER, BY_BUS_ID) == BY_BUS_ID, list[nvml.Gpu]()
    for entry in _entries(environment[VISIBLE])[:count]:
        named = (
            gpu
            for gpu in gpus
            if (by_bus_id and entry.isdecimal() and int(entry) == gpu.nvml_index)
            or (entry.startswith("GPU-") and str(gpu.ask("nvmlDeviceGetUUID")).startswith(entry))
        )
        if (gpu := next(named, None)) is None:
            break  # CUDA reads no further
        used.append(gpu)
    return used


def _entries(visible: str) -> list[str]:
    """Return the GPUs that CUDA reads from the variable: it stops at the first entry that can name none."""
    entries = [entry.strip() for entry in visible.split(",")]
    return list(takewhile(lambda entry: entry.isdecimal() or entry.startswith(("GPU-", "MIG-")), entries))


def _is_exclusive(gpu: nvml.Gpu) -> bool:
    return bool(gpu.ask("nvmlDeviceGetComputeMode") == gpu.nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)


def _is_sliced(gpu: nvml.Gpu) -> bool:
    mode = gpu.ask("nvmlDeviceGetMigMode")  # now, and after the next reset
    return mode is not None and mode[0] != gpu.nvml.NVML_DEVICE_MIG_DISABLE


def _processes(gpu: nvml.Gpu) -> int | None:
    """Return how many processes compute on it, whosever they are."""
    processes = gpu.ask("nvmlDeviceGetComputeRunningProcesses_v3")
    return None if processes is None else len(processes)


DEVICE = Gpu()
