"""What an NVIDIA board's processors did, of Hopper and later: their GPU performance monitoring (GPM), without root.

Utilization says that some kernel ran; these say what it did: multiplied in tensor cores, in float32, moved memory.
"""

from __future__ import annotations

from typing import Any

from kit.profile.reason import Reason, reason
from kit.profile.sensor import SensorReport
from kit.sensors.nvml import Board, open_boards
from kit.sensors.protocol import Sensor, now_ns

# NVML reference, GPM functions: its samples are refreshed every 100 ms, so an interval has to be longer than that.
PERIOD_NS = 500_000_000
# Sensor name -> the constant of NVML, of shares in percent.
ACTIVITIES = {
    "sm_activity": "NVML_GPM_METRIC_SM_UTIL",
    "tensor_activity": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "fp32_activity": "NVML_GPM_METRIC_FP32_UTIL",
    "dram_activity": "NVML_GPM_METRIC_DRAM_BW_UTIL",
}


def open_sampled() -> list[Sensor]:
    """Open four sensors for each GPU; none where NVML lists no board, which `kit.sensors.nvml` says why."""
    boards = open_boards()
    return [] if isinstance(boards, Reason) else [sensor for board in boards for sensor in _sensors_of(board)]


def _sensors_of(board: Board) -> list[Sensor]:
    bus, why = board.bus_id(), _why_none(board)
    activity = Activity(board) if why is None else None

    def sensor(name: str, metric: str) -> Sensor:
        report = SensorReport(
            name=f"nvml.{board.place}.{name}",
            quantity="activity",
            unit="%",
            scope=f"GPU {board.place}, all processes",
            source=f"nvmlGpmMetricsGet: {metric}, since the reading before",
            status="measured",
            device_id=bus,
            update_period_ns=PERIOD_NS,
            mean_over_ns=PERIOD_NS,
        )
        number = getattr(board.nvml, metric, None)
        if activity is None or number is None:
            return Sensor(report, why or reason("nvml_not_supported"))
        return Sensor(report, lambda: activity.share_pct(number))

    return [sensor(name, metric) for name, metric in ACTIVITIES.items()]


class Activity:
    """Differences between two samples of one board; the sensors of a board share them."""

    def __init__(self, board: Board) -> None:
        self._nvml, self._handle = board.nvml, board.handle
        self._samples = [self._nvml.nvmlGpmSampleAlloc() for _ in range(2)]
        self._sampled_ns: int | None = None
        self._shares_pct: dict[int, float] = {}

    def share_pct(self, metric: int) -> float | None:
        """Return the share of the time since the samples before; None before there are two."""
        if self._sampled_ns is None or now_ns() - self._sampled_ns >= PERIOD_NS // 2:
            self._sample()
        return self._shares_pct.get(metric)

    def _sample(self) -> None:
        nvml, has_one = self._nvml, self._sampled_ns is not None
        self._samples.reverse()
        nvml.nvmlGpmSampleGet(self._handle, self._samples[1])
        self._sampled_ns = now_ns()
        self._shares_pct = self._differences() if has_one else {}

    def _differences(self) -> dict[int, float]:
        nvml: Any = self._nvml
        asked = nvml.c_nvmlGpmMetricsGet_t()
        asked.version, asked.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(ACTIVITIES)
        asked.sample1, asked.sample2 = self._samples
        for place, name in enumerate(ACTIVITIES.values()):
            asked.metrics[place].metricId = getattr(nvml, name)
        nvml.nvmlGpmMetricsGet(asked)
        answers = [asked.metrics[place] for place in range(len(ACTIVITIES))]
        return {answer.metricId: answer.value for answer in answers if answer.nvmlReturn == nvml.NVML_SUCCESS}


def _why_none(board: Board) -> Reason | None:
    """Return why a board has none of them; None: it has."""
    nvml = board.nvml
    try:
        supported = nvml.nvmlGpmQueryDeviceSupport(board.handle).isSupportedDevice
        probe = nvml.nvmlGpmSampleAlloc()
        try:
            if supported:
                nvml.nvmlGpmSampleGet(board.handle, probe)  # refused by a board in slices
        finally:
            nvml.nvmlGpmSampleFree(probe)
    except nvml.NVMLError as error:
        if error.value != nvml.NVML_ERROR_NOT_SUPPORTED:
            return reason("nvml_failed", error=str(error))
        supported = False
    return None if supported else reason("nvml_no_gpm")
