"""What makes two machines the same hardware: not what a kernel, a driver or microcode makes of it."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from kit.profile.canonical import canonical_json
from kit.profile.identity import Accelerator, Identity

# Kernels keep some of the memory for themselves, each another amount.
MEMORY_UNIT_B = 2**30


class Hardware(NamedTuple):
    """Of one machine. CPU flags, microcode and drivers are left out: updates of software change them."""

    cpu: tuple[str, str, int | None, int]  # model, architecture, physical and logical cores
    caches: tuple[tuple[str, int], ...]
    memory_gib: int
    hypervisor: str | None
    accelerators: tuple[tuple[str, str, int | None, str | None], ...]  # kind, model, GiB, hashed UUID


def hardware_of(identity: Identity) -> Hardware:
    """Of the machine that `identity` was read from."""
    cpu = identity.cpu
    return Hardware(
        cpu=(cpu.model, cpu.architecture, cpu.cores_physical, cpu.cores_logical),
        caches=tuple(sorted(cpu.caches.items())),
        memory_gib=_gib(identity.memory_b),
        hypervisor=identity.hypervisor,
        accelerators=tuple(_accelerator(one) for one in identity.accelerators),
    )


def hardware_sha256(identity: Identity) -> str:
    """Return the hash that profiles carry."""
    return hashlib.sha256(canonical_json(hardware_of(identity))).hexdigest()


def same_hardware(one: Identity, other: Identity) -> bool:
    """Whether both were read from like hardware, whatever rule their hashes were made by."""
    return one.hardware_sha256 == other.hardware_sha256 or hardware_of(one) == hardware_of(other)


def _accelerator(one: Accelerator) -> tuple[str, str, int | None, str | None]:
    return one.kind, one.model, None if one.memory_b is None else _gib(one.memory_b), one.uuid_sha256


def _gib(size_b: int) -> int:
    return round(size_b / MEMORY_UNIT_B)
