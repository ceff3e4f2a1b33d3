"""For how long a launch has to measure at least, so that joules can be had where a sensor counts them."""

from __future__ import annotations

from collections.abc import Iterable

from kit.profile.launch import StepPlan
from kit.profile.sensor import SensorReport


def energy_answers(sensors: Iterable[SensorReport]) -> bool:
    """Whether any sensor counts energy here."""
    return any(sensor.quantity == "energy" and sensor.status == "measured" for sensor in sensors)


def steady_s_min(steps: StepPlan, sensors: Iterable[SensorReport]) -> float:
    """Joules need a window as long as the suite gave it; without them a cell's own plan may be shorter."""
    return steps.steady_s if energy_answers(sensors) else 0.0
