"""Launches of a self-test with planted truths: levels, steps around them, and slow-downs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

from kit.profile.launch import Launch
from kit.stats.rules import MeasuredLaunch

LEVEL_NS = 2_000_000.0
WARMUP, STEADY = 40, 160


def measured(random, launches, *, spread=0.01, steps=100, step_spread=0.05, slower_pct=0.0, levels=None):
    """Launches in rounds of their own, each with its own level."""
    levels = random.normal(0, spread, launches) if levels is None else levels
    found = []
    for round, level in enumerate(levels):
        steady_ns = LEVEL_NS * (1 + slower_pct / 100) * np.exp(level + random.normal(0, step_spread, steps))
        found.append(MeasuredLaunch(round, float(np.median(steady_ns)), steady_ns))
    return found


def self_test_launches(random, rounds, *, kinds=(0.0, 0.0, 2.0, 3.0, 5.0), spread=0.005, drift=lambda place: 0.0):
    """Launches as a self-test keeps them, in time order; `drift` gives the host's own ln level by place in the run."""
    begun, launches = datetime(2026, 1, 1, tzinfo=UTC), []
    for round in range(rounds):
        for slowdown_pct in random.permutation(kinds):
            place = len(launches)
            level = LEVEL_NS * np.exp(random.normal(0, spread) + drift(place / (rounds * len(kinds))))
            step_ns = level * np.exp(random.normal(0, 0.03, WARMUP + STEADY))
            step_ns[WARMUP:] *= 1 + slowdown_pct / 100
            launches.append(
                Launch(
                    cell_key="mlp/torch/cpu/train",
                    round=round,
                    started=(begun + timedelta(seconds=4 * place)).isoformat(),
                    python="3",
                    backend_version="1",
                    step_ns=step_ns.astype(int).tolist(),
                    steps=WARMUP + STEADY,
                    warmup_steps=WARMUP,
                    planted_slowdown_pct=float(slowdown_pct),
                )
            )
    return launches
