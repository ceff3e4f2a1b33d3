"""NVIDIA GPUs by the driver's own libraries: what NVML reads, and which GPUs CUDA shows to a process.

    QUANTITIES    what NVML reads now: energy, power, utilization, memory, clock, temperature, what slows a GPU
    ACTIVITIES    what its processors did, by GPU performance monitoring (GPM) of Hopper and later

Utilization shows that some kernel ran. Activities show what it did: products in tensor cores or float32, memory moves.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from kit.environment import GPU_FILE
from kit.errors import KitError
from kit.profile.facts import Identity
from kit.profile.fields import Reason, reason
from kit.profile.instruments import SensorReport
from kit.sensors.sources import Sensor, measured, now_ns

# Names of the sensors that give a GPU's joules, best first. The energy counter includes the whole GPU. GPUs before
# Volta and virtual GPUs have no counter: their power is integrated.
JOULE_SENSORS = (re.compile(r"nvml\.\d+\.energy"), re.compile(r"nvml\.\d+\.power"))

# NVML reference, nvmlUtilization_t: "percent of time over the past sample period" of 1/6 to 1 s.
BUSY_PERIOD_NS, BUSY_MEAN_NS = 166_666_667, 1_000_000_000
# GPUs renew their power each 15 to 100 ms (Yang et al., SC 2024); an H100 each 100 ms (docs/trust/tested-on.md).
POWER_PERIOD_NS = 100_000_000
# NVML reference, nvmlDeviceGetPowerUsage: GA100 and older answer the present power, later GPUs a mean over a second.
POWER_MEAN_NS = 1_000_000_000
# NVML does not say how far a GPU's joules lag. The slowest value in its reference is a mean over 1 s, of power that is
# up to 0.1 s old here. An H100's counter lags by -0.03 to +0.05 s (docs/trust/tested-on.md).
LAG_MAX_NS = 1_500_000_000
# Planted lags of 0 to 0.5 s came back to 0.04 s (docs/how-to/selftest.md).
LAG_ERROR_NS = 50_000_000
# The pause between two polls of the energy counter: it is shorter than the 20 to 100 ms of known GPUs, and leaves the
# CPU to others.
POLL_S = 0.001
POLL_LIMIT_S = 0.6
# Five changes are four periods: one late wake-up does not change their median.
POLLED_CHANGES = 5
# NVML reference, GPM functions: samples are refreshed every 100 ms, so an interval has to be longer than that.
ACTIVITY_PERIOD_NS = 500_000_000

# NVML reference, NvmlClocksEventReasons (once ThrottleReasons): what slows a GPU below the clock that was requested.
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
# These do not slow a GPU below the requested clock: 0x001 idle (no work waits), 0x002 applications clocks and 0x100
# display clocks (a setting, which is the same in every launch and is the clock limit in the state).
REQUESTED = 0x001 | 0x002 | 0x100
# The unit of a sensor whose value is a mask of these bits.
MASK = "clocks event mask"


def slowing(mask: int) -> list[str]:
    """Return the reasons in a mask; a bit that the reference does not name is given by number."""
    bits = [1 << position for position in range(mask.bit_length()) if mask >> position & 1]
    return [SLOWING.get(bit, f"unnamed_{bit:#x}") for bit in bits if not bit & REQUESTED]


class NvmlGpu(NamedTuple):
    """One GPU, and `pynvml`, which stays initialized until the process ends."""

    nvml: ModuleType
    nvml_index: int
    handle: Any

    def ask(self, call: str, *arguments: object) -> Any:  # noqa: ANN401 - pynvml has no types
        """Return NVML's answer about this GPU; None if it has none."""
        try:
            return getattr(self.nvml, call)(self.handle, *arguments)
        except self.nvml.NVMLError:
            return None

    def uuid_sha256(self) -> str | None:
        """Return the hash of the GPU's UUID."""
        uuid = self.ask("nvmlDeviceGetUUID")
        return uuid and hashlib.sha256(uuid.encode()).hexdigest()

    def bus_id(self) -> str | None:
        """Return the PCI bus id as CUDA writes it."""
        pci = self.ask("nvmlDeviceGetPciInfo")
        return pci and _bus_id(pci.busId if isinstance(pci.busId, str) else pci.busId.decode())


