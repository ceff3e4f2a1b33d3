"""CPU energy by RAPL (Running Average Power Limit), through the kernel's powercap tree.

    /sys/class/powercap/intel-rapl:0     package-0   ── cores, caches, memory controller, integrated graphics
    /sys/class/powercap/intel-rapl:0:1     dram      ── memory, beside the package (server parts)
    /sys/class/powercap/intel-rapl:1     psys        ── the whole platform, packages included: never add it to them

AMD processors (family 17h and later) appear under the same names. Core and uncore are parts of the package: left out.
"""

from __future__ import annotations

import os
from pathlib import Path

from kit.profile.sensor import SensorReport
from kit.sensors.held_file import HeldFile
from kit.sensors.protocol import Sensor
from kit.sensors.source import Readable, Unavailable
from kit.sensors.stamp import now_ns

POWERCAP_ROOT = Path("/sys/class/powercap")
# Intel SDM volume 3B, "RAPL Interfaces": the energy status registers are updated about every millisecond.
UPDATE_PERIOD_NS = 1_000_000
# The counter falls when it wraps and when it is reset (suspend, reloaded module). A wrap that would mean more than
# this is a reset: no processor package draws 5 kW.
PLAUSIBLE_W = 5000.0
SCOPE_ALL = "CPU packages, all processes"

NO_POWERCAP = (
    "{root} does not exist: the kernel offers no powercap here (a virtual machine, a processor other than Intel or "
    "AMD, or a kernel without CONFIG_POWERCAP); measure on the host"
)
NO_RAPL = (
    "{root} holds no intel-rapl zone: the kernel module is absent or finds no counter (usual in a virtual machine); "
    "on Intel or AMD hardware: modprobe intel_rapl_msr"
)
MASKED = (
    "{zone} leads nowhere: the container masks the powercap tree, as Docker and Podman do since CVE-2020-8694; start "
    "it with --security-opt systempaths=unconfined, and as root"
)
NOT_READABLE = (
    "{file} is readable by root alone, as in every kernel since 2020 (CVE-2020-8694): run as root, "
    "or on the host: chmod a+r {file}"
)


class EnergyCounter:
    """Joules since it was opened, from a counter in microjoules that wraps.

    Raises:
        OSError: from any read that fails.
        ValueError: the file does not hold a number.
    """

    def __init__(self, file: Path, range_uj: int) -> None:
        self._file = HeldFile(file)
        self._range_uj = range_uj
        self._last_uj = int(self._file.read())
        self._last_ns = now_ns()
        self._total_uj = 0
        self._was_reset = False

    def joules(self) -> float | None:
        """Cumulative joules; None for good once the counter was reset, since what it held is lost."""
        raw_uj = int(self._file.read())
        at_ns = now_ns()
        moved_uj = raw_uj - self._last_uj
        if moved_uj < 0:
            moved_uj += self._range_uj
            seconds = max(at_ns - self._last_ns, UPDATE_PERIOD_NS) / 1e9
            self._was_reset |= not 0 <= moved_uj / 1e6 <= PLAUSIBLE_W * seconds
        self._last_uj, self._last_ns = raw_uj, at_ns
        self._total_uj += moved_uj
        return None if self._was_reset else self._total_uj / 1e6

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def powercap_root() -> Path:
    """The powercap tree: KIT_POWERCAP_ROOT, or where the kernel has it."""
    return Path(os.environ.get("KIT_POWERCAP_ROOT", POWERCAP_ROOT))


def open_all(root: Path | None = None) -> list[Sensor]:
    """One energy sensor per package, DRAM and psys zone, or one that says which obstacle there is."""
    root = root or powercap_root()
    if not root.is_dir():
        return [_unavailable("rapl.energy", SCOPE_ALL, root, NO_POWERCAP.format(root=root))]
    zones = sorted(root.glob("intel-rapl:*"))
    if not zones:
        return [_unavailable("rapl.energy", SCOPE_ALL, root, NO_RAPL.format(root=root))]
    sensors = [sensor for zone in zones if (sensor := _open(zone)) is not None]
    return sensors or [_unavailable("rapl.energy", SCOPE_ALL, root, f"{root} holds no package, dram or psys zone")]


def _open(zone: Path) -> Sensor | None:
    """The sensor of one zone; None for a zone that is part of another."""
    file = zone / "energy_uj"
    if not zone.exists():
        return _unavailable(f"rapl.{zone.name}", "not known: zone masked", file, MASKED.format(zone=zone))
    try:
        domain = (zone / "name").read_text().strip()
    except OSError as error:
        return _unavailable(f"rapl.{zone.name}", "not known", file, f"{zone / 'name'}: {error.strerror}")
    if not domain.startswith(("package", "dram", "psys")):
        return None
    name = f"rapl.{_parent_name(zone)}{domain}"
    scope = _scope(domain)
    try:
        counter = EnergyCounter(file, int((zone / "max_energy_range_uj").read_text()))
    except (OSError, ValueError) as error:
        return _unavailable(name, scope, file, _obstacle(file, error))
    report = SensorReport(
        name=name,
        quantity="energy",
        unit="J",
        scope=scope,
        source=f"{file}; cumulative, wrap accounted for",
        status="measured",
        update_period_ns=UPDATE_PERIOD_NS,
    )
    return Readable(report, counter.joules, (OSError, ValueError), counter.close)


def _obstacle(file: Path, error: OSError | ValueError) -> str:
    if isinstance(error, PermissionError):
        return NOT_READABLE.format(file=file)
    if isinstance(error, OSError):
        return f"{error.filename or file} cannot be read: {error.strerror}"
    return f"{file} or max_energy_range_uj beside it does not hold a number"


def _parent_name(zone: Path) -> str:
    """`package-0.` for a zone under a package, so that the dram of two packages are told apart."""
    parent = zone.with_name(zone.name.rpartition(":")[0])
    try:
        return (parent / "name").read_text().strip() + "."
    except OSError:
        return ""


def _scope(domain: str) -> str:
    if domain.startswith("psys"):
        return "whole platform, packages included, all processes"
    if domain.startswith("dram"):
        return "memory of the package, all processes"
    return f"{domain.replace('-', ' ')}: cores, caches, memory controller, integrated graphics; all processes"


def _unavailable(name: str, scope: str, source: Path, reason: str) -> Sensor:
    return Unavailable(name, "energy", "J", scope, str(source), reason=reason)
