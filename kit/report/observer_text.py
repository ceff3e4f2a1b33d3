"""The observer test, for a reader: what sampling costs the measured step."""

from __future__ import annotations

from rich.text import Text

from kit.profile.examination import Observed
from kit.profile.schema import ObserverOverhead
from kit.report.grid import grid
from kit.report.plain import NONE, one_line
from kit.report.terminal import to_string

# Of a ratio that is to be told from 1 by a few thousandths.
PLACES = 4
# No step takes so many times longer: a profile that says so gets no line of digits.
ABSURD = 1000.0
# Seen on an overloaded machine, and not with a sampler that sleeps (docs/observer.md).
BELOW_ONE = "a ratio below 1 is no gain: most likely the machine had other work; measure when it is idle"


def render(observed: Observed, *, color: bool = False) -> str:
    """Lay out what `kit doctor --observer` found; with `color`, ANSI colours for a terminal."""
    rows = [
        ["sampler CPU", _or_reason(observed.sampler_cpu_pct, "{:.2f} % of one core", observed.reason)],
        ["samples", _or_reason(observed.samples_per_s, "{:.1f} a second", observed.reason)],
    ]
    lines = [*observer_section(observed.overhead), *grid(rows, [False] * 2)]
    title = Text("Observer test: steps with the sampler running, against steps with it stopped", style="bold cyan")
    return to_string([title, *(Text(f"  {line}") for line in lines)], color=color)


def observer_section(overhead: ObserverOverhead | None) -> list[str]:
    """The ratios with their intervals, in lines, or why there are none."""
    if overhead is None:
        return ["not run: the suite gives it no time (observer_s)"]
    key = one_line(overhead.cell_key)
    if overhead.ratio is None:
        return [f"no number from {key}: {one_line(overhead.reason or 'no reason was recorded')}"]
    rows = [
        ["on / off", "ratio", "95 % interval"],
        ["median step", *_estimate(overhead.ratio, overhead.low, overhead.high)],
        ["mean step", *_estimate(overhead.mean_ratio, overhead.mean_low, overhead.mean_high)],
    ]
    lines = [f"{key}, {overhead.pairs} pairs of blocks", *grid(rows, [False] * 3)]
    if any(high is not None and high < 1 for high in (overhead.high, overhead.mean_high)):
        lines.append(BELOW_ONE)
    return lines


def _estimate(ratio: float | None, low: float | None, high: float | None) -> list[str]:
    interval = NONE if low is None or high is None else f"[{_number(low)}, {_number(high)}]"
    return [NONE if ratio is None else _number(ratio), interval]


def _number(ratio: float) -> str:
    return f"{ratio:.{PLACES}f}" if abs(ratio) < ABSURD else f"{ratio:.1e}"


def _or_reason(value: float | None, words: str, reason: str | None) -> str:
    return words.format(value) if value is not None else f"{NONE} {one_line(reason or '')}".rstrip()