def open_gpus() -> list[NvmlGpu] | Reason:
    """Load NVML and return at least one GPU, or the obstacle.

    A GPU that has fallen off its bus is left out, and the others keep their indices.
    """
    try:
        import pynvml
    except ImportError:
        return reason("nvml_package_missing")
    gpus = []
    try:
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                gpus.append(NvmlGpu(pynvml, index, pynvml.nvmlDeviceGetHandleByIndex(index)))
            except pynvml.NVMLError as error:
                if error.value != pynvml.NVML_ERROR_GPU_IS_LOST:
                    raise
    except pynvml.NVMLError as error:
        codes = {
            pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "nvml_library_missing",
            pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "nvml_driver_not_loaded",
            pynvml.NVML_ERROR_NO_PERMISSION: "nvml_no_permission",
            pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "nvml_version_mismatch",
        }
        code = codes.get(error.value)
        return reason(code) if code else reason("nvml_failed", error=str(error))
    return gpus or reason("nvml_no_gpu")


class NvmlQuantity(NamedTuple):
    """What NVML reads from a GPU. Quantities of one name are alternatives: the first with an answer is used."""

    name: str
    unit: str  # joules and nanoseconds are counters
    source: str
    read: Callable[[Any, Any], float]  # from pynvml and the GPU's handle
    update_period_ns: int | None = None
    mean_over_ns: int | None = None


def _power_instant_w(nvml: Any, handle: Any) -> float:  # noqa: ANN401
    field = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_POWER_INSTANT])[0]
    if field.nvmlReturn != nvml.NVML_SUCCESS:
        raise nvml.NVMLError(field.nvmlReturn)
    return float(field.value.uiVal) / 1000


def _violation_ns(policy: str, nvml: Any, handle: Any) -> float:  # noqa: ANN401
    return float(nvml.nvmlDeviceGetViolationStatus(handle, getattr(nvml, policy)).violationTime)


QUANTITIES = (
    NvmlQuantity(
        "energy", "J", "nvmlDeviceGetTotalEnergyConsumption: since the driver was loaded",
        lambda nvml, gpu: nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000,
    ),
    NvmlQuantity("power", "W", "NVML_FI_DEV_POWER_INSTANT", _power_instant_w, POWER_PERIOD_NS),
    NvmlQuantity(
        "power", "W", "nvmlDeviceGetPowerUsage: mean over 1 s on Ampere and later, GA100 excepted",
        lambda nvml, gpu: nvml.nvmlDeviceGetPowerUsage(gpu) / 1000, POWER_PERIOD_NS, POWER_MEAN_NS,
    ),
    NvmlQuantity(
        "utilization", "%",
        "nvmlDeviceGetUtilizationRates: share of the last 1/6 to 1 s in which some kernel ran, not occupancy",
        lambda nvml, gpu: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu, BUSY_PERIOD_NS, BUSY_MEAN_NS,
    ),
    NvmlQuantity(
        "memory", "B", "nvmlDeviceGetMemoryInfo: used, by all processes",
        lambda nvml, gpu: nvml.nvmlDeviceGetMemoryInfo(gpu).used,
    ),
    NvmlQuantity(
        "frequency", "MHz", "nvmlDeviceGetClockInfo: SM",
        lambda nvml, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM),
    ),
    NvmlQuantity(
        "temperature", "C", "nvmlDeviceGetTemperature",
        lambda nvml, gpu: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU),
    ),
    NvmlQuantity(
        "throttled", MASK, "nvmlDeviceGetCurrentClocksEventReasons: at this moment",
        lambda nvml, gpu: nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu),
    ),
    *(
        NvmlQuantity(
            f"{cause}_violation", "ns", "nvmlDeviceGetViolationStatus: since the driver was loaded",
            partial(_violation_ns, f"NVML_PERF_POLICY_{cause.upper()}"),
        )
        for cause in ("power", "thermal")
    ),
)  # fmt: skip
# Sensor name -> NVML's constant. All are percentages.
ACTIVITIES = {
    "sm_activity": "NVML_GPM_METRIC_SM_UTIL",
    "tensor_activity": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "fp32_activity": "NVML_GPM_METRIC_FP32_UTIL",
    "dram_activity": "NVML_GPM_METRIC_DRAM_BW_UTIL",
}


