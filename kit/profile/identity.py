"""What machine and software are (identity, hashed), and how the machine was (state): flat facts with reasons."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from kit.profile.facts import DEVICE
from kit.profile.limits import CPU_MAX, Celsius, Count, Int64, MHz, SpanNs, StampNs, Watts
from kit.profile.reason import Reason, reason

# What the fact `hypervisor` is where there is none.
BARE_METAL = "none"

FactValue = bool | Int64 | float | str
Values = dict[str, FactValue | None]  # dotted name -> value, as `kit.profile.facts.FACTS` lists them


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU or TPU, the facts ``gpu.0.…``: what it is in an identity, and how it was in a state; null: not known."""

    name: str  # "gpu 0": kind, and index in the identity's list
    model: str = ""  # empty in a state
    memory_b: Count | None = None
    driver: str | None = None
    uuid_sha256: str | None = None
    device_id: str | None = None  # PCI address of a GPU, as launches and sensors name it
    power_cap_w: Watts | None = None  # that is enforced now
    power_cap_default_w: Watts | None = None  # after a reboot
    clock_limit_mhz: MHz | None = None  # application clock: its processors run no faster
    clock_mhz: MHz | None = None
    temperature_c: Celsius | None = None
    clock_max_mhz: MHz | None = None  # the highest that the GPU has
    compute_mode: str | None = None  # "default": any process may use it; "exclusive_process": one at a time
    mig: bool | None = None  # it is split into slices
    mps: bool | None = None  # a server on this machine lets processes share GPUs
    ecc: bool | None = None
    processes: Count | None = None  # that compute on it; no worker of this run is alive at this moment
    power_violation_ns: StampNs | None = None  # since the driver was loaded: slowed by its power cap
    thermal_violation_ns: StampNs | None = None
    pcie_width: Count | None = None  # lanes in use
    pcie_width_max: Count | None = None  # that GPU and slot could use
    pcie_generation: Count | None = None  # now, while nothing of this run is on it: idle GPUs lower it
    pcie_generation_max: Count | None = None
    ecc_uncorrected: Count | None = None  # memory errors since the driver was loaded
    remapped_rows: Count | None = None  # of memory, after uncorrectable errors
    remap_pending: bool | None = None  # a reset is needed before a row is replaced
    remap_failed: bool | None = None  # a bank has no spare row left

    @property
    def kind(self) -> str:
        """The kind of device, as cells name it."""
        return self.name.partition(" ")[0]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts by their dotted names. Null without a reason: there is none; null with one: it cannot be read here."""

    facts: Values
    reasons: dict[str, Reason] = {}

    def __post_init__(self) -> None:
        self.accelerators()  # a wrong type in a file is refused when it is read

    def text(self, name: str) -> str | None:
        """Return a fact that is text; null where it is unknown."""
        value = self.facts.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> float | None:
        """Return a fact that is a number; null where it is unknown."""
        value = self.facts.get(name)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def integer(self, name: str) -> int | None:
        """Return a fact that is a whole number, such as a counter; null where it is unknown."""
        value = self.number(name)
        return value if isinstance(value, int) else None

    def cpu_sets(self, prefix: str) -> list[list[int]]:
        """Return the CPUs of each core (``cpu.core.``) or NUMA node (``cpu.node.``); none where they are unknown."""
        sets = []
        for name, value in self.facts.items():
            if name.startswith(prefix) and isinstance(value, str):
                with suppress(ValueError):
                    sets.append(cpus_listed(value))
        return sets

    def why_unknown(self, name: str) -> Reason:
        """Return why a fact is null."""
        return self.reasons.get(name, reason("not_recorded", what=name))

    def accelerators(self) -> list[Accelerator]:
        """Return the GPUs and TPUs, in the order of their kinds and numbers."""
        by_device: dict[tuple[str, int], Values] = {}
        for name, value in self.facts.items():
            if (match := DEVICE.fullmatch(name)) is not None and match[3] in Accelerator.__struct_fields__:
                by_device.setdefault((match[1], int(match[2])), {})[match[3]] = value
        return [
            msgspec.convert({**fields, "name": f"{kind} {index}"}, Accelerator)
            for (kind, index), fields in sorted(by_device.items())
        ]


class Identity(Facts, frozen=True, kw_only=True):
    """Machine and software."""

    hardware_sha256: str = ""  # over what an update of software leaves as it is
    sha256: str = ""  # over everything else in this structure

    @property
    def cpu_model(self) -> str:
        """The processor as the operating system names it."""
        return self.text("cpu.model") or "unknown"

    @property
    def machine_kind(self) -> tuple[str, ...]:
        """What machines of one kind have in common: model of the CPU, number of CPUs, models of the accelerators."""
        models = sorted(device.model for device in self.accelerators())
        return self.cpu_model, str(self.integer("cpu.cores_logical")), *models

    @property
    def host(self) -> str:
        """The hash of the host's name; empty in a container, whose name is drawn anew for each."""
        return "" if self.text("container.engine") else self.text("hostname_sha256") or ""

    def setup(self) -> Values:
        """Return the facts that are alike in runs of the same machine and software."""
        return self.facts | {"hostname_sha256": self.host}


class State(Facts, frozen=True, kw_only=True):
    """How the machine was at one moment. Counters are cumulative: subtract before from after."""

    taken: str  # UTC, ISO 8601
    # `taken` on CLOCK_MONOTONIC_RAW, and how far apart the readings of that clock before and after were.
    raw_ns: StampNs | None = None
    raw_width_ns: SpanNs | None = None


def device_facts(devices: Iterable[Accelerator]) -> Values:
    """Return the facts of accelerators; what a device does not offer is left out."""
    return {
        f"{device.name.replace(' ', '.')}.{field}": value
        for device in devices
        for field in Accelerator.__struct_fields__
        if field != "name" and (value := getattr(device, field)) not in (None, "")
    }


def cpus_listed(text: str) -> list[int]:
    """Return the CPUs of a list as kernels write it: ``0-3,8``.

    Raises:
        ValueError: it is no such list, or has a CPU that no kernel numbers.
    """
    spans = [(int(first), int(last or first)) for first, _, last in (span.partition("-") for span in text.split(","))]
    if max(last for _, last in spans) > CPU_MAX:
        raise ValueError(text)
    return [cpu for first, last in spans for cpu in range(first, last + 1)]
