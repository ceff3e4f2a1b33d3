"""Of runs that were asked for a precision: the cells that did not reach it."""

from __future__ import annotations

from collections.abc import Sequence

from kit.compare.counted import percent
from kit.compare.gate import LabelledProfile
from kit.compare.graded import several
from kit.profile.brief import AnyCell

# An interval beyond tenfold, of two or three launches, says only that they are too few.
UNREADABLE_PCT = 1000


def precision_notes(profiles: Sequence[LabelledProfile]) -> list[str]:
    """One line a profile with such cells: ``WIDER THAN ASKED in a: ±2 % was asked for; mlp/… has ±3.1 %``."""
    notes = []
    for label, profile in profiles:
        asked = profile.suite.precision_pct
        if asked is None:
            continue
        wider = [words for result in profile.cells if (words := _wider(result, asked)) is not None]
        if wider:
            notes.append(f"WIDER THAN ASKED in {label}: ±{asked:g} % was asked for; {several(wider)}.")
    return notes


def _wider(result: AnyCell, asked_pct: float) -> str | None:
    """Half the interval, as `kit run --precision` measures it: from the centre to its upper end."""
    step = result.summary.step_ns
    if step is None or step.low is None or step.high is None or step.value <= 0:
        return f"{result.key} has no interval"
    half_pct = 100 * (step.high / step.value - 1)
    if half_pct <= asked_pct:
        return None
    shown = f"±{percent(half_pct)}" if half_pct < UNREADABLE_PCT else "a hopelessly wide one"
    return f"{result.key} has {shown}"
