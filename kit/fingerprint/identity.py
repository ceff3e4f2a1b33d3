"""The identity of machine and software, hashed into the fingerprint by which two profiles are compared."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable

import psutil
from msgspec.structs import replace

from kit.devices import DEVICES
from kit.fingerprint import private
from kit.fingerprint.container import container
from kit.fingerprint.processor import processor
from kit.fingerprint.software import software
from kit.profile.facts import FINGERPRINT_B, Accelerator, Identity, device_facts, fact_of
from kit.profile.fields import Reason
from kit.profile.store import sha256_of


def identity(
    pythons: Iterable[str] = (),
    *,
    packages: Iterable[str] = (),
    prefixes: Iterable[str] = (),
    names_only: bool = False,
) -> Identity:
    """Identify this machine, once a run; `kit.fingerprint.software.software` explains the arguments."""
    reasons: dict[str, Reason] = {}
    accelerators: list[Accelerator] = []
    for kind, device in DEVICES.items():
        listed = device.listed()
        if isinstance(listed, Reason):
            reasons[kind] = listed
        else:
            accelerators += listed
    facts = {
        **processor(reasons),
        "memory_b": psutil.virtual_memory().total,
        **device_facts(accelerators),
        **container().facts,
        **software(reasons, pythons, packages, prefixes, names_only=names_only),
        "hostname_sha256": private.hashed(hashlib.sha256(platform.node().encode()).hexdigest()),
    }
    # Before it is hashed: the profile is written with what is hashed.
    facts = {name: private.cleaned(value) if isinstance(value, str) else value for name, value in facts.items()}
    known = {private.cleaned(name): why for name, why in reasons.items()}
    return hashed(Identity(facts=facts, reasons=known))


def hashed(plain: Identity) -> Identity:
    """Return the identity with both hashes: of the facts that FACTS calls hardware, and of every other field."""
    hardware = {
        name: round(value / FINGERPRINT_B) if name.endswith("memory_b") and isinstance(value, int) else value
        for name, value in plain.facts.items()
        if fact_of(name).is_hardware
    }
    with_hardware = replace(plain, hardware_sha256=sha256_of(hardware), sha256="")
    return replace(with_hardware, sha256=sha256_of(with_hardware))
