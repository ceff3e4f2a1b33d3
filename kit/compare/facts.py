"""What could explain a difference between two profiles: facts of machine, container, software, state and run."""

from __future__ import annotations

from collections.abc import Collection

from kit.compare.counted import counted, gib
from kit.compare.fact import Fact, fact
from kit.compare.packages import kind_of_package
from kit.profile.brief import AnyProfile
from kit.profile.identity import Accelerator, Container, Identity

# A hash is only told apart, never read: eight digits do.
HASH_DIGITS = 8
NONE = "none"


def identity_facts(identity: Identity, backends: Collection[str]) -> list[Fact]:
    """Of the machine and the software that cells of `backends` run on."""
    return [
        *_hardware_facts(identity),
        *_container_facts(identity.container),
        *_software_facts(identity, backends),
    ]


def run_facts(profile: AnyProfile) -> list[Fact]:
    """Of how it was measured."""
    suite, plan = profile.suite, profile.suite.plan
    asked = f"{suite.launches}" if suite.precision_pct is None else f"for ±{suite.precision_pct:g} %"
    return [
        fact(
            "step plan",
            f"{plan.warmup_s:g} s warm-up, {plan.steady_s:g} s steady, {plan.steps_min} to {plan.steps_max} steps",
        ),
        fact("clock", None if profile.clock is None else profile.clock.source),
        fact("seed", str(suite.seed)),
        fact("suite", f"{suite.name} {_short(suite.sha256)}"),
        fact("launches asked for", asked),
        fact("kit", profile.kit),
        fact("schema", profile.schema),
        *(Fact("sensor", f"sensor {sensor.name}", sensor.status) for sensor in profile.sensors),
    ]


def _hardware_facts(identity: Identity) -> list[Fact]:
    cpu = identity.cpu
    found = [
        fact("CPU", f"{cpu.model}, {counted(cpu.cores_logical, 'logical core')}, {cpu.architecture}"),
        fact("CPU features", _short(cpu.flags_sha256)),
        fact("microcode", cpu.microcode),
        fact("memory", gib(identity.memory_b)),
        fact("hypervisor", identity.hypervisor or NONE),
        fact("host", _short(identity.hostname_sha256)),
    ]
    for index, accelerator in enumerate(identity.accelerators):
        found += _accelerator_facts(f"{accelerator.kind} {index}", accelerator)
    return found


def _accelerator_facts(name: str, accelerator: Accelerator) -> list[Fact]:
    memory_b = accelerator.memory_b
    size = "" if memory_b is None else f", {gib(memory_b)}"
    found = [Fact("accelerator", name, f"{accelerator.model}{size}")]
    if accelerator.driver is not None:
        found.append(Fact("accelerator driver", f"driver of {name}", accelerator.driver))
    return found


def _container_facts(container: Container) -> list[Fact]:
    memory_b = container.memory_limit_b
    return [
        fact("container", container.engine or NONE),
        fact("container image", container.image or NONE),
        fact("CPU limit", NONE if container.cpu_limit is None else counted(container.cpu_limit, "CPU")),
        fact("memory limit", NONE if memory_b is None else gib(memory_b)),
    ]


def _software_facts(identity: Identity, backends: Collection[str]) -> list[Fact]:
    software = identity.software
    packages = [
        Fact(kind_of_package(name, backends), name, version) for name, version in sorted(software.packages.items())
    ]
    variables = [Fact("environment variable", name, value) for name, value in sorted(software.environment.items())]
    return [
        fact("operating system", software.os),
        fact("kernel", software.kernel),
        fact("C library", software.libc),
        fact("Python", software.python),
        *packages,
        *variables,
    ]


def _short(sha256: str | None) -> str | None:
    return sha256[:HASH_DIGITS] if sha256 else None
