"""A profile without what only `kit show` needs: the fields that comparing reads.

ProfileRead    what is decoded, under the names that `Profile` has; what is not named is skipped, not built
ProfileBrief   the same with the launches of each cell taken together: ten thousand of them stay in memory

Fields that every profile on disk has carry no default here: nobody gets a large structure for few bytes.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kit.profile.cell import Cell
from kit.profile.clock import ClockSource
from kit.profile.identity import Identity
from kit.profile.int64 import Int64
from kit.profile.launch import Failure
from kit.profile.launch_brief import LaunchBrief
from kit.profile.launches_brief import LaunchesBrief, condense
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


class LaunchSummaryBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `LaunchSummary`."""

    round: Int64
    verdict: SteadyVerdict
    median_ns: Int64 | None
    autocorrelation: float | None
    contended: bool = False


class _CellFields(msgspec.Struct, kw_only=True):
    """Of `CellResult`."""

    key: str
    cell: Cell
    status: Literal["ok", "failed", "incomplete"]
    launch_summaries: list[LaunchSummaryBrief]
    summary: CellSummary
    parity: ParityVerdict | None
    failures: list[Failure]


class CellRead(_CellFields, kw_only=True):
    """As it is decoded."""

    launches: list[LaunchBrief]


class CellBrief(_CellFields, kw_only=True):
    """As it is compared."""

    condensed: LaunchesBrief


class SensorBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `SensorReport`."""

    name: str
    status: SensorStatus


class ClockBrief(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Of `Certificate`."""

    source: ClockSource


class _ProfileFields(msgspec.Struct, kw_only=True):
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
    interrupted: bool
    host_band: HostBand | None = None
    digest: str = ""


class ProfileRead(_ProfileFields, kw_only=True):
    """As it is decoded."""

    cells: list[CellRead]


class ProfileBrief(_ProfileFields, kw_only=True):
    """As it is compared."""

    cells: list[CellBrief]


# What comparing takes: it reads nothing of a whole profile that a brief has not.
AnyProfile = Profile | ProfileBrief
AnyCell = CellResult | CellBrief


def launches_of(result: AnyCell) -> LaunchesBrief:
    """What comparing needs of a cell's launches."""
    if isinstance(result, CellBrief):
        return result.condensed
    return condense(result.cell, result.launches)


def read_of(profile: Profile) -> ProfileRead:
    """What would have been decoded of a whole profile."""
    return msgspec.convert(profile, ProfileRead, from_attributes=True)


def profile_brief(read: ProfileRead, cells: list[CellBrief]) -> ProfileBrief:
    """The brief of a profile, given those of its cells."""
    return ProfileBrief(cells=cells, **{name: getattr(read, name) for name in _ProfileFields.__struct_fields__})


def cell_brief(read: CellRead, condensed: LaunchesBrief) -> CellBrief:
    """The brief of a cell, given that of its launches."""
    return CellBrief(
        key=read.key,
        cell=read.cell,
        status=read.status,
        launch_summaries=read.launch_summaries,
        summary=read.summary,
        parity=read.parity,
        failures=read.failures,
        condensed=condensed,
    )
