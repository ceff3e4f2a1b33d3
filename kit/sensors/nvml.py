"""NVIDIA GPUs through NVML: energy counter, power, utilization, memory, clock, what slows it, and temperature."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from statistics import median
from types import ModuleType
from typing import Any, NamedTuple

from msgspec.structs import replace

from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport
from kit.sensors.cuda import bus_id
from kit.sensors.protocol import Sensor, now_ns, unavailable

# Of the energy counter: fine against the 20 to 100 ms of known boards, and coarse enough to leave the CPU to others.
POLL_S = 0.001
POLL_LIMIT_S = 0.6
# Five changes are four periods: their median bears one late wake-up.
POLLED_CHANGES = 5
# NVML reference, nvmlUtilization_t: "percent of time over the past sample period" of 1/6 to 1 s.
BUSY_PERIOD_NS = 166_666_667

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


class Boards(NamedTuple):
    """The initialized `pynvml`, which may stay so until the process ends, and a handle for each GPU."""

    nvml: ModuleType
    handles: list[Any]


class Question(NamedTuple):
    """One quantity of a board, and the call that answers it; that raises NVMLError."""

    name: str
    unit: str
    source: str
    read: Callable[[], float]
    update_period_ns: int | None = None


def slowing(mask: int) -> list[str]:
    """Return the reasons in a mask; a bit that the reference did not name when this was written is said by number."""
    bits = [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
    return [SLOWING.get(bit, f"unnamed_{bit:#x}") for bit in bits if not bit & ASKED_FOR]


def open_boards() -> Boards | Reason:
    """Load NVML and list the GPUs, or return which obstacle there is."""
    try:
        import pynvml
    except ImportError:
        return reason("nvml_package_missing")
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
    except pynvml.NVMLError as error:
        codes = {
            pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "nvml_library_missing",
            pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "nvml_driver_not_loaded",
            pynvml.NVML_ERROR_NO_PERMISSION: "nvml_no_permission",
            pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "nvml_version_mismatch",
        }
        code = codes.get(error.value)
        return reason(code) if code else reason("nvml_failed", error=str(error))
    return Boards(pynvml, handles) if handles else reason("nvml_no_gpu")


def open_sampled() -> list[Sensor]:
    """Open seven sensors for each GPU, those that the board does not answer marked so; or one that says why none."""
    boards = open_boards()
    if isinstance(boards, Reason):
        report = SensorReport(
            name="nvml.energy", quantity="energy", unit="J", scope="GPU boards", source="NVML", status="measured"
        )
        return [Sensor(unavailable(report, boards))]
    nvml, handles = boards
    sensors = [
        _open(nvml, index, place, question)
        for index, handle in enumerate(handles)
        for place in [_bus_id(nvml, handle)]
        for question in _questions(nvml, handle)
    ]
    energy = sensors[0]
    period_ns = update_period_ns(lambda: energy.read().value) if energy.is_available else None
    for sensor in sensors:
        if sensor.report.counter and sensor.is_available:  # the boards of one machine are alike
            sensor.report = replace(sensor.report, update_period_ns=period_ns)
    return sensors


def _questions(nvml: ModuleType, handle: object) -> list[Question]:
    def power_instant_w() -> float:
        field = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
        if field.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(field.nvmlReturn)
        return float(field.value.uiVal) / 1000

    energy = "nvmlDeviceGetTotalEnergyConsumption: since the driver was loaded"
    power = Question("power", "W", "NVML_FI_DEV_POWER_INSTANT", power_instant_w)
    try:
        power_instant_w()
    except nvml.NVMLError:
        # NVML reference: GA100 and older answer the present power, later boards a mean.
        mean = "nvmlDeviceGetPowerUsage: mean over 1 s on Ampere and later, GA100 excepted"
        power = Question("power", "W", mean, lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000)
    busy = "nvmlDeviceGetUtilizationRates: share of the last 1/6 to 1 s in which some kernel ran, not occupancy"
    memory = "nvmlDeviceGetMemoryInfo: used, by all processes"
    clock, die = nvml.NVML_CLOCK_SM, nvml.NVML_TEMPERATURE_GPU
    mask = "nvmlDeviceGetCurrentClocksEventReasons: at this moment"
    return [
        Question("energy", "J", energy, lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000),
        power,
        Question("utilization", "%", busy, lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu, BUSY_PERIOD_NS),
        Question("memory", "B", memory, lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used),
        Question("frequency", "MHz", "nvmlDeviceGetClockInfo: SM", lambda: nvml.nvmlDeviceGetClockInfo(handle, clock)),
        Question("temperature", "C", "nvmlDeviceGetTemperature", lambda: nvml.nvmlDeviceGetTemperature(handle, die)),
        Question("throttled", MASK, mask, lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)),
    ]


def _bus_id(nvml: ModuleType, handle: object) -> str | None:
    try:
        written = nvml.nvmlDeviceGetPciInfo(handle).busId
    except nvml.NVMLError:
        return None
    return bus_id(written if isinstance(written, str) else written.decode())


def _open(nvml: ModuleType, index: int, place: str | None, question: Question) -> Sensor:
    """Ask now; what a board does not answer is unavailable for the whole run."""
    report = SensorReport(
        name=f"nvml.{index}.{question.name}",
        quantity="throttling" if question.unit == MASK else question.name,
        unit=question.unit,
        scope=f"GPU {index} board, all processes",
        source=question.source,
        status="measured",
        counter=question.name == "energy",
        update_period_ns=question.update_period_ns,
        device_id=place,
    )
    try:
        question.read()
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_NOT_SUPPORTED:
            why = reason("nvml_no_energy_counter" if report.counter else "nvml_not_supported")
        else:
            why = reason("nvml_failed", error=str(error))
        return Sensor(unavailable(report, why))
    return Sensor(report, question.read)


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
