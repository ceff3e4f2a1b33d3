"""Facts: what machine and software are (identity, hashed), how the machine was (state), and what each fact means.

Facts are flat and have dotted names, such as `cpu.model`, `software.package.torch` and `gpu.0.power_cap_w`. FACTS has
one entry for each kind; the key of the second is `software.package.*`, that of the third `device.power_cap_w`. From
FACTS follow the gate of comparisons, what `--why` lists, the tables of `kit show` and `kit doctor`, and the hash of the
hardware.

To add a fact, write its entry here, and in `kit.report.reasons_in_words.EFFECTS` what it may do to the numbers; then
measure it: machine and software in `kit.fingerprint`, accelerators in `kit.devices`, settings of a run in
`kit.compare.comparability`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Literal, NamedTuple

import msgspec

from kit.profile.fields import CPU_MAX, Celsius, Count, Int64, MHz, Reason, SpanNs, StampNs, Watts, reason

# incompatible: not compared, unless by force; warns: could explain a difference; noted: explains nothing by itself.
# null: it is not compared, because it identifies a machine or counts something.
Grade = Literal["incompatible", "warns", "noted"]
# setting: it stays as it is during a run; gauge: it moves; counter: it only grows, and the growth says something.
Form = Literal["setting", "gauge", "counter"]

FINGERPRINT_B = 1 << 30  # the fingerprint rounds memory to this: kernels keep some for themselves, each another amount
# What the fact `hypervisor` is where there is none.
BARE_METAL = "none"

FactValue = bool | Int64 | float | str
Values = dict[str, FactValue | None]  # dotted name -> value, as FACTS lists them


class Fact(NamedTuple):
    """What a kind of fact means; `{}` in a text is what the kind leaves open: a name, or ``gpu 0``."""

    grade: Grade | None
    title: str
    negligible: float = 0  # by how much two profiles may differ before it is called a difference
    is_optional: bool = False  # known on some machines only: if one machine does not know it, nothing is said
    option: str = ""  # of `kit run`, that would make two runs alike
    row: str | None = None  # line of the machine's table; null: the title; empty: it is not shown
    shown: str = "{value}"  # in that line
    form: Form = "setting"
    is_hardware: bool = False  # hashed in the hardware fingerprint, which no update of software may change


def _device(title: str, grade: Grade | None = None, form: Form = "setting") -> Fact:
    """Return a fact about the state of an accelerator, which the accelerator may not offer."""
    row = "" if form == "counter" else "{}"
    return Fact(grade, f"{title} of {{}}", is_optional=True, row=row, shown=f"{title} {{value}}", form=form)


# Distributions that no measured step runs through: the kit's profiles, sensors and statistics need them.
OF_THE_KIT = ("cffi", "msgspec", "psutil", "py-cpuinfo", "scipy", "nvidia-ml-py")

# In the order in which differences and lines are listed. A name ends in its unit.
FACTS: dict[str, Fact] = {
    # Facts of a cell
    "data": Fact("incompatible", "data", option="one --data, and one --seed"),
    "other_losses": Fact("incompatible", "losses"),
    "threads": Fact(
        "incompatible", "threads", option="--threads {value} (in a container: on as many CPUs, kit launch --cpus)"
    ),
    "bound_threads": Fact("incompatible", "CPUs of threads", option="a CPU for each thread"),
    "epochs": Fact("incompatible", "epochs", option="one suite, --quick or not"),
    # The machine
    "cpu.model": Fact("warns", "CPU", is_hardware=True),
    "cpu.cores_logical": Fact("warns", "logical CPUs", row="CPU", shown="{value} CPUs", is_hardware=True),
    "cpu.cores_physical": Fact(None, "CPU cores", row="CPU", shown="{value} physical cores", is_hardware=True),
    "cpu.architecture": Fact("warns", "architecture", row="CPU", is_hardware=True),
    "cpu.vendor": Fact(None, "CPU vendor", row=""),
    "cpu.cache.*": Fact(None, "cache {}", row="", is_hardware=True),
    "cpu.core.*": Fact(None, "CPUs of core {}", row=""),
    "cpu.node.*": Fact(None, "CPUs of NUMA node {}", row=""),
    "device.model": Fact("warns", "{}", is_hardware=True),
    "device.device_id": Fact(None, "bus of {}", row="{}", shown="bus {value}"),
    "device.memory_b": Fact(None, "memory of {}", row="", is_hardware=True),
    "device.uuid_sha256": Fact(None, "UUID of {}", row="", is_hardware=True),
    "memory_b": Fact("warns", "memory", negligible=FINGERPRINT_B / 2, is_optional=True, is_hardware=True),
    "hypervisor": Fact("warns", "hypervisor", is_hardware=True),
    "cpu.flags": Fact("warns", "CPU features", row=""),
    "cpu.microcode": Fact("warns", "microcode", row=""),
    "container.engine": Fact("warns", "container"),
    "container.cpu_limit": Fact("warns", "CPU limit", row="container", shown="at most {value} CPUs"),
    "container.memory_limit_b": Fact("warns", "memory limit", row="container", shown="at most {value} of memory"),
    "hosts": Fact("warns", "hosts"),
    # The software
    "kernel": Fact("warns", "kernel", row="system", shown="kernel {value}"),
    "device.driver": Fact("warns", "driver of {}", is_optional=True, row="{}", shown="driver {value}"),
    "software.package.*": Fact("warns", "{}", row="software", shown="{} {value}"),
    **{f"software.package.{name}": Fact(None, name, row="software", shown=f"{name} {{value}}") for name in OF_THE_KIT},
    "python": Fact("warns", "python", row="software", shown="Python {value}"),
    "environment.*": Fact("warns", "{}", row="environment", shown="{}={value}"),
    "environment_set_by.*": Fact(None, "who set {}", row=""),
    # The run
    "program.*": Fact("warns", "program {}"),
    "kit": Fact("warns", "kit", row=""),
    "plan": Fact("warns", "step plan"),
    # The state
    "cpu.governor": Fact("warns", "frequency governor", is_optional=True),
    "cpu.turbo": Fact("warns", "turbo", is_optional=True),
    "device.power_cap_w": _device("power cap", "warns"),
    "device.power_cap_default_w": _device("default power cap"),
    "device.clock_limit_mhz": _device("clock limit", "warns"),
    "device.clock_max_mhz": _device("maximum clock"),
    "device.clock_mhz": _device("clock", form="gauge"),
    "device.temperature_c": _device("temperature", form="gauge"),
    "device.compute_mode": _device("compute mode", "warns"),
    "device.mig": _device("MIG", "warns"),
    "device.mps": _device("MPS"),
    "device.ecc": _device("ECC", "warns"),
    "device.processes": _device("processes", form="gauge"),
    "device.power_violation_ns": _device("time held back by power", form="counter"),
    "device.thermal_violation_ns": _device("time held back by heat", form="counter"),
    "device.pcie_width": _device("PCIe lanes"),
    "device.pcie_width_max": _device("possible PCIe lanes"),
    "device.pcie_generation": _device("PCIe generation", form="gauge"),
    "device.pcie_generation_max": _device("possible PCIe generation"),
    "device.ecc_uncorrected": _device("uncorrected memory errors"),
    "device.remapped_rows": _device("remapped rows"),
    "device.remap_pending": _device("pending remap"),
    "device.remap_failed": _device("failed remap"),
    # Half a busy CPU is what a quiet desktop or a finishing build shows.
    "load_1min": Fact("warns", "load", negligible=0.5, is_optional=True, form="gauge"),
    # One step of most processors' clocks
    "cpu.frequency_mhz": Fact("warns", "CPU frequency", negligible=100.0, is_optional=True, form="gauge"),
    # Two rooms differ by less.
    "cpu.temperature_c": Fact("warns", "temperature", negligible=10.0, is_optional=True, form="gauge"),
    # The host's own housekeeping takes less than this percentage of all CPU time.
    "stolen_pct": Fact("warns", "CPU time stolen by the hypervisor", negligible=1.0, is_optional=True),
    # A run's own threads wait for less than this percentage of the time.
    "waiting_pct": Fact("warns", "time in which a task waited for a CPU", negligible=10.0, is_optional=True),
    "memory_available_b": Fact(None, "available memory", form="gauge"),
    "clock_synchronized": Fact(None, "synchronized clock", form="gauge"),
    "utc_offset_s": Fact(None, "local time ahead of UTC", row="", form="gauge"),
    "context_switches": Fact(None, "context switches", form="counter"),
    "steal_ns": Fact(None, "stolen CPU time", form="counter"),
    "cgroup_throttled": Fact(None, "throttled by the quota", form="counter"),
    "cgroup_throttled_ns": Fact(None, "time throttled by the quota", form="counter"),
    "pressure_cpu_some_ns": Fact(None, "time in which a task waited", form="counter"),
    "core_throttled": Fact(None, "cores throttled by heat", form="counter"),
    "package_throttled": Fact(None, "packages throttled by heat", form="counter"),
    "numa_misses": Fact(None, "pages from a non-preferred node", form="counter"),
    # What explains nothing by itself
    "hostname_sha256": Fact("noted", "host", is_optional=True, row=""),
    "container.image": Fact("noted", "image", row="container", shown="image {value}"),
    "container.image_digest": Fact("noted", "image digest", row=""),
    "libc": Fact("noted", "C library", row="system"),
    "os": Fact("noted", "operating system", row="system"),
    "clock": Fact("noted", "clock"),
    "sensor.*": Fact("noted", "sensor {}"),
    "seed": Fact("noted", "seed"),
    "suite": Fact("noted", "suite"),
    "rounds": Fact("noted", "requested rounds"),
    "schema": Fact("noted", "schema"),
}
# A newer kit may record what this one does not know.
UNKNOWN = Fact("noted", "{}")
# A GPU or TPU by its number.
DEVICE = re.compile(r"([a-z]+)\.(\d+)\.(\w+)")


@functools.cache
def kind_of(name: str) -> tuple[str, str]:
    """Return the key in FACTS of a fact and what the key leaves open, such as ``gpu 0``; an unknown name has none."""
    if (match := DEVICE.fullmatch(name)) is not None and f"device.{match[3]}" in FACTS:
        return f"device.{match[3]}", f"{match[1]} {match[2]}"
    kinds = (kind for kind in FACTS if kind.endswith(".*") and name.startswith(kind[:-1]) and name not in FACTS)
    kind = next(kinds, name)
    return kind, name.removeprefix(kind[:-1]) if kind != name else name


def fact_of(name: str) -> Fact:
    """Return the entry of a fact; of one that another kit knows, what is noted and explains nothing."""
    return FACTS.get(kind_of(name)[0], UNKNOWN)


def title_of(name: str) -> str:
    """Return what people call a fact."""
    return fact_of(name).title.format(kind_of(name)[1])


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


@functools.lru_cache(maxsize=4096)  # all profiles have the same names
def _accelerator_field(name: str) -> tuple[str, int, str] | None:
    """Return kind, number and field of a fact about an accelerator; None of another fact."""
    match = DEVICE.fullmatch(name)
    return (match[1], int(match[2]), match[3]) if match and match[3] in Accelerator.__struct_fields__ else None


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
            if (place := _accelerator_field(name)) is not None:
                kind, index, field = place
                by_device.setdefault((kind, index), {})[field] = value
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
