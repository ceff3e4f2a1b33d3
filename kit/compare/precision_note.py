"""Of runs that were asked for a precision: the cells that did not reach it."""

from __future__ import annotations

from collections.abc import Sequence

from kit.compare.counted import counted, percent
from kit.compare.gate import LabelledProfile
from kit.profile.brief import AnyCell
from kit.stats.precision import SEQUENTIAL_LAUNCHES_MIN

# An interval beyond tenfold, of two or three launches, says only that they are too few.
UNREADABLE_PCT = 1000


def precision_notes(profiles: Sequence[LabelledProfile]) -> list[str]:
    """One line a profile with such cells: ``NOT AS PRECISE AS ASKED in a: ±2 % was asked for; mlp/… has ±3.1 %``."""
    notes = []
    for label, profile in profiles:
        asked = profile.suite.precision_pct
        if asked is None:
            continue
        lacking = [words for result in profile.cells if (words := _lacking(result, asked)) is not None]
        if lacking:
            notes.append(f"NOT AS PRECISE AS ASKED in {label}: ±{asked:g} % was asked for; {'; '.join(lacking)}.")
    return notes


def _lacking(result: AnyCell, asked_pct: float) -> str | None:
    """What `kit run --precision` would go on for: half the interval is from the centre to its upper end."""
    step = result.summary.step_ns
    if step is None or step.low is None or step.high is None or step.value <= 0:
        return f"{result.key} has no interval"
    half_pct = 100 * (step.high / step.value - 1)
    if half_pct <= asked_pct:
        few = step.launches < SEQUENTIAL_LAUNCHES_MIN
        return f"{result.key} rests on {counted(step.launches, 'launch')}" if few else None
    shown = f"±{percent(half_pct)}" if half_pct < UNREADABLE_PCT else "a hopelessly wide one"
    return f"{result.key} has {shown}"
