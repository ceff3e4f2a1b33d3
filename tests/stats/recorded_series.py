"""Recorded launches and what an eye said of them (recorded/README.md)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).with_name("recorded")
# In the archives, to be compact: ten nanoseconds a unit.
NS_PER_UNIT = 10


class Recorded(NamedTuple):
    """One launch and its label."""

    name: str  # archive, workload, backend, task, round
    step_ns: np.ndarray
    verdict: str
    start: tuple[int, int] | None  # first steady step, the range that was acceptable to the eye
    sure: bool
    aside: bool  # not looked at while the rule was mended

    @property
    def has_steady_state(self) -> bool:
        return self.verdict != "no_steady_state"


def recorded_series() -> list[Recorded]:
    """Every recorded launch, in the order of the labels."""
    labels = tomllib.loads((FOLDER / "labels.toml").read_text())
    return [
        Recorded(
            name=f"{archive}.{name}",
            step_ns=steps[name].astype(np.int64) * NS_PER_UNIT,
            verdict=label["verdict"],
            start=tuple(label["start"]) if "start" in label else None,
            sure=label["sure"],
            aside=label["aside"],
        )
        for archive, of_archive in labels.items()
        for steps in [np.load(FOLDER / f"{archive}.npz")]
        for name, label in of_archive.items()
    ]
