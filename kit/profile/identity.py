"""What the machine and the software are (identity, hashed) and how the machine was (state)."""

from __future__ import annotations

import msgspec


class Cpu(msgspec.Struct, frozen=True, kw_only=True):
    """Processor as the operating system names it."""

    model: str
    vendor: str | None
    architecture: str
    cores_physical: int | None
    cores_logical: int
    flags_sha256: str | None  # over the sorted instruction-set flags
    microcode: str | None
    caches: dict[str, int] = {}  # name -> bytes


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU or TPU."""

    kind: str
    model: str
    memory_b: int | None
    driver: str | None
    uuid_sha256: str | None


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """Whether we run in a container, and what it allows."""

    engine: str | None  # "docker", "podman", "kubernetes", ...; null: none seen
    cpu_limit: float | None  # CPUs by quota; null: no quota
    memory_limit_b: int | None
    image: str | None


class Software(msgspec.Struct, frozen=True, kw_only=True):
    """Everything below the workload that could change a number."""

    kit: str
    python: str
    os: str
    kernel: str
    libc: str | None
    packages: dict[str, str] = {}  # distribution -> version, frameworks and numerical libraries
    environment: dict[str, str] = {}  # variables that the workers inherit and that libraries read, by name


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What is hashed into the hardware fingerprint. Null means not readable here; `reasons` says why."""

    cpu: Cpu
    memory_b: int
    hypervisor: str | None
    accelerators: list[Accelerator]
    container: Container
    software: Software
    hostname_sha256: str  # tells two like machines apart without naming them
    reasons: dict[str, str] = {}
    hardware_sha256: str = ""  # over cpu, memory, hypervisor, accelerators
    sha256: str = ""  # over everything else in this structure


class State(msgspec.Struct, frozen=True, kw_only=True):
    """How the machine was at one moment. Counters are cumulative: subtract before from after."""

    taken: str  # UTC, ISO 8601
    load_1min: float | None
    governor: str | None
    turbo: bool | None
    frequency_mhz: float | None
    temperature_c: float | None
    memory_available_b: int | None
    context_switches: int | None
    steal_ns: int | None
    cgroup_throttled: int | None
    cgroup_throttled_ns: int | None
    pressure_cpu_some_ns: int | None
    reasons: dict[str, str] = {}
