"""What the machine and the software are, hashed into the fingerprint that two profiles are compared by."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable

import psutil
from msgspec.structs import replace

from kit.fingerprint.accelerators import accelerators
from kit.fingerprint.container import container
from kit.fingerprint.processor import hypervisor, processor
from kit.fingerprint.software import software
from kit.profile.canonical import sha256_of
from kit.profile.hardware import hardware_sha256
from kit.profile.identity import Identity
from kit.profile.reason import Reason


def identity(pythons: Iterable[str] = (), *, packages: Iterable[str] = (), prefixes: Iterable[str] = ()) -> Identity:
    """Identify this machine: ask once per run.

    Args:
        pythons: interpreters that run the frameworks, where they are others than the running one.
        packages: distributions whose versions are recorded, beside `kit.fingerprint.software.PACKAGES`.
        prefixes: of environment variables that are recorded, beside `kit.fingerprint.software.PREFIXES`.
    """
    reasons: dict[str, Reason] = {}
    found = Identity(
        cpu=processor(reasons),
        memory_b=psutil.virtual_memory().total,
        hypervisor=hypervisor(reasons),
        accelerators=accelerators(reasons),
        container=container(),
        software=software(reasons, pythons, packages, prefixes),
        hostname_sha256=hashlib.sha256(platform.node().encode()).hexdigest(),
        reasons=reasons,
    )
    return hashed(found)


def hashed(found: Identity) -> Identity:
    """Return the same identity with both hashes filled in.

    `hardware_sha256` covers what `kit.profile.hardware` says; `sha256` covers every field but itself.
    """
    with_hardware = replace(found, hardware_sha256=hardware_sha256(found), sha256="")
    return replace(with_hardware, sha256=sha256_of(with_hardware))
