"""What a self-test found: how often each rule errs and finds on this host, and the host's band."""

from __future__ import annotations

import msgspec

from kit.profile.schema import Estimate, HostBand


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule said, how often. Rules of other tools know no "unresolved"."""

    comparisons: int
    faster: int
    slower: int
    same: int
    unresolved: int


class RuleTally(msgspec.Struct, frozen=True, kw_only=True):
    """One rule over every kind of comparison; null: the rule cannot be asked there, or no launches were left for it."""

    rule: str
    ours: bool
    real: dict[str, Tally | None]  # "shuffled", "apart", and each planted slow-down, "+3 %"
    simulated: dict[str, Tally | None]


class LaunchCount(msgspec.Struct, frozen=True, kw_only=True):
    """Launches of one kind."""

    planted_slowdown_pct: float  # 0: not slowed
    finished: int
    steady: int  # of these, reached a steady state
    measured: Estimate | None  # step time over that of unslowed launches of the same round, all rounds


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """What the launches that were not slowed are like; simulated ones are drawn likewise. Spreads of logarithms."""

    launch_spread: float
    launch_resemblance: float  # correlation with the launch before
    step_spread: float
    step_autocorrelation: float


class SelfTestAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    cell_key: str
    cpu: str
    begun: str  # UTC, ISO 8601
    took_s: float | None  # from the first launch's start to the last one's
    launches: list[LaunchCount]
    failed: int
    launches_a_side: int
    noise: Noise | None
    band_shuffled: float | None  # relative difference that 95 % of these comparisons stayed within
    band_apart: float | None
    band_expected: float | None  # of two runs of ten launches, from how much launches spread and resemble each other
    host_band: HostBand | None
    no_band: str | None  # why `host_band` is null
    rules: list[RuleTally]
