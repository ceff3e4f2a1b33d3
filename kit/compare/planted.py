"""A self-test's profile: what its rounds found of each planted slow-down, against what was planted."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from kit.compare.pairs import Pairs
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.launch import INJECTED_NS, Launch
from kit.profile.schema import CellResult, Profile
from kit.stats.difference import bounded_exp, over_rounds
from kit.stats.verdict import RULE, Verdict


class NoSelfTestError(KitError):
    """A profile that is no self-test's."""


class PlantedRow(msgspec.Struct, frozen=True, kw_only=True):
    """One member against the base; null: too few rounds."""

    variant: str
    asked_pct: float
    rounds: int
    planted_ratio: float | None = None  # geometric mean over rounds of what was planted
    found_ratio: float | None = None
    low: float | None = None  # 95 % interval of the found ratio
    high: float | None = None
    sd_pct: float | None = None  # of a round's ratio
    inside: bool | None = None  # what was planted lies in the interval
    verdict: Verdict = "unresolved"


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """What a self-test found."""

    cell: Cell
    rows: list[PlantedRow]
    failed: int  # launches
    rule: str = RULE


def found_of(profile: Profile) -> SelfTest:
    """Return what the rounds of a self-test found.

    Raises:
        NoSelfTestError: no launch of the profile was slowed on purpose.
    """
    launches = {result.key: result.launches for result in profile.cells}
    slowdown_pct = {variant.name: variant.slowdown_pct for variant in profile.suite.variants}
    if not any(slowdown_pct.values()):
        raise NoSelfTestError("nothing was planted in this profile; give one that `kit selftest` wrote")
    base = profile.groups[0].baseline
    pairs = Pairs(profile.groups, {result.key: result.cell for result in profile.cells}, launches)
    return SelfTest(
        cell=next(result.cell for result in profile.cells if result.key == base),
        rows=[
            _row(result, base, pairs, slowdown_pct[result.cell.variant])
            for result in profile.cells
            if result.key != base
        ],
        failed=sum(launch.failure is not None for own in launches.values() for launch in own),
    )


def _row(result: CellResult, base: str, pairs: Pairs, asked_pct: float) -> PlantedRow:
    found = pairs.log_ratios(result.key, base)
    planted = {launch.round: _planted_log(launch) for launch in result.launches if launch.gave_number}
    common = sorted(found.keys() & planted.keys())
    row = PlantedRow(
        variant=result.cell.variant,
        asked_pct=asked_pct,
        rounds=len(common),
    )
    difference = over_rounds([found[one] for one in common])
    if difference is None:
        return row
    planted_ratio = bounded_exp(float(np.mean([planted[one] for one in common])))
    return msgspec.structs.replace(
        row,
        planted_ratio=planted_ratio,
        found_ratio=difference.ratio,
        low=difference.low,
        high=difference.high,
        sd_pct=100 * difference.sd,
        inside=difference.low <= planted_ratio <= difference.high,
        verdict=pairs.versus(result.key, base).verdict,
    )


def _planted_log(launch: Launch) -> float:
    """Return ln(step / step without what was planted) of one launch: the median over its blocks."""
    blocks = launch.blocks
    planted = blocks.counters.get(INJECTED_NS)
    if planted is None:
        return 0.0
    logs = [
        -math.log1p(-(planted_ns or 0) / span_ns) for planted_ns, span_ns in zip(planted, blocks.span_ns, strict=True)
    ]
    return float(np.median(logs))