def open_sampled() -> list[Sensor]:
    """Open the sensors of each GPU, including those without an answer; or one that says why there is no GPU."""
    gpus = open_gpus()
    if isinstance(gpus, Reason):
        return [Sensor(measured("nvml.energy", "energy", "J", "GPUs", "NVML"), gpus)]
    lags_ns = measured_lags_ns()
    sensors = [sensor for gpu in gpus for sensor in (*_readings(gpu, lags_ns), *_activities(gpu))]
    counters = [sensor for sensor in sensors if sensor.report.quantity == "energy" and sensor.is_available]
    if counters:  # the GPUs of one machine are alike
        period_ns = update_period_ns(lambda: counters[0].read().value)
        for counter in counters:
            counter.report = replace(counter.report, update_period_ns=period_ns)
    return sensors


def _report(gpu: NvmlGpu, name: str, quantity: str, unit: str, source: str, **more: Any) -> SensorReport:  # noqa: ANN401
    scope = f"GPU {gpu.nvml_index}, all processes"
    return measured(f"nvml.{gpu.nvml_index}.{name}", quantity, unit, scope, source, device_id=gpu.bus_id(), **more)


def _readings(gpu: NvmlGpu, lags_ns: dict[tuple[str | None, str], int]) -> list[Sensor]:
    """Open the quantities. One without an answer now is unavailable for the whole run."""
    nvml, uuid, sensors = gpu.nvml, gpu.uuid_sha256(), dict[str, Sensor]()
    for name, unit, source, read, period_ns, mean_ns in QUANTITIES:
        if name in sensors and sensors[name].is_available:
            continue
        report = _report(
            gpu, name, "throttling" if unit in (MASK, "ns") else name, unit, source,
            counter=unit in ("J", "ns"), update_period_ns=period_ns, mean_over_ns=mean_ns,
            lag_max_ns=lags_ns.get((uuid, name), LAG_MAX_NS) if unit in ("J", "W") else None,
        )  # fmt: skip
        value: Callable[[], float] | Reason = partial(read, nvml, gpu.handle)
        try:
            read(nvml, gpu.handle)
        except nvml.NVMLError as error:
            value = _why(gpu, error, "nvml_no_energy_counter" if unit == "J" else "nvml_not_supported")
        sensors[name] = Sensor(report, value)
    return list(sensors.values())


def _why(gpu: NvmlGpu, error: Any, not_supported: str) -> Reason:  # noqa: ANN401
    """Return the reason for an NVMLError: `not_supported` is its code if the GPU does not support the call."""
    if error.value == gpu.nvml.NVML_ERROR_NOT_SUPPORTED:
        return reason(not_supported)
    return reason("nvml_failed", error=str(error))


def _activities(gpu: NvmlGpu) -> list[Sensor]:
    """Open the activities, each with the reason if the GPU has none."""
    nvml, sensors = gpu.nvml, []
    activity_pct: Callable[[int], float | None] | Reason = reason("nvml_no_gpm")
    try:
        if nvml.nvmlGpmQueryDeviceSupport(gpu.handle).isSupportedDevice:
            activity_pct = _Interval(gpu).activity_pct
    except nvml.NVMLError as error:
        activity_pct = _why(gpu, error, "nvml_no_gpm")
    for name, metric in ACTIVITIES.items():
        report = _report(
            gpu, name, "activity", "%", f"nvmlGpmMetricsGet: {metric}, since the reading before",
            update_period_ns=ACTIVITY_PERIOD_NS, mean_over_ns=ACTIVITY_PERIOD_NS,
        )  # fmt: skip
        value: Callable[[], float | None] | Reason = (
            activity_pct if isinstance(activity_pct, Reason) else partial(activity_pct, getattr(nvml, metric))
        )
        sensors.append(Sensor(report, value))
    return sensors


class _Interval:
    """The latest two GPM samples of a GPU, whose differences are its activities."""

    def __init__(self, gpu: NvmlGpu) -> None:
        """Take a first sample, which a GPU in slices refuses with an NVMLError."""
        self._nvml: Any = gpu.nvml
        self._handle, self._samples = gpu.handle, [gpu.nvml.nvmlGpmSampleAlloc() for _ in range(2)]
        self._nvml.nvmlGpmSampleGet(self._handle, self._samples[1])
        self._sampled_ns: int | None = None
        self._activities_pct: dict[int, float] = {}

    def activity_pct(self, metric: int) -> float | None:
        """Return an activity between the latest two samples, which are renewed if old; None before there are two."""
        nvml = self._nvml
        if self._sampled_ns is not None and now_ns() - self._sampled_ns < ACTIVITY_PERIOD_NS // 2:
            return self._activities_pct.get(metric)
        self._samples.reverse()
        nvml.nvmlGpmSampleGet(self._handle, self._samples[1])
        is_first, self._sampled_ns, self._activities_pct = self._sampled_ns is None, now_ns(), {}
        if not is_first:
            request = nvml.c_nvmlGpmMetricsGet_t()
            request.version, request.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(ACTIVITIES)
            request.sample1, request.sample2 = self._samples
            for index, name in enumerate(ACTIVITIES.values()):
                request.metrics[index].metricId = getattr(nvml, name)
            nvml.nvmlGpmMetricsGet(request)
            for answer in request.metrics[: len(ACTIVITIES)]:
                if answer.nvmlReturn == nvml.NVML_SUCCESS:
                    self._activities_pct[answer.metricId] = answer.value
        return self._activities_pct.get(metric)


