"""What is decoded of a launch for a comparison, under the names that `Launch` has.

Fields that every profile on disk has carry no default here: nobody gets a large structure for few bytes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.int64 import Int64
from kit.profile.launch import Failure, Parity


class DataBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """Of `DataUsed`."""

    name: Literal["mnist", "synthetic"]
    sha256: str


class ThreadsBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `Threads`."""

    requested: Int64


class UtilizationBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `Utilization`."""

    throttled_ns: Int64 | None
    gpu_throttled_by: list[str] | None = None


class EvaluationBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `Evaluation`."""

    accuracy: float | None
    updates: Int64 | None = None


class LaunchBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `Launch`."""

    round: Int64
    recompiles: Int64 | None
    graph_breaks: Int64 | None
    threads: ThreadsBrief | None
    data: DataBrief | None
    utilization: UtilizationBrief | None
    evaluation: EvaluationBrief | None
    parity: Parity | None
    planted_slowdown_pct: float = 0.0
    failure: Failure | None
