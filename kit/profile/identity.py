"""What the machine and the software are (identity, hashed) and how the machine was (state)."""

from __future__ import annotations

import msgspec

from kit.profile.cell import Int64
from kit.profile.reason import Reason


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """Processor as the operating system names it."""

    model: str
    vendor: str | None
    architecture: str
    cores_physical: Int64 | None
    cores_logical: Int64 | None
    flags_sha256: str | None  # over the sorted instruction-set flags
    microcode: str | None
    caches: dict[str, Int64] = {}  # name -> bytes
    flags: list[str] = []  # sorted; empty: not known, as up to schema 2.3
    # Of the cores that this process may use, the CPUs of each, usable or not; empty: not known, as up to schema 2.4.
    siblings: list[list[Int64]] = []
    nodes: list[list[Int64]] = []  # CPUs of each node of memory (NUMA) that has any; empty: not known


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU or TPU."""

    kind: str
    model: str
    memory_b: Int64 | None
    driver: str | None
    uuid_sha256: str | None
    device_id: str | None = None  # PCI address of a GPU, as launches and sensors name it


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """Whether we run in a container, and what it allows."""

    engine: str | None  # "docker", "podman", "kubernetes", ...; null: none seen
    cpu_limit: float | None  # CPUs by quota; null: no quota
    memory_limit_b: Int64 | None
    image: str | None
    image_digest: str | None = None  # of its configuration, sha256:…, as who started the container said


class Software(msgspec.Struct, frozen=True, kw_only=True):
    """Everything below the workload that could change a number."""

    kit: str
    python: str
    os: str
    kernel: str
    libc: str | None
    packages: dict[str, str] = {}  # distribution -> version, frameworks and numerical libraries
    environment: dict[str, str] = {}  # variables that the workers inherit and that libraries read, by name
    # Who set each of them: "image", "container", a launcher's name, "user"; empty: not recorded, as up to schema 2.4.
    environment_set_by: dict[str, str] = {}


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What is hashed into the hardware fingerprint. Null means not readable here; `reasons` says why."""

    cpu: Cpu
    memory_b: Int64 | None
    hypervisor: str | None
    accelerators: list[Accelerator]
    container: Container
    software: Software
    hostname_sha256: str  # tells two like machines apart without naming them
    reasons: dict[str, Reason] = {}
    hardware_sha256: str = ""  # over what an update of software leaves as it is
    sha256: str = ""  # over everything else in this structure

    @property
    def kind(self) -> tuple[str, ...]:
        """What machines of one kind have in common: model of the CPU, number of CPUs, models of the boards."""
        return self.cpu.model, str(self.cpu.cores_logical), *sorted(board.model for board in self.accelerators)


class AcceleratorState(msgspec.Struct, frozen=True, kw_only=True):
    """What one GPU was allowed and how it was, at one moment. Null: it does not tell."""

    name: str  # "gpu 0": kind, and place in the identity's list
    power_cap_w: float | None  # that is enforced now
    power_cap_default_w: float | None  # that the board has after a reboot
    clock_limit_mhz: float | None  # application clock of its processors: they run no faster
    clock_mhz: float | None
    temperature_c: float | None
    device_id: str | None = None  # PCI bus id
    clock_max_mhz: float | None = None  # that the board has at all
    compute_mode: str | None = None  # "default": any process's; "exclusive_process": one at a time's
    mig: bool | None = None  # in slices
    mps: bool | None = None  # a server on this machine lets processes share boards
    ecc: bool | None = None
    processes: Int64 | None = None  # that compute on it; no member of this run is alive at this moment
    power_violation_ns: Int64 | None = None  # since the driver was loaded: slowed by its power cap
    thermal_violation_ns: Int64 | None = None
    # Up to schema 2.4 not recorded:
    pcie_width: Int64 | None = None  # lanes in use
    pcie_width_max: Int64 | None = None  # that board and slot could use
    pcie_generation: Int64 | None = None  # now, while nothing of this run is on it: boards lower it when idle
    pcie_generation_max: Int64 | None = None
    ecc_uncorrected: Int64 | None = None  # errors of memory since the driver was loaded
    remapped_rows: Int64 | None = None  # of memory, after uncorrectable errors
    remap_pending: bool | None = None  # a reset is needed before a row is replaced
    remap_failed: bool | None = None  # a bank has no spare row left


# Of a `State`: cumulative since the machine or the group was started; only their growth says something.
STATE_COUNTERS = (
    "context_switches", "steal_ns", "cgroup_throttled", "cgroup_throttled_ns", "pressure_cpu_some_ns",
    "core_throttled", "package_throttled", "numa_misses",
)  # fmt: skip


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How the machine was at one moment. Counters are cumulative: subtract before from after."""

    taken: str  # UTC, ISO 8601
    load_1min: float | None
    governor: str | None
    turbo: bool | None
    frequency_mhz: float | None
    temperature_c: float | None
    memory_available_b: Int64 | None
    context_switches: Int64 | None
    steal_ns: Int64 | None
    cgroup_throttled: Int64 | None
    cgroup_throttled_ns: Int64 | None
    pressure_cpu_some_ns: Int64 | None
    core_throttled: Int64 | None = None  # times that heat held a core back, over all of them; null up to schema 2.4
    package_throttled: Int64 | None = None  # the same of packages, as each of their CPUs counts it
    clock_synchronized: bool | None = None  # the wall clock, by NTP or PTP, as the kernel was told
    numa_misses: Int64 | None = None  # pages that came from another node of memory than was wanted
    accelerators: list[AcceleratorState] = []  # GPUs, as far as NVML lists them
    # `taken` on CLOCK_MONOTONIC_RAW, and how far apart the readings of that before and after were; null up to 2.4.
    raw_ns: Int64 | None = None
    raw_width_ns: Int64 | None = None
    reasons: dict[str, Reason] = {}
