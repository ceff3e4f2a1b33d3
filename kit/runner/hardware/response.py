"""How a board's power, clock and energy counter respond to a load that begins and ends: delay, window, gain.

What was read and when the loads were stays in the file, so that a response can be judged again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec

from kit.profile.cell import Cell
from kit.profile.reason import Reason
from kit.profile.sensor import SensorReport
from kit.runner.hardware.check import NO_NUMBER, Check, judged, not_checked
from kit.runner.hardware.trial import Bench, Trial
from kit.sensors.protocol import Sensor
from kit.stats.energy import Refusal, Window
from kit.stats.step_response import step_response

RESPONDING = ("energy", "power", "frequency")
# Loads begin and end at other moments of a sensor's period: six edges show a lag to a sixth of it. Both stretches are
# longer than a mean over a second, which boards have.
LOADS, LOAD_S, IDLE_S = 3, 4.0, 3.0
# An energy counter takes 4 ms to answer; known boards renew it each 20 to 100 ms.
READ_EVERY_S = 0.02
# A reading ends within milliseconds: what takes longer hangs in a driver.
READ_LIMIT_S = 2.0
# Of a sensor that does not say how often it is fresh.
PERIOD_UNKNOWN_NS = 100_000_000
# Of the update periods of a sensor of whose lag nothing is allowed for: one, and half of one for the readings' spacing.
LAG_PERIODS_MAX = 1.5
GAIN_LIMIT_PCT = 5.0


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What one sensor made of the loads. Null: `reason` says why."""

    sensor: str
    unit: str  # of the levels: a counter's joules are watts there
    cell: str  # the load
    delay_ns: int | None = None  # dead time
    window_ns: int | None = None  # of its moving mean
    lag_ns: int | None = None  # delay + window / 2: by so much its values lie behind the truth
    lag_low_ns: int | None = None  # the smallest that one load shows,
    lag_high_ns: int | None = None  # and the largest
    period_ns: int | None = None  # between fresh values
    spacing_ns: int | None = None  # between readings
    before: float | None = None  # levels
    load: float | None = None
    after: float | None = None
    gain: float | None = None  # of a counter: its level under load over that of its board's power
    lag_limit_ns: int | None = None  # that joules allow for
    reason: Reason | None = None
    device_id: str | None = None
    loads: list[Window] = []  # begin and end of each, on CLOCK_MONOTONIC_RAW
    at_ns: list[int] = []
    values: list[float | None] = []


class Responses(NamedTuple):
    """Of all boards' sensors."""

    responses: list[Response]

    def of_boards(self, device_ids: Sequence[str]) -> Responses:
        """Return those of these boards; of all, where a launch does not tell which it used."""
        return Responses([of for of in self.responses if not device_ids or of.device_id in device_ids])

    def checks(self) -> list[Check]:
        """Return whether each sensor of energy and power lags no more than joules allow for, and each counter's gain.

        A clock's response is the board's own: it is in the file, and nothing is asked of it.
        """
        return [check for of in self.responses if not of.sensor.endswith(".frequency") for check in _checks(of)]


def _checks(of: Response) -> Iterable[Check]:
    if of.lag_ns is None or of.lag_limit_ns is None:
        yield not_checked("sensor_lag", of.sensor, of.reason or NO_NUMBER)
        return
    yield judged(
        "sensor_lag", of.sensor, abs(of.lag_ns) <= of.lag_limit_ns,
        delay_ns=of.delay_ns or 0, window_ns=of.window_ns or 0, lag_ns=of.lag_ns, lag_limit_ns=of.lag_limit_ns,
    )  # fmt: skip
    if of.gain is not None and of.load is not None:
        is_right = abs(of.gain - 1) <= GAIN_LIMIT_PCT / 100
        yield judged("sensor_gain", of.sensor, is_right, gain=of.gain, load_w=of.load, limit_pct=GAIN_LIMIT_PCT)


class Readings(NamedTuple):
    """Of one sensor."""

    at_ns: list[int]
    values: list[float | None]


class Reader:
    """Reads sensors in turn, beside a load that this process only waits for."""

    def __init__(self, sensors: Sequence[Sensor]) -> None:
        self._sensors = sensors
        self.readings = [Readings([], []) for _ in sensors]
        self._ends = threading.Event()
        # One that hangs in a driver does not keep the process from its end.
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(READ_LIMIT_S)

    def _read(self) -> None:
        while not self._ends.wait(READ_EVERY_S):
            for sensor, readings in zip(self._sensors, self.readings, strict=True):
                reading = sensor.read()
                readings.values.append(reading.value)
                readings.at_ns.append(reading.at_ns)


def responses(bench: Bench, trial: Trial, cell: Cell, sensors: Sequence[Sensor]) -> Responses:
    """Load the board of a trial LOADS times, with idle around each, and return what its sensors made of that."""
    bench.begins("step response")
    loads: list[Window] = []
    with Reader(sensors) as reader:
        _idle(bench)
        for _ in range(LOADS):
            done = trial.load(LOAD_S)
            if done is None:
                break
            begin_ns = done.part.blocks.begin_ns[0]
            loads.append((begin_ns, begin_ns + done.part.blocks.span_ns[0]))
            _idle(bench)
    why = trial.failure(cell) if len(loads) < LOADS else None
    answers = [
        response_of(sensor.report, cell.key, loads, readings, why)
        for sensor, readings in zip(sensors, reader.readings, strict=True)
    ]
    loads_w = {of.sensor: of.load for of in answers}
    return Responses([_with_gain(of, loads_w) for of in answers])


def _idle(bench: Bench) -> None:
    end_s = time.monotonic() + IDLE_S
    while time.monotonic() < end_s:
        bench.stop.check()
        time.sleep(READ_EVERY_S)


def response_of(
    report: SensorReport, cell_key: str, loads: list[Window], readings: Readings, why: Reason | None
) -> Response:
    """Return what a sensor made of loads; `why`: there are none, or too few."""
    # A reader that hangs in a driver may go on.
    at_ns = list(readings.at_ns)
    values = readings.values[: len(at_ns)]
    period_ns = report.update_period_ns or PERIOD_UNKNOWN_NS
    known: dict[str, Any] = {
        "sensor": report.name,
        "unit": "W" if report.counter else report.unit,
        "cell": cell_key,
        "device_id": report.device_id,
        "lag_limit_ns": report.lag_max_ns or round(LAG_PERIODS_MAX * period_ns),
        "loads": loads,
        "at_ns": at_ns,
        "values": values,
    }
    if not loads:
        return Response(**known, reason=why or NO_NUMBER)
    response = step_response(at_ns, values, loads, report.update_period_ns, is_counter=report.counter)
    if isinstance(response, Refusal):
        return Response(**known, reason=Reason(code=response.code, values={**response.values}))
    return Response(**known, **response._asdict())


def _with_gain(of: Response, loads_w: Mapping[str, float | None]) -> Response:
    """Return a counter's response with its level over its board's power."""
    power_w = loads_w.get(f"{of.sensor.removesuffix('.energy')}.power")
    if not of.sensor.endswith(".energy") or of.load is None or not power_w:
        return of
    return msgspec.structs.replace(of, gain=of.load / power_w)