def update_period_ns(value: Callable[[], float | None], limit_s: float = POLL_LIMIT_S) -> int | None:
    """Return the median time between changes of a counter; None if fewer than two came within `limit_s`.

    Vendors rarely document how often a counter is updated, and GPUs differ. Failed reads (None) are ignored.
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


class _Response(msgspec.Struct):
    sensor: str
    device_id: str | None = None
    lag_low_ns: int | None = None
    lag_high_ns: int | None = None


class _SelfTest(msgspec.Struct):
    identity: Identity
    responses: list[_Response]


def measured_lags_ns() -> dict[tuple[str | None, str], int]:
    """Return the largest lag that `kit selftest --device gpu` measured, plus the error of that measurement.

    The keys are the SHA-256 of a GPU's UUID and the name of its sensor, such as "energy". Without KIT_GPU_FILE there
    are none.

    Raises:
        KitError: KIT_GPU_FILE does not name a file of such a self-test.
    """
    path, lags_ns = os.environ.get(GPU_FILE), dict[tuple[str | None, str], int]()
    if not path:
        return lags_ns
    try:
        record = msgspec.json.decode(Path(path).read_bytes(), type=_SelfTest)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a result of `kit selftest --device gpu`"
        raise KitError(f"{GPU_FILE}={path}: {why}; give the file of such a self-test, or unset {GPU_FILE}") from None
    uuids = {gpu.device_id: gpu.uuid_sha256 for gpu in record.identity.accelerators()}
    for response in record.responses:
        # An early reading is as wrong as a late one.
        known_ns = [abs(lag_ns) for lag_ns in (response.lag_low_ns, response.lag_high_ns) if lag_ns is not None]
        uuid = uuids.get(response.device_id)
        if known_ns and uuid:
            key = uuid, response.sensor.rpartition(".")[2]
            lags_ns[key] = max(lags_ns.get(key, 0), max(known_ns) + LAG_ERROR_NS)
    return lags_ns


# CUDA knows which GPUs this process sees. A framework's device i is CUDA's device i, and the bus id leads to NVML's.
CUDA_LIBRARY = "libcuda.so.1"
# CUDA driver API: "Domain:Bus:Device.Function" with its final zero takes at least 13 characters.
BUS_ID_B = 32


@functools.cache
def _cuda() -> ctypes.CDLL | None:
    """Return the initialized CUDA driver; None if there is none."""
    try:
        driver = ctypes.CDLL(CUDA_LIBRARY)
    except OSError:
        return None
    return None if driver.cuInit(0) else driver


def pci_bus_ids(count: int) -> list[str]:
    """Return the PCI bus ids, such as 0000:65:00.0, of the first GPUs that this process sees; none without a driver."""
    driver, ids = _cuda(), list[str]()
    if driver is None:
        return ids
    for ordinal in range(count):
        device, text = ctypes.c_int(), ctypes.create_string_buffer(BUS_ID_B)
        if driver.cuDeviceGet(ctypes.byref(device), ordinal) or driver.cuDeviceGetPCIBusId(text, BUS_ID_B, device):
            return []
        ids.append(_bus_id(text.value.decode()))
    return ids


def memory_b(ordinal: int) -> int | None:
    """Return the bytes of memory of CUDA's device `ordinal`; None without a driver."""
    driver, device, size = _cuda(), ctypes.c_int(), ctypes.c_size_t()
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), ordinal):
        return None
    return None if driver.cuDeviceTotalMem_v2(ctypes.byref(size), device) else size.value


def _bus_id(text: str) -> str:
    """Return a bus id as CUDA writes it: NVML writes eight digits of the domain."""
    domain, _, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"
