"""What a metric is. `kit.compare.metrics` has all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kit.compare.sample import Sample
from kit.profile.fields import Value
from kit.profile.schema import Launch
from kit.stats.estimate import SMALLEST_DIFFERENCE

MATTERS = math.log1p(SMALLEST_DIFFERENCE)


@dataclass(frozen=True)
class Metric:
    """What is observed, how it is summed up, and how two cells are compared by it. An entry of METRICS is all it takes.

    Attributes:
        name: column of CSV, key of JSON and axis of a plot; its ending is its unit.
        title: of its column in tables; empty: only other formats have it.
        unit: in which tables show it, a key of `kit.report.columns.WORDS`.
        observe: of a launch: a number; a list, a number a block; (a, b) whose sums' quotient it is; None: nothing.
        over: sums up what the launches gave.
        read: returns the value of a sample at once, instead of these two; with both, `read` is what is shown.
        runs: of the values of several runs; null: these have no such value.
        compare: by ratio or by difference; empty: not compared.
        words: of a value below, and above, the baseline's.
        matters: the smallest difference that matters, given the baseline's samples and values; on the logarithm for a
            ratio.
        kind: what else has to be alike in two launches, as the kind of sensor.
        is_time: others' work slows it, and the spread of sessions is known (`kit.stats.sessions.SESSIONS_SD`).
        is_slowed: others' work slows it, too, and that spread is not known.
        per_sample: steps of another batch do another amount of work, so that samples are compared.
        needs_blocks: launches without a block do not have it.
        shown: in every table, in wide ones, or only in other formats.
        part: of a fit, of energy or of reach: other formats have it where a row has any of these; "rare": where it has
            this one.
        runs_of: name of the metric whose values of several runs `runs` takes; empty: this one.
        mark: letter behind the value, where this other value is true.
    """

    name: str
    title: str = ""
    unit: str = ""
    observe: Callable[[Sample, Launch], Any] | None = None
    over: Callable[[list[Any]], Value | None] | None = None
    read: Callable[[Sample], Value | None] | None = None
    runs: Callable[[list[Any]], Value | None] | None = None
    compare: Literal["ratio", "difference", ""] = ""
    words: tuple[str, str] = ("less", "more")
    matters: Callable[[Sequence[Sample], Sequence[float]], float] = lambda _samples, _values: MATTERS
    kind: Callable[[Sample, Launch], object] = lambda _sample, _launch: None
    is_time: bool = False
    is_slowed: bool = False
    per_sample: bool = False
    needs_blocks: bool = True
    shown: Literal["table", "wide", ""] = "wide"
    part: Literal["", "fit", "energy", "reach", "rare"] = ""
    runs_of: str = ""
    mark: str = ""
