"""CPU energy by RAPL (Running Average Power Limit), through the kernel's powercap tree.

    /sys/class/powercap/intel-rapl:0     package-0   ── cores, caches, memory controller, integrated graphics
    /sys/class/powercap/intel-rapl:0:1     dram      ── memory, beside the package (server parts)
    /sys/class/powercap/intel-rapl:1     psys        ── the whole platform, packages included: never add it to them

AMD processors (family 17h and later) have the same names. Core and uncore are left out: they are parts of the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from kit.environment import POWERCAP_ROOT
from kit.profile.fields import Reason, reason
from kit.profile.instruments import SensorReport
from kit.sensors.sources import FAILURES, Sensor, fields, file_obstacle, measured, now_ns, read_text

# Intel SDM volume 3B, "RAPL Interfaces": the energy status registers are updated about every millisecond.
UPDATE_PERIOD_NS = 1_000_000
# No package, memory or platform draws so much: if a counter fell and a wrap would mean more, it was reset.
POWER_MAX_W = 10_000
CPUINFO = Path("/proc/cpuinfo")
# On Sandy and Ivy Bridge, servers included, the registers hold the output of a model, which counts events. Haswell and
# later processors measure at their regulators (Hackenberg et al., IPDPSW 2015).
INTEL_MODELLED = [("GenuineIntel", "6", str(model)) for model in (0x2A, 0x2D, 0x3A, 0x3E)]
HACKENBERG = "Hackenberg et al., IPDPSW 2015"
# Zen's registers leave out what data costs (Schöne et al., CLUSTER 2021, arXiv 2108.00808); Hygon's processors are Zen.
ZEN_VENDORS = ("AuthenticAMD", "HygonGenuine")
SCHOENE = "Schöne et al., arXiv 2108.00808"
SCOPES = {
    "package": "cores, caches, memory controller, integrated graphics of the package; all processes",
    "dram": "memory of the package; all processes",
    "psys": "whole platform, packages included; all processes",
}


def open_sampled(cpuinfo: Path = CPUINFO) -> list[Sensor]:
    """Open an energy sensor for each package, DRAM and psys zone, or one that names the obstacle.

    KIT_POWERCAP_ROOT names the powercap tree if it is not where the kernel has it.
    """
    root, modelled = Path(os.environ.get(POWERCAP_ROOT, "/sys/class/powercap")), _why_modelled(cpuinfo)
    sensors = [sensor for zone in sorted(root.glob("intel-rapl:*")) if (sensor := _open(zone, modelled)) is not None]
    why = reason("no_rapl_zone" if root.is_dir() else "no_powercap", root=str(root))
    return sensors or [Sensor(_report("energy", "CPU packages; all processes", root), why)]


def _why_modelled(cpuinfo: Path) -> Reason | None:
    """Return who found that this processor's registers hold a model's energy; None: they count as measured."""
    shown = fields(read_text(cpuinfo).partition("\n\n")[0])
    vendor, family, model = (shown.get(name, "") for name in ("vendor_id", "cpu family", "model"))
    is_old_intel = (vendor, family, model) in INTEL_MODELLED
    if not is_old_intel and vendor not in ZEN_VENDORS:
        return None
    processor = f"{vendor} family {family} model {model}"
    return reason("energy_is_modelled", processor=processor, source=HACKENBERG if is_old_intel else SCHOENE)


def _open(zone: Path, modelled: Reason | None) -> Sensor | None:
    """Open one zone; None for a zone that is part of another."""
    file, name, scope, kind = zone / "energy_uj", zone.name, "not known", ""
    value: Callable[[], float] | Reason
    try:
        if zone.exists():
            domain = (zone / "name").read_text().strip()
            kind = next(filter(domain.startswith, SCOPES), "")
            if not kind:
                return None
            package = zone.with_name(zone.name.rpartition(":")[0]) / "name"
            name, scope = f"{package.read_text().strip()}.{domain}" if package.exists() else domain, SCOPES[kind]
            value = _counter_j(file, _range_uj(zone / "max_energy_range_uj"))
        else:
            scope, value = "not known: masked", reason("powercap_masked", zone=str(zone))
    except PermissionError:
        value = reason("root_only", file=str(file))
    except FAILURES as error:
        value = file_obstacle(Path(getattr(error, "filename", None) or file), error)
    report = _report(name, scope, file)
    # The psys register belongs to the board around the processor.
    if modelled is not None and kind != "psys":
        report = replace(report, status="modelled", reason=modelled)
    return Sensor(report, value)


def _range_uj(file: Path) -> int | None:
    """Return where a zone's counter wraps; None: its driver does not say, or says 0."""
    try:
        range_uj = int(file.read_text())
    except FAILURES:
        return None
    return range_uj if range_uj > 0 else None


def _counter_j(file: Path, range_uj: int | None) -> Callable[[], float]:
    """Return a function that gives joules since now, from a counter in microjoules that wraps at `range_uj`.

    Where it wraps is unknown without a range: a fall then counts as a reset.
    If the counter is reset (its driver is loaded again, the machine sleeps), the joules start again at 0.

    Raises:
        OSError: the file cannot be read, now or at a later read.
        ValueError: the file does not hold a number.
    """
    last_uj, last_ns, total_uj = int(file.read_text()), now_ns(), 0

    def joules() -> float:
        nonlocal last_uj, last_ns, total_uj
        raw_uj, at_ns = int(file.read_text()), now_ns()
        rise_uj = (raw_uj - last_uj) % range_uj if range_uj else raw_uj - last_uj
        # After a long pause a wrap can explain any fall.
        is_wrap = range_uj is not None and rise_uj <= POWER_MAX_W * (at_ns - last_ns + UPDATE_PERIOD_NS) / 1e3
        total_uj = total_uj + rise_uj if raw_uj >= last_uj or is_wrap else 0
        last_uj, last_ns = raw_uj, at_ns
        return total_uj / 1e6

    return joules


def _report(name: str, scope: str, source: Path) -> SensorReport:
    period_ns = UPDATE_PERIOD_NS
    return measured(f"rapl.{name}", "energy", "J", scope, str(source), counter=True, update_period_ns=period_ns)
