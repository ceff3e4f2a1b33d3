"""NVIDIA GPUs through NVML: energy, power, utilization, memory, clock, temperature, what slows it and for how long."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from statistics import median
from types import ModuleType
from typing import Any, NamedTuple

from msgspec.structs import replace

from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport
from kit.sensors.cuda import bus_id
from kit.sensors.measured_lag import Lags, measured_lags
from kit.sensors.protocol import Sensor, now_ns

# Of the energy counter: fine against the 20 to 100 ms of known boards, and coarse enough to leave the CPU to others.
POLL_S = 0.001
POLL_LIMIT_S = 0.6
# Five changes are four periods: their median bears one late wake-up.
POLLED_CHANGES = 5
# NVML reference, nvmlUtilization_t: "percent of time over the past sample period" of 1/6 to 1 s.
BUSY_PERIOD_NS, BUSY_MEAN_NS = 166_666_667, 1_000_000_000
# Boards renew their power each 15 to 100 ms (Yang et al., SC 2024); an H100 each 100 ms (docs/trust/tested-on.md).
POWER_PERIOD_NS = 100_000_000
# NVML reference, nvmlDeviceGetPowerUsage, where it is a mean.
POWER_MEAN_NS = 1_000_000_000
# How long at most joules are of what ran before: NVML says it of no board. The slowest that its reference names is a
# mean over 1 s, and what it is a mean of is up to 0.1 s old here; an H100's counter lags by -0.03 to +0.05 s
# (docs/trust/tested-on.md).
LAG_MAX_NS = 1_500_000_000

# NVML reference, NvmlClocksEventReasons (once ThrottleReasons): what slows a GPU below the clock it was asked for.
SLOWING = {
    0x004: "software_power_cap",
    0x008: "hardware_slowdown",  # to half the clock or less: heat, power brake, or power drawn too fast
    0x010: "sync_boost",  # held down to the slowest GPU of its group
    0x020: "software_thermal_slowdown",
    0x040: "hardware_thermal_slowdown",
    0x080: "hardware_power_brake",
    0x200: "board_limit",
    0x400: "reliability_limit",
}
# Not slowed, but at the clock that was asked for: 0x001 idle (nothing runs, so no work waits), 0x002 applications
# clocks and 0x100 display clocks (a setting, the same in every launch; the state says it as its clock limit).
ASKED_FOR = 0x001 | 0x002 | 0x100
# Unit of a sensor whose value is a mask of these bits.
MASK = "clocks event mask"


class Board(NamedTuple):
    """One GPU, and the initialized `pynvml`, which stays so until the process ends."""

    nvml: ModuleType
    place: int  # in NVML's order
    handle: Any

    def ask(self, call: str, *arguments: object) -> Any:  # noqa: ANN401 - pynvml has no types
        """Return what a call of NVML answers about this board; None where it has no answer."""
        try:
            return getattr(self.nvml, call)(self.handle, *arguments)
        except self.nvml.NVMLError:
            return None

    def uuid_sha256(self) -> str | None:
        """Return the hash of the board's UUID."""
        uuid = self.ask("nvmlDeviceGetUUID")
        return uuid and hashlib.sha256(uuid.encode()).hexdigest()

    def bus_id(self) -> str | None:
        """Return the PCI bus id as CUDA writes it."""
        pci = self.ask("nvmlDeviceGetPciInfo")
        return pci and bus_id(pci.busId if isinstance(pci.busId, str) else pci.busId.decode())


