"""NVIDIA GPUs through NVML: energy counter, power, utilization, memory, clock, what slows it, and temperature."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from msgspec.structs import replace

from kit.profile.sensor import SensorReport
from kit.sensors import clock_events, nvml_library
from kit.sensors.protocol import Sensor
from kit.sensors.source import Readable, Unavailable
from kit.sensors.update_period import measured_update_period_ns

POWER_INSTANT = "NVML_FI_DEV_POWER_INSTANT"
# NVML reference, nvmlDeviceGetPowerUsage: GA100 and older answer the present power, later boards a mean.
POWER_USAGE = "nvmlDeviceGetPowerUsage: mean over 1 s on Ampere and later, GA100 excepted"
# NVML reference, nvmlUtilization_t: "percent of time over the past sample period" of 1/6 to 1 s.
UTILIZATION = "nvmlDeviceGetUtilizationRates: share of the last 1/6 to 1 s in which some kernel ran, not occupancy"
# NVML reference, NvmlClocksEventReasons; kit.sensors.clock_events has the bits in words.
CLOCK_EVENTS = "a bit mask, NVML's clocks event reasons at this moment"
# Who has none, where that is known: quantity -> words.
NO_COUNTER = {"energy": " (the energy counter: Volta and later; virtual GPUs and MIG slices often none)"}
# Drivers fail a single read now and then; a board that lacks a counter fails every one.
OPEN_ATTEMPTS = 3


class Question(NamedTuple):
    """One quantity of one board, and the call that answers it."""

    suffix: str
    quantity: str
    unit: str
    source: str
    value: Callable[[], float]


def open_all() -> list[Sensor]:
    """Seven sensors per GPU, those that the board does not answer marked so; or what keeps NVML from starting."""
    nvml, obstacle = nvml_library.load()
    if nvml is None:
        return _nothing(obstacle or nvml_library.LIBRARY_NOT_FOUND)
    try:
        count = nvml.nvmlDeviceGetCount()
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    except nvml.NVMLError as error:
        nvml.nvmlShutdown()
        return _nothing(_reason(nvml, error.value, "listing the GPUs"))
    if not handles:
        nvml.nvmlShutdown()
        return _nothing(nvml_library.NO_GPU)
    return [
        _open(nvml, index, question) for index, handle in enumerate(handles) for question in _questions(nvml, handle)
    ]


def _questions(nvml: ModuleType, handle: object) -> list[Question]:
    return [
        Question(
            "energy",
            "energy",
            "J",
            "nvmlDeviceGetTotalEnergyConsumption; cumulative since the driver was loaded",
            lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000,
        ),
        _power(nvml, handle),
        Question(
            "utilization",
            "utilization",
            "%",
            UTILIZATION,
            lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        ),
        Question(
            "memory",
            "memory",
            "B",
            "nvmlDeviceGetMemoryInfo: used, by all processes",
            lambda: float(nvml.nvmlDeviceGetMemoryInfo(handle).used),
        ),
        Question(
            "frequency",
            "frequency",
            "MHz",
            "nvmlDeviceGetClockInfo: SM clock",
            lambda: float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        ),
        Question(
            "temperature",
            "temperature",
            "C",
            "nvmlDeviceGetTemperature: GPU die",
            lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        ),
        _clock_events(nvml, handle),
    ]


def _power(nvml: ModuleType, handle: object) -> Question:
    """The instantaneous field where the board has it; the older call says a mean on some boards."""

    def instant_w() -> float:
        field = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
        if field.nvmlReturn != nvml.NVML_SUCCESS:
            raise nvml.NVMLError(field.nvmlReturn)
        return float(field.value.uiVal) / 1000

    def usage_w() -> float:
        return float(nvml.nvmlDeviceGetPowerUsage(handle)) / 1000

    try:
        instant_w()
    except nvml.NVMLError:
        return Question("power", "power", "W", POWER_USAGE, usage_w)
    return Question("power", "power", "W", POWER_INSTANT, instant_w)


def _clock_events(nvml: ModuleType, handle: object) -> Question:
    """By the call's present name, or by the older one where the driver's library knows that alone."""
    name = "nvmlDeviceGetCurrentClocksEventReasons"
    try:
        getattr(nvml, name)(handle)
    except nvml.NVMLError as error:
        if error.value == nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            name = "nvmlDeviceGetCurrentClocksThrottleReasons"
    mask = getattr(nvml, name)
    return Question(clock_events.SUFFIX, "throttling", "1", f"{name}: {CLOCK_EVENTS}", lambda: float(mask(handle)))


def _open(nvml: ModuleType, index: int, question: Question) -> Sensor:
    """Ask now; a board that does not answer says why for the whole launch."""
    name = f"nvml.{index}.{question.suffix}"
    scope = f"GPU {index} board, all processes"
    code = _first_failure(nvml, question)
    if code is not None:
        reason = _reason(nvml, code, f"{question.quantity} of GPU {index}", question.quantity)
        return Unavailable(name, question.quantity, question.unit, scope, question.source, reason=reason)
    report = SensorReport(
        name=name,
        quantity=question.quantity,
        unit=question.unit,
        scope=scope,
        source=question.source,
        status="measured",
    )
    sensor = Readable(report, question.value, (nvml.NVMLError,))
    if question.quantity != "energy":
        return sensor
    period_ns = measured_update_period_ns(lambda: sensor.read().value)
    return Readable(replace(report, update_period_ns=period_ns), question.value, (nvml.NVMLError,))


def _first_failure(nvml: ModuleType, question: Question) -> int | None:
    """Error code of a question that a board never answers; None once it has answered."""
    code = None
    for _ in range(OPEN_ATTEMPTS):
        try:
            question.value()
        except nvml.NVMLError as error:
            code = int(error.value)
        else:
            return None
    return code


def _reason(nvml: ModuleType, code: int, what: str, quantity: str = "") -> str:
    known = {
        nvml.NVML_ERROR_NOT_SUPPORTED: f"the board or its driver does not offer it{NO_COUNTER.get(quantity, '')}",
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND: "the driver is too old for this call: update it",
        nvml.NVML_ERROR_NO_PERMISSION: "no permission: ask as root, or give this user access to /dev/nvidia*",
    }
    return f"{what}: {known.get(code, str(nvml.NVMLError(code)))}"


def _nothing(reason: str) -> list[Sensor]:
    scope = "GPU boards"
    return [
        Unavailable("nvml.energy", "energy", "J", scope, "NVML", reason=reason),
        Unavailable("nvml.utilization", "utilization", "%", scope, "NVML", reason=reason),
    ]
