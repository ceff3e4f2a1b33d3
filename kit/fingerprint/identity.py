"""What the machine and the software are, hashed into the fingerprint that two profiles are compared by."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable

import psutil
from msgspec.structs import replace

from kit.devices.catalog import DEVICES
from kit.fingerprint.container import container
from kit.fingerprint.processor import hypervisor, processor
from kit.fingerprint.software import software
from kit.profile.canonical import sha256_of
from kit.profile.identity import Accelerator, Identity
from kit.profile.reason import Reason


def identity(pythons: Iterable[str] = (), *, packages: Iterable[str] = (), prefixes: Iterable[str] = ()) -> Identity:
    """Identify this machine: ask once per run. Arguments as of `kit.fingerprint.software.software`."""
    reasons: dict[str, Reason] = {}
    plain = Identity(
        cpu=processor(reasons),
        memory_b=psutil.virtual_memory().total,
        hypervisor=hypervisor(reasons),
        accelerators=_accelerators(reasons),
        container=container(),
        software=software(reasons, pythons, packages, prefixes),
        hostname_sha256=hashlib.sha256(platform.node().encode()).hexdigest(),
        reasons=reasons,
    )
    return hashed(plain)


def hashed(plain: Identity) -> Identity:
    """Return the same identity with both hashes filled in.

    `hardware_sha256` leaves out what updates of software change: CPU flags, microcode, drivers. `sha256` covers every
    field but itself.
    """
    cpu = plain.cpu
    hardware = {
        "cpu": [cpu.model, cpu.architecture, cpu.cores_physical, cpu.cores_logical],
        "caches": cpu.caches,
        "memory_gib": _gib(plain.memory_b),
        "hypervisor": plain.hypervisor,
        "accelerators": [
            [board.kind, board.model, _gib(board.memory_b), board.uuid_sha256] for board in plain.accelerators
        ],
    }
    with_hardware = replace(plain, hardware_sha256=sha256_of(hardware), sha256="")
    return replace(with_hardware, sha256=sha256_of(with_hardware))


def _accelerators(reasons: dict[str, Reason]) -> list[Accelerator]:
    """List them; which kind cannot be listed is noted in `reasons`."""
    accelerators = []
    for kind, device in DEVICES.items():
        listed = device.listed()
        if isinstance(listed, Reason):
            reasons[f"accelerators.{kind}"] = listed
        else:
            accelerators += listed
    return accelerators


def _gib(size_b: int | None) -> int | None:
    """Round: kernels keep some of the memory for themselves, each another amount."""
    return None if size_b is None else round(size_b / 2**30)
