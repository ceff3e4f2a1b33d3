"""Judges the launches of a self-test: every rule, on questions whose answer is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np

from kit.profile.launch import Launch
from kit.profile.schema import Estimate, HostBand
from kit.profile.self_test import LaunchCount, Noise, RuleTally, SelfTestAnswer, Tally
from kit.stats import self_comparisons, simulated_launches
from kit.stats.aa_band import aa_band
from kit.stats.difference import paired_difference
from kit.stats.expected_band import expected_band
from kit.stats.launch_summary import summary_of
from kit.stats.rules import MeasuredLaunch, Question, Rule, rules
from kit.stats.self_comparisons import UNSLOWED_FOR_BAND
from kit.stats.verdict import NOISE_BAND_MIN, noise_band

# Drawn anew from the same launches, so more of them would be the same ones again.
REAL_COMPARISONS = 200
SIMULATED_COMPARISONS = 1000
# A side of two has a spread, and a model needs a correlation.
UNSLOWED_MIN = 4

SHUFFLED, APART = "shuffled", "apart"


def plant_name(slowdown_pct: float) -> str:
    """``+3 %``."""
    return f"+{slowdown_pct:g} %"


def judge_self_test(
    launches: Sequence[Launch],
    *,
    cpu: str,
    hardware_sha256: str,
    simulated: int = SIMULATED_COMPARISONS,
    seed: int = 0,
) -> SelfTestAnswer:
    """The answer of a self-test, whole or not.

    Args:
        launches: in the order in which they ran, slowed and unslowed, at least one.
        cpu, hardware_sha256: of the host they ran on.
        simulated: how many comparisons of each kind to simulate.
        seed: of all draws.
    """
    finished = [launch for launch in launches if launch.failure is None]
    by_plant = {pct: _measured(finished, pct) for pct in sorted({one.planted_slowdown_pct for one in launches} | {0.0})}
    unslowed = by_plant[0.0]
    counts = [_count(finished, pct, steady, unslowed) for pct, steady in by_plant.items()]
    plants = {pct: steady for pct, steady in by_plant.items() if pct}
    side = self_comparisons.launches_a_side(unslowed)
    enough = len(unslowed) >= UNSLOWED_MIN
    real = _real_questions(unslowed, plants, np.random.default_rng(seed)) if enough else {}
    strays = {kind: aa_band(real.get(kind, [])) for kind in (SHUFFLED, APART)}
    expected = expected_band([launch.median_ns for launch in unslowed]) if enough else None
    no_band = _no_band(len(unslowed))
    band = None if no_band else _host_band(launches[0], hardware_sha256, len(unslowed), strays, expected)
    model = simulated_launches.learn(unslowed) if enough else None
    drawn = {} if model is None else _simulated_questions(model, [*plants], simulated, np.random.default_rng(seed))
    return SelfTestAnswer(
        cell_key=launches[0].cell_key,
        cpu=cpu,
        begun=launches[0].started,
        took_s=_took_s(finished),
        launches=counts,
        failed=len(launches) - len(finished),
        launches_a_side=side,
        noise=None if model is None else _noise(model),
        band_shuffled=strays[SHUFFLED],
        band_apart=strays[APART],
        band_expected=expected,
        host_band=band,
        no_band=no_band,
        rules=_tallies(rules(*_bands(strays, band)), real, drawn),
    )


def _measured(finished: Sequence[Launch], slowdown_pct: float) -> list[MeasuredLaunch]:
    found = []
    for launch in finished:
        if launch.planted_slowdown_pct != slowdown_pct or launch.step_ns is None:
            continue
        summary = summary_of(launch)
        if summary is not None and summary.median_ns is not None:
            steady_ns = np.asarray(launch.step_ns[-summary.steady_steps :], np.float64)
            found.append(MeasuredLaunch(launch.round, summary.median_ns, steady_ns))
    return found


def _count(
    finished: Sequence[Launch], pct: float, steady: list[MeasuredLaunch], unslowed: list[MeasuredLaunch]
) -> LaunchCount:
    return LaunchCount(
        planted_slowdown_pct=pct,
        finished=sum(launch.planted_slowdown_pct == pct for launch in finished),
        steady=len(steady),
        measured=_measured_ratio(steady, unslowed) if pct else None,
    )


def _measured_ratio(slowed: list[MeasuredLaunch], unslowed: list[MeasuredLaunch]) -> Estimate | None:
    """Over all rounds: what the plant came to, against the geometric mean of the unslowed launches of its round."""
    by_round: dict[int, list[float]] = {}
    for launch in unslowed:
        by_round.setdefault(launch.round, []).append(launch.median_ns)
    beside = {round: float(np.exp(np.mean(np.log(medians)))) for round, medians in by_round.items()}
    difference = paired_difference({launch.round: launch.median_ns for launch in slowed}, beside)
    if difference is None:
        return None
    return Estimate(value=difference.ratio, low=difference.low, high=difference.high, launches=difference.launches)


def _real_questions(
    unslowed: list[MeasuredLaunch], plants: dict[float, list[MeasuredLaunch]], random: np.random.Generator
) -> dict[str, list[Question]]:
    return {
        SHUFFLED: self_comparisons.shuffled(unslowed, REAL_COMPARISONS, random),
        APART: self_comparisons.apart(unslowed, random),
        **{
            plant_name(pct): self_comparisons.planted(slowed, unslowed, REAL_COMPARISONS, random)
            for pct, slowed in plants.items()
        },
    }


def _simulated_questions(
    model: simulated_launches.Model, plants: list[float], comparisons: int, random: np.random.Generator
) -> dict[str, Iterable[Question]]:
    return {
        SHUFFLED: simulated_launches.shuffled(model, comparisons, random),
        APART: simulated_launches.apart(model, comparisons, random),
        **{plant_name(pct): simulated_launches.planted(model, pct, comparisons, random) for pct in plants},
    }


def _host_band(
    first: Launch,
    hardware_sha256: str,
    unslowed: int,
    strays: dict[str, float | None],
    expected: float | None,
) -> HostBand:
    """The widest of what was seen and what is to be expected."""
    return HostBand(
        band=max(band for band in (*strays.values(), expected) if band is not None),
        band_in_turns=strays[SHUFFLED],
        taken=first.started,
        cell_key=first.cell_key,
        launches=unslowed,
        hardware_sha256=hardware_sha256,
    )


def _no_band(unslowed: int) -> str | None:
    if unslowed >= UNSLOWED_FOR_BAND:
        return None
    return (
        f"{UNSLOWED_FOR_BAND} unslowed launches with a steady state are needed, {unslowed} are there; "
        "give more --launches, or a quieter machine"
    )


def _bands(strays: dict[str, float | None], host: HostBand | None) -> tuple[dict[str, float], dict[str, float]]:
    """Of the paired test and of Welch's: 1 %, the host's, and for pairs what launches that took turns strayed by."""
    least = {f"band {100 * NOISE_BAND_MIN:g} %": NOISE_BAND_MIN}
    if host is None or noise_band(host.band) == NOISE_BAND_MIN:
        return least, least
    everywhere = least | {"host's band": noise_band(host.band)}
    in_turns = noise_band(strays[SHUFFLED])
    if in_turns in everywhere.values():
        return everywhere, everywhere
    return least | {"shuffled's band": in_turns} | everywhere, everywhere


def _noise(model: simulated_launches.Model) -> Noise:
    return Noise(
        launch_spread=model.launch_spread,
        launch_resemblance=model.resemblance,
        step_spread=model.step_spread,
        step_autocorrelation=model.step_autocorrelation,
    )


def _tallies(
    asked: list[Rule], real: dict[str, list[Question]], simulated: dict[str, Iterable[Question]]
) -> list[RuleTally]:
    of_real = {kind: _ask(asked, questions) for kind, questions in real.items()}
    of_simulated = {kind: _ask(asked, questions) for kind, questions in simulated.items()}
    return [
        RuleTally(
            rule=rule.name,
            ours=rule.ours,
            real={kind: _tally(said[rule.name]) for kind, said in of_real.items()},
            simulated={kind: _tally(said[rule.name]) for kind, said in of_simulated.items()},
        )
        for rule in asked
    ]


def _ask(asked: list[Rule], questions: Iterable[Question]) -> dict[str, Counter[str]]:
    """Rule -> verdict -> count. Each question is put to every rule and then let go."""
    said: dict[str, Counter[str]] = {rule.name: Counter() for rule in asked}
    for question in questions:
        for rule in asked:
            if question.paired or not rule.needs_pairs:
                said[rule.name][rule.answer(question)] += 1
    return said


def _tally(said: Counter[str]) -> Tally | None:
    if not said:
        return None
    return Tally(
        comparisons=said.total(),
        faster=said["faster"],
        slower=said["slower"],
        same=said["same"],
        unresolved=said["unresolved"],
    )


def _took_s(finished: Sequence[Launch]) -> float | None:
    if not finished:
        return None
    began = [datetime.fromisoformat(launch.started) for launch in finished]
    return (max(began) - min(began)).total_seconds()
