"""NVIDIA GPUs, as NVML lists them; what it does not list may still be here, and a framework may see it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product, takewhile
from pathlib import Path
from typing import Any

from kit.devices.device import DEV, Condition, Device, InContainer
from kit.errors import KitError
from kit.profile.identity import Accelerator
from kit.profile.reason import Reason, reason
from kit.sensors import cuda, nvml


def _why_no_gpus(engine: Mapping[str, Any]) -> str | None:
    """Since Docker 28.3 devices may come by the Container Device Interface, without a runtime of its own."""
    if "nvidia" in str([*engine["Runtimes"], *(engine.get("DiscoveredDevices") or ())]):
        return None
    return (
        "the engine has no NVIDIA runtime; install the NVIDIA Container Toolkit on its host and run "
        "`sudo nvidia-ctk runtime configure --runtime=docker`, or measure with `kit launch cpu`"
    )


# CUDA programming guide, "CUDA environment variables": the boards that a process sees, by place, UUID or its beginning.
VISIBLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
BY_BUS_ID = "PCI_BUS_ID"  # as NVML counts; members are started so, unless the user has chosen
# Of 64 CPUs each: as many CPUs as the kernel's own sets of CPUs have as a rule.
MASK_WORDS = 1024 // 64
# NVML reference, nvmlComputeMode_t.
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}


class Gpu(Device):
    """See `kit.devices.device.Device`."""

    kind = "gpu"
    rank = 1
    energy_source = "nvml"
    # NVIDIA (nvhost*, nvmap: Tegra), AMD (kfd), WSL (dxg).
    files = ("nvidia*", "nvhost*", "nvmap", "kfd", "dxg")
    # A counter holds its whole board; power stands in on boards before Volta and virtual GPUs.
    whole = (re.compile(r"nvml\.\d+\.energy"), re.compile(r"nvml\.\d+\.power"))
    precisions = ("tf32",)
    shares_memory = True
    hidden_by = {VISIBLE: ""}  # noqa: RUF012
    in_container = InContainer(gpus="all", why_not=_why_no_gpus)

    def listed(self) -> list[Accelerator] | Reason:
        """Return every board, in NVML's order."""
        boards = nvml.open_boards()
        return boards if isinstance(boards, Reason) else [self._identity(board) for board in boards]

    def states(self) -> list[Accelerator]:
        """Return caps and clocks of every board: a forgotten power cap explains a slow run."""
        return [self._state(board) for board in _boards()]

    def processes(self, count: int, environment: Mapping[str, str]) -> int | None:
        """Return NVML's number, whosever they are."""
        known = [processes for board in _used(count, environment) if (processes := _processes(board)) is not None]
        return max(known, default=None)

    def ids(self, count: int) -> list[str]:
        """Return PCI bus ids."""
        return cuda.pci_bus_ids(count)

    def shown_by(self, count: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """By UUID, whatever the order is; as it was given where no UUID names it, as of a slice of a board."""
        boards = _used(count, environment)
        uuids = [board.ask("nvmlDeviceGetUUID") for board in boards if not _is_sliced(board)]
        if len(uuids) == count and all(uuids):
            return {VISIBLE: ",".join(uuids)}
        given = environment.get(VISIBLE)
        return {} if given is None else {VISIBLE: ",".join(given.split(",")[:count])}

    def shown_to_rank(self, rank: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return the variable with one entry."""
        given = environment.get(VISIBLE)
        if given is None:
            return {VISIBLE: str(rank)}
        entries = _entries(given)
        if rank >= len(entries):
            raise KitError(f"rank {rank} has no GPU: {VISIBLE}={given} shows {len(entries)}; give fewer --devices")
        return {VISIBLE: entries[rank]}

    def cpus_near(self, count: int, environment: Mapping[str, str]) -> list[set[int]]:
        """Return those that NVML calls ideal for each board: of its node of memory."""
        masks = [board.ask("nvmlDeviceGetCpuAffinity", MASK_WORDS) for board in _used(count, environment)]
        if len(masks) < count or None in masks:
            return []
        return [
            {64 * place + bit for place, word in enumerate(mask) for bit in range(64) if word >> bit & 1}
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
        """One that another process holds for itself is missing, too."""
        held = (board for board in _used(1, os.environ) if _is_exclusive(board) and _processes(board))
        board = next(held, None)
        return super().why_missing(dev) if board is None else reason("gpu_held", gpu=board.place)

    def is_exclusive(self, count: int) -> bool:
        """Whether the compute mode of one that is used says so."""
        return any(_is_exclusive(board) for board in _used(count, os.environ))

    def conditions(self, root: Path) -> Iterator[Condition]:
        """Tell the modes of each board."""
        boards = _boards()
        if not boards:
            return
        off, persists = boards[0].nvml.NVML_DEVICE_MIG_DISABLE, boards[0].nvml.NVML_FEATURE_ENABLED
        shared = boards[0].nvml.NVML_COMPUTEMODE_DEFAULT
        modes = (
            ("compute mode", "nvmlDeviceGetComputeMode", shared, ("gpu_shared", "gpu_exclusive")),
            ("MIG", "nvmlDeviceGetMigMode", off, ("mig_off", "mig_on")),
            ("persistence", "nvmlDeviceGetPersistenceMode", persists, ("persists", "persists_not")),
        )
        for board, (subject, call, wanted, codes) in product(boards, modes):
            mode = board.ask(call)
            if mode is not None:
                # Of MIG: the mode now, and after the next reset.
                fine = (mode[0] if isinstance(mode, list | tuple) else mode) == wanted
                yield f"GPU {board.place} {subject}", fine, reason(codes[not fine], gpu=board.place)

    def _identity(self, board: nvml.Board) -> Accelerator:
        memory, driver = board.ask("nvmlDeviceGetMemoryInfo"), None
        with suppress(board.nvml.NVMLError):
            driver = board.nvml.nvmlSystemGetDriverVersion()
        return Accelerator(
            name=f"{self.kind} {board.place}",
            model=board.ask("nvmlDeviceGetName") or "unnamed",
            memory_b=memory and int(memory.total),
            driver=driver,
            uuid_sha256=board.uuid_sha256(),
            device_id=board.bus_id(),
        )

    def _state(self, board: nvml.Board) -> Accelerator:
        def number(call: str, *arguments: object, per_unit: int = 1) -> float | None:
            answer = board.ask(call, *arguments)
            return None if answer is None else answer / per_unit

        def since_loaded_ns(policy: int) -> int | None:
            answer = board.ask("nvmlDeviceGetViolationStatus", policy)
            return None if answer is None else int(answer.violationTime)

        nvml = board.nvml
        clock, die = nvml.NVML_CLOCK_SM, nvml.NVML_TEMPERATURE_GPU
        mode, mig, ecc = (board.ask(f"nvmlDeviceGet{what}Mode") for what in ("Compute", "Mig", "Ecc"))
        uncorrected = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        remapped = board.ask("nvmlDeviceGetRemappedRows")  # corrected, uncorrected, pending, failed
        return Accelerator(
            name=f"{self.kind} {board.place}",
            power_cap_w=number("nvmlDeviceGetEnforcedPowerLimit", per_unit=1000),
            power_cap_default_w=number("nvmlDeviceGetPowerManagementDefaultLimit", per_unit=1000),
            clock_limit_mhz=number("nvmlDeviceGetApplicationsClock", clock),
            clock_mhz=number("nvmlDeviceGetClockInfo", clock),
            temperature_c=number("nvmlDeviceGetTemperature", die),
            device_id=board.bus_id(),
            clock_max_mhz=number("nvmlDeviceGetMaxClockInfo", clock),
            compute_mode=COMPUTE_MODES.get(mode),
            mig=mig and bool(mig[0]),  # now, and after the next reset
            mps=_mps_control().exists(),
            ecc=ecc and bool(ecc[0]),
            processes=_processes(board),
            power_violation_ns=since_loaded_ns(nvml.NVML_PERF_POLICY_POWER),
            thermal_violation_ns=since_loaded_ns(nvml.NVML_PERF_POLICY_THERMAL),
            pcie_width=board.ask("nvmlDeviceGetCurrPcieLinkWidth"),
            pcie_width_max=board.ask("nvmlDeviceGetMaxPcieLinkWidth"),
            pcie_generation=board.ask("nvmlDeviceGetCurrPcieLinkGeneration"),
            pcie_generation_max=board.ask("nvmlDeviceGetMaxPcieLinkGeneration"),
            ecc_uncorrected=board.ask("nvmlDeviceGetTotalEccErrors", *uncorrected),
            remapped_rows=remapped and remapped[1],
            remap_pending=remapped and bool(remapped[2]),
            remap_failed=remapped and bool(remapped[3]),
        )


def _boards() -> list[nvml.Board]:
    boards = nvml.open_boards()
    return [] if isinstance(boards, Reason) else boards


def _used(count: int, environment: Mapping[str, str]) -> list[nvml.Board]:
    """Return the first `count` boards that a process with this environment sees, those that NVML lists."""
    boards = _boards()
    if VISIBLE not in environment:
        return boards[:count]
    used = []
    for entry in _entries(environment[VISIBLE])[:count]:
        board = next((board for board in boards if _is_named(board, entry, environment)), None)
        if board is None:
            break  # CUDA reads no further
        used.append(board)
    return used


def _entries(visible: str) -> list[str]:
    """Return the boards that CUDA reads from the variable: it stops at the first entry that can name none."""
    entries = [entry.strip() for entry in visible.split(",")]
    return list(takewhile(lambda entry: entry.isdecimal() or entry.startswith(("GPU-", "MIG-")), entries))


def _is_named(board: nvml.Board, entry: str, environment: Mapping[str, str]) -> bool:
    if entry.isdecimal():
        return int(entry) == board.place and environment.get(ORDER, BY_BUS_ID) == BY_BUS_ID
    return entry.startswith("GPU-") and str(board.ask("nvmlDeviceGetUUID")).startswith(entry)


def _is_exclusive(board: nvml.Board) -> bool:
    return bool(board.ask("nvmlDeviceGetComputeMode") == board.nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)


def _processes(board: nvml.Board) -> int | None:
    """Return how many processes compute on it, whosever they are."""
    # By its version: the plain name raises another kind of error where the driver is older.
    processes = board.ask("nvmlDeviceGetComputeRunningProcesses_v3")
    return None if processes is None else len(processes)


def _mps_control() -> Path:
    """Return the pipe of NVIDIA's Multi-Process Service, as its documentation names it; there while it runs."""
    return Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or "/tmp/nvidia-mps", "control")


def _is_sliced(board: nvml.Board) -> bool:
    mode = board.ask("nvmlDeviceGetMigMode")  # now, and after the next reset
    return mode is not None and mode[0] != board.nvml.NVML_DEVICE_MIG_DISABLE


DEVICE = Gpu()
