"""A profile without what only `kit show` needs: the fields that comparing reads, under the names that `Profile` has.

Reading ten thousand profiles is quick because what is not named here is skipped, not built.

Fields that every profile on disk has carry no default here: nobody gets a large structure for few bytes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Cell
from kit.profile.clock import ClockSource
from kit.profile.identity import Identity
from kit.profile.int64 import Int64
from kit.profile.launch import Failure, Parity
from kit.profile.schema import (
    CellResult,
    CellSummary,
    HostBand,
    ParityVerdict,
    Profile,
    StateSpan,
    SteadyVerdict,
    SuiteUsed,
)
from kit.profile.sensor import SensorStatus


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


class LaunchSummaryBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `LaunchSummary`."""

    round: Int64
    verdict: SteadyVerdict
    median_ns: Int64 | None
    autocorrelation: float | None
    contended: bool = False


class CellBrief(msgspec.Struct, kw_only=True):
    """Of `CellResult`."""

    key: str
    cell: Cell
    status: Literal["ok", "failed", "incomplete"]
    launches: list[LaunchBrief]
    launch_summaries: list[LaunchSummaryBrief]
    summary: CellSummary
    parity: ParityVerdict | None
    failures: list[Failure]


class SensorBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `SensorReport`."""

    name: str
    status: SensorStatus


class ClockBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `Certificate`."""

    source: ClockSource


class ProfileBrief(msgspec.Struct, kw_only=True):
    """Of `Profile`."""

    schema: str
    id: str
    created: str
    kit: str
    identity: Identity
    state: StateSpan
    clock: ClockBrief | None
    sensors: list[SensorBrief]
    suite: SuiteUsed
    cells: list[CellBrief]
    interrupted: bool
    host_band: HostBand | None = None
    digest: str = ""


# What comparing takes: it reads nothing of a whole profile that a brief has not.
AnyProfile = Profile | ProfileBrief
AnyCell = CellResult | CellBrief


def brief_of(profile: AnyProfile) -> ProfileBrief:
    """The brief of a whole profile; a brief as it is."""
    if isinstance(profile, ProfileBrief):
        return profile
    return msgspec.convert(profile, ProfileBrief, from_attributes=True)
