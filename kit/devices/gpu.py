"""NVIDIA GPUs, as NVML lists them; what it does not list may still be here, and a framework may see it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import product, takewhile
from pathlib import Path
from typing import Any

from kit.devices.device import DEV, Condition, Device, InContainer, condition
from kit.errors import KitError
from kit.profile.facts import Accelerator
from kit.profile.fields import Reason, reason
from kit.sensors import nvml

# CUDA programming guide, "CUDA environment variables": the GPUs that a process sees, by index, UUID or its beginning.
VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"
BY_BUS_ID = "PCI_BUS_ID"  # NVML counts so, and so do workers unless the user has chosen another order
# Each word has 64 CPUs; most kernels are built for up to 1024.
MASK_WORDS = 1024 // 64
# NVML reference, nvmlComputeMode_t.
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
# NVML's limits are rounded to some milliwatts; nobody caps a GPU by less than a hundredth.
CAP_SHARE = 0.99
# A GPU that is slowed by its power cap draws nearly that power; NVML's readings scatter by some percent.
NEAR_CAP = 0.9
# If a GPU is slowed in a smaller percentage of readings or time, its clock is settling at the beginning of a block.
SLOWED_LEAST_PCT = 5.0
# Fact -> the end of the call's name, its constants, and how its answer becomes the fact. MIG and ECC have two modes:
# now, and after the next reset. Remapped rows are corrected, uncorrected, pending and failed. The call for processes
# has a version because the plain name raises another kind of error where the driver is older.
SM, UNCORRECTED = ("NVML_CLOCK_SM",), ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC")
STATE: dict[str, tuple[str, tuple[str, ...], Callable[[Any], Any]]] = {
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
    "power_violation_ns": ("ViolationStatus", ("NVML_PERF_POLICY_POWER",), lambda held: int(held.violationTime)),
    "thermal_violation_ns": ("ViolationStatus", ("NVML_PERF_POLICY_THERMAL",), lambda held: int(held.violationTime)),
    "pcie_width": ("CurrPcieLinkWidth", (), int),
    "pcie_width_max": ("MaxPcieLinkWidth", (), int),
    "pcie_generation": ("CurrPcieLinkGeneration", (), int),
    "pcie_generation_max": ("MaxPcieLinkGeneration", (), int),
    "ecc_uncorrected": ("TotalEccErrors", UNCORRECTED, int),
    "remapped_rows": ("RemappedRows", (), lambda rows: rows[1]),
    "remap_pending": ("RemappedRows", (), lambda rows: bool(rows[2])),
    "remap_failed": ("RemappedRows", (), lambda rows: bool(rows[3])),
    "persistence": ("PersistenceMode", (), bool),  # `kit doctor` needs it; no state of an accelerator has it
}
# Subject for `kit doctor`, the fact's name, the value that is fine, and the codes if it is fine and if not.
MODES = (
    ("compute mode", "compute_mode", "default", ("gpu_shared", "gpu_exclusive")),
    ("MIG", "mig", False, ("mig_off", "mig_on")),
    ("persistence", "persistence", True, ("persists", "persists_not")),
)


def _why_no_gpus(engine: Mapping[str, Any]) -> str | None:
    # Since Docker 28.3 an engine can give devices through the Container Device Interface, without a runtime for them.
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
        return [
            Accelerator(
                name=f"{self.kind} {gpu.nvml_index}",
                model=gpu.ask("nvmlDeviceGetName") or "unnamed",
                memory_b=(memory := gpu.ask("nvmlDeviceGetMemoryInfo")) and int(memory.total),
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
        names = STATE.keys() & set(Accelerator.__struct_fields__)
        return [
            Accelerator(
                name=f"{self.kind} {gpu.nvml_index}",
                device_id=gpu.bus_id(),
                mps=mps,
                **{name: _state(gpu, name) for name in names},
            )
            for gpu in _visible()
        ]

    def processes(self, count: int, environment: Mapping[str, str]) -> int | None:
        """Return the number that NVML counts, whoever started them."""
        counts = [_state(gpu, "processes") for gpu in _visible(count, environment)]
        return max((processes for processes in counts if processes is not None), default=None)

    def ids(self, count: int) -> list[str]:
        """Return PCI bus ids."""
        return nvml.pci_bus_ids(count)

    def shown_by(self, count: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Name GPUs by UUID, which no order changes. A GPU's UUID does not name its slices: they keep their entries."""
        uuids = [gpu.ask("nvmlDeviceGetUUID") for gpu in _visible(count, environment) if not _state(gpu, "mig")]
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
        masks = [gpu.ask("nvmlDeviceGetCpuAffinity", MASK_WORDS) for gpu in _visible(count, environment)]
        if len(masks) < count or None in masks:
            return []
        return [
            {64 * index + bit for index, word in enumerate(mask) for bit in range(64) if word >> bit & 1}
            for mask in masks
        ]

    def check_count(self, count: int, environment: Mapping[str, str]) -> None:
        """Compare `count` with the entries of the variable; without it the framework counts."""
        given = environment.get(VISIBLE)
        if given is not None and len(entries := _entries(given)) < count:
            raise KitError(
                f"--devices {count}: {VISIBLE}={given} shows only {len(entries)} GPU; name more in it, or give fewer"
            )

    def why_missing(self, dev: Path = DEV) -> Reason | None:
        """Return `gpu_held` if another process holds the first GPU for itself, else what every device checks."""
        for gpu in _visible(1, os.environ):
            if _is_exclusive(gpu) and _state(gpu, "processes"):
                return reason("gpu_held", gpu=gpu.nvml_index)
        return super().why_missing(dev)

    def is_exclusive(self, count: int) -> bool:
        """Whether the compute mode of one of the first `count` GPUs says so."""
        return any(map(_is_exclusive, _visible(count, os.environ)))

    def conditions(self, root: Path) -> Iterator[Condition]:
        """Yield the modes of each GPU."""
        for gpu, (subject, name, wanted, codes) in product(_visible(), MODES):
            mode = _state(gpu, name)
            if mode is not None:
                yield condition(f"GPU {gpu.nvml_index} {subject}", mode == wanted, codes, gpu=gpu.nvml_index)