def slowing(mask: int) -> list[str]:
    """Return the reasons in a mask; a bit that the reference did not name when this was written is said by number."""
    bits = [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
    return [SLOWING.get(bit, f"unnamed_{bit:#x}") for bit in bits if not bit & ASKED_FOR]


def open_boards() -> list[Board] | Reason:
    """Load NVML and list the GPUs, at least one, or return which obstacle there is."""
    try:
        import pynvml
    except ImportError:
        return reason("nvml_package_missing")
    try:
        pynvml.nvmlInit()
        handles = [_handle(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
        boards = [Board(pynvml, place, handle) for place, handle in enumerate(handles) if handle is not None]
    except pynvml.NVMLError as error:
        codes = {
            pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "nvml_library_missing",
            pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "nvml_driver_not_loaded",
            pynvml.NVML_ERROR_NO_PERMISSION: "nvml_no_permission",
            pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "nvml_version_mismatch",
        }
        code = codes.get(error.value)
        return reason(code) if code else reason("nvml_failed", error=str(error))
    return boards or reason("nvml_no_gpu")


def _handle(nvml: ModuleType, index: int) -> Any:  # noqa: ANN401
    """Return NVML's handle of a board; None of one that has fallen off its bus: the others are still there."""
    try:
        return nvml.nvmlDeviceGetHandleByIndex(index)
    except nvml.NVMLError as error:
        if error.value != nvml.NVML_ERROR_GPU_IS_LOST:
            raise
        return None


def open_sampled() -> list[Sensor]:
    """Open the sensors of each GPU, those that the board does not answer marked so; or one that says why none."""
    boards = open_boards()
    if isinstance(boards, Reason):
        report = SensorReport(
            name="nvml.energy", quantity="energy", unit="J", scope="GPUs", source="NVML", status="measured"
        )
        return [Sensor(report, boards)]
    lags = measured_lags()
    sensors = [sensor for board in boards for sensor in _sensors_of(board, lags)]
    counters = [sensor for sensor in sensors if sensor.report.quantity == "energy" and sensor.is_available]
    if counters:  # the boards of one machine are alike
        period_ns = update_period_ns(lambda: counters[0].read().value)
        for counter in counters:
            counter.report = replace(counter.report, update_period_ns=period_ns)
    return sensors


def _sensors_of(board: Board, lags: Lags) -> list[Sensor]:
    nvml, place, handle = board
    bus, uuid = board.bus_id(), board.uuid_sha256()

    def sensor(
        name: str,
        unit: str,
        source: str,
        value: Callable[[], float],
        *,
        update_period_ns: int | None = None,
        mean_over_ns: int | None = None,
    ) -> Sensor:
        report = SensorReport(
            name=f"nvml.{place}.{name}",
            quantity="throttling" if unit in (MASK, "ns") else name,
            unit=unit,
            scope=f"GPU {place}, all processes",
            source=source,
            status="measured",
            counter=unit in ("J", "ns"),
            update_period_ns=update_period_ns,
            mean_over_ns=mean_over_ns,
            lag_max_ns=lags.get((uuid or "", name), LAG_MAX_NS) if unit in ("J", "W") else None,
            device_id=bus,
        )
        try:  # what a board does not answer now is unavailable for the whole run
            value()
        except nvml.NVMLError as error:
            if error.value != nvml.NVML_ERROR_NOT_SUPPORTED:
                return Sensor(report, reason("nvml_failed", error=str(error)))
            return Sensor(report, reason("nvml_no_energy_counter" if unit == "J" else "nvml_not_supported"))
        return Sensor(report, value)

    def power_instant_w() -> float:
        field = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
        if field.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(field.nvmlReturn)
        return float(field.value.uiVal) / 1000

    energy = "nvmlDeviceGetTotalEnergyConsumption: since the driver was loaded"
    power = sensor("power", "W", "NVML_FI_DEV_POWER_INSTANT", power_instant_w, update_period_ns=POWER_PERIOD_NS)
    if not power.is_available:
        # NVML reference: GA100 and older answer the present power, later boards a mean.
        mean = "nvmlDeviceGetPowerUsage: mean over 1 s on Ampere and later, GA100 excepted"
        usage = nvml.nvmlDeviceGetPowerUsage
        power = sensor(
            "power", "W", mean, lambda: usage(handle) / 1000,
            update_period_ns=POWER_PERIOD_NS, mean_over_ns=POWER_MEAN_NS,
        )  # fmt: skip
    busy = "nvmlDeviceGetUtilizationRates: share of the last 1/6 to 1 s in which some kernel ran, not occupancy"
    rates = nvml.nvmlDeviceGetUtilizationRates
    memory = "nvmlDeviceGetMemoryInfo: used, by all processes"
    clock, die = nvml.NVML_CLOCK_SM, nvml.NVML_TEMPERATURE_GPU
    mask = "nvmlDeviceGetCurrentClocksEventReasons: at this moment"
    violation = "nvmlDeviceGetViolationStatus: since the driver was loaded"
    policies = {"power": nvml.NVML_PERF_POLICY_POWER, "thermal": nvml.NVML_PERF_POLICY_THERMAL}

    def violation_ns(policy: int) -> float:
        return float(nvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime)

    return [
        sensor("energy", "J", energy, lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000),
        power,
        sensor(
            "utilization",
            "%",
            busy,
            lambda: rates(handle).gpu,
            update_period_ns=BUSY_PERIOD_NS,
            mean_over_ns=BUSY_MEAN_NS,
        ),
        sensor("memory", "B", memory, lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
        sensor("frequency", "MHz", "nvmlDeviceGetClockInfo: SM", lambda: nvml.nvmlDeviceGetClockInfo(handle, clock)),
        sensor("temperature", "C", "nvmlDeviceGetTemperature", lambda: nvml.nvmlDeviceGetTemperature(handle, die)),
        sensor("throttled", MASK, mask, lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
        *(
            sensor(f"{name}_violation", "ns", violation, partial(violation_ns, policy))
            for name, policy in policies.items()
        ),
    ]


def update_period_ns(value: Callable[[], float | None], limit_s: float = POLL_LIMIT_S) -> int | None:
    """Return the median time between changes of a counter; None where fewer than two came within `limit_s`.

    Vendors rarely say how often a counter gets a fresh value, and boards differ. Failed reads (None) are passed over.
    """
    end_ns = now_ns() + int(limit_s * 1e9)
    last, changes_ns = value(), list[int]()
    while len(changes_ns) < POLLED_CHANGES and now_ns() < end_ns:
        current = value()
        if current is not None and current != last:
            changes_ns.append(now_ns())
            last = current
        time.sleep(POLL_S)
    periods_ns = [later - earlier for earlier, later in pairwise(changes_ns)]
    return int(median(periods_ns)) if periods_ns else None
