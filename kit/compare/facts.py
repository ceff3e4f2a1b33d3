"""What is different about the machines and the software behind several profiles, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from kit.compare.counted import counted
from kit.compare.gate import LabelledProfile
from kit.profile.identity import Container, Identity
from kit.profile.schema import Profile

# A hash is only told apart, never read: eight digits do.
HASH_DIGITS = 8
UNKNOWN = "unknown"


def facts(profile: Profile) -> dict[str, str]:
    """Name -> value of everything that could explain a difference between two profiles, in the order to name it."""
    return {
        **_hardware_facts(profile.identity),
        **_container_facts(profile.identity.container),
        **_software_facts(profile.identity),
        **_run_facts(profile),
    }


def differences(profiles: Sequence[LabelledProfile]) -> list[str]:
    """One line for each fact that is not the same in all: ``kernel: 6.1.0 (a), 6.6.0 (b, c)``."""
    by_label = {label: facts(profile) for label, profile in profiles}
    names = dict.fromkeys(name for own in by_label.values() for name in own)
    lines = []
    for name in names:
        labels_of: dict[str, list[str]] = {}
        for label, own in by_label.items():
            labels_of.setdefault(own.get(name, "none"), []).append(label)
        if len(labels_of) > 1:
            lines.append(f"{name}: " + ", ".join(f"{value} ({', '.join(who)})" for value, who in labels_of.items()))
    return lines


def machines(profiles: Sequence[LabelledProfile]) -> int:
    """How many different machines the profiles were taken on, as far as their identities tell."""
    return len({(profile.identity.hostname_sha256, profile.identity.hardware_sha256) for _, profile in profiles})


def _hardware_facts(identity: Identity) -> dict[str, str]:
    cpu = identity.cpu
    found = {
        "CPU": f"{cpu.model}, {counted(cpu.cores_logical, 'logical core')}, {cpu.architecture}",
        "CPU features": _short(cpu.flags_sha256),
        "microcode": cpu.microcode or UNKNOWN,
        "memory": f"{identity.memory_b / 2**30:.1f} GiB",
        "hypervisor": identity.hypervisor or "none",
        "host": _short(identity.hostname_sha256),
    }
    for index, accelerator in enumerate(identity.accelerators):
        found[f"{accelerator.kind} {index}"] = f"{accelerator.model}, driver {accelerator.driver or UNKNOWN}"
    return found


def _container_facts(container: Container) -> dict[str, str]:
    memory = container.memory_limit_b
    return {
        "container": container.engine or "none",
        "container image": container.image or "none",
        "CPU limit": "none" if container.cpu_limit is None else counted(container.cpu_limit, "CPU"),
        "memory limit": "none" if memory is None else f"{memory / 2**30:.1f} GiB",
    }


def _software_facts(identity: Identity) -> dict[str, str]:
    software = identity.software
    found = {
        "operating system": software.os,
        "kernel": software.kernel,
        "C library": software.libc or UNKNOWN,
        "Python": software.python,
        "kit": software.kit,
    }
    packages = {name: software.packages[name] for name in sorted(software.packages)}
    return found | packages | {name: software.environment[name] for name in sorted(software.environment)}


def _run_facts(profile: Profile) -> dict[str, str]:
    launches = [launch for result in profile.cells for launch in result.launches if launch.failure is None]
    threads = sorted({launch.threads.requested for launch in launches if launch.threads is not None})
    data = sorted(
        {f"{launch.data.name} {_short(launch.data.sha256)}" for launch in launches if launch.data is not None}
    )
    before, plan = profile.state.before, profile.suite.plan
    return {
        "threads": ", ".join(map(str, threads)) or UNKNOWN,
        "data": ", ".join(data) or UNKNOWN,
        "seed": str(profile.suite.seed),
        "step plan": f"{plan.warmup_s:g} s warm-up, {plan.steady_s:g} s steady",
        "clock": profile.clock.source if profile.clock is not None else UNKNOWN,
        "frequency governor": before.governor or UNKNOWN,
        "turbo": UNKNOWN if before.turbo is None else "on" if before.turbo else "off",
    }


def _short(sha256: str | None) -> str:
    return sha256[:HASH_DIGITS] if sha256 else UNKNOWN