def _state(gpu: nvml.NvmlGpu, name: str) -> Any:  # noqa: ANN401 - facts differ in type
    """Return a fact of STATE; None where the GPU has no answer."""
    call, constants, convert = STATE[name]
    answer = gpu.ask(f"nvmlDeviceGet{call}", *(getattr(gpu.nvml, constant) for constant in constants))
    return None if answer is None else convert(answer)


def _is_exclusive(gpu: nvml.NvmlGpu) -> bool:
    return bool(_state(gpu, "compute_mode") == "exclusive_process")


def _visible(count: int | None = None, environment: Mapping[str, str] | None = None) -> list[nvml.NvmlGpu]:
    """Return the first `count` GPUs that a process with this environment sees; by default all that NVML lists."""
    gpus = nvml.open_gpus()
    if isinstance(gpus, Reason):
        return []
    if environment is None or VISIBLE not in environment:
        return gpus[:count]
    by_bus_id, visible = environment.get(ORDER, BY_BUS_ID) == BY_BUS_ID, list[nvml.NvmlGpu]()
    for entry in _entries(environment[VISIBLE])[:count]:
        matches = (
            gpu
            for gpu in gpus
            if (by_bus_id and entry.isdecimal() and int(entry) == gpu.nvml_index)
            or (entry.startswith("GPU-") and str(gpu.ask("nvmlDeviceGetUUID")).startswith(entry))
        )
        if (gpu := next(matches, None)) is None:
            break  # CUDA reads no further
        visible.append(gpu)
    return visible


def _entries(visible: str) -> list[str]:
    """Return the GPUs that CUDA reads from the variable: it stops at the first entry that can name none."""
    entries = [entry.strip() for entry in visible.split(",")]
    return list(takewhile(lambda entry: entry.isdecimal() or entry.startswith(("GPU-", "MIG-")), entries))


def is_capped(gpu: Accelerator) -> bool | None:
    """Whether the power cap is below the one after a reboot; None: NVML does not show both."""
    if gpu.power_cap_w is None or gpu.power_cap_default_w is None:
        return None
    return gpu.power_cap_w < CAP_SHARE * gpu.power_cap_default_w


def reaches_cap(power_max_w: float, cap_w: float) -> bool:
    """Whether a GPU's highest power shows that the cap slows it; the mean power of bursts would not show it."""
    return power_max_w >= NEAR_CAP * cap_w


DEVICE = Gpu()
