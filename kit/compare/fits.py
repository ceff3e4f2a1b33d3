"""Fits: whole epochs or a part of them, what their input pipeline costs, and whether their scores agree."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from kit.compare.launch_arrays import pipeline_ratio
from kit.compare.rows import FitNumbers, ScoreDifference, ScoreVerdict
from kit.profile.launch import Fit, Launch
from kit.stats.difference import over_rounds

# Scores agree within one point of accuracy, or 1 % of the baseline's squared error: what papers call the same result.
SCORE_MARGIN = 0.01


def fit_numbers(launches: Iterable[Launch], step_ns: float | None = None) -> FitNumbers | None:
    """Return what the fits among these launches gave; None where none finished.

    Args:
        launches: of one cell.
        step_ns: that stands in its row; its whole time is as many of these. Null: the mean of the fits' times.
    """
    fits = [(launch, launch.fit) for launch in launches if launch.gave_number and launch.fit is not None]
    if not fits:
        return None
    ratios = [ratio for launch, fit in fits if (ratio := pipeline_ratio(launch, fit)) is not None]
    scores = [score for _, fit in fits if (score := score_of(fit)) is not None]
    tests = [fit.test_ns for _, fit in fits if fit.test_ns is not None]
    mean_ns = statistics.fmean(_mean_step_ns(launch) * _steps_of(launch, fit) for launch, fit in fits)
    return FitNumbers(
        epochs=fits[0][1].epochs,
        updates=fits[0][1].updates,
        total_ns=mean_ns if step_ns is None else step_ns * _steps_of(*fits[0]),
        is_computed=any(fit.is_part for _, fit in fits),
        pipeline_ratio=statistics.geometric_mean(ratios) if ratios else None,
        test_ns=statistics.fmean(tests) if tests else None,
        metric="accuracy" if fits[0][1].mean_squared_error is None else "mean_squared_error",
        score=statistics.fmean(scores) if scores else None,
        score_sd=statistics.stdev(scores) if len(scores) > 1 else None,
        repeats=len(scores),
    )


def _steps_of(launch: Launch, fit: Fit) -> int:
    """Return how many steps the whole time of a fit has: all of its epochs but the first step."""
    return fit.all_updates - 1 if fit.is_part else sum(launch.blocks.steps)


def _mean_step_ns(launch: Launch) -> float:
    return sum(launch.blocks.duration_ns) / sum(launch.blocks.steps)


def epoch_ns(launch: Launch, fit: Fit) -> float | None:
    """Return the mean time of an epoch, the first left out; None where there was no other; of a part computed."""
    if fit.is_part:
        return _mean_step_ns(launch) * fit.all_updates / fit.epochs
    per_epoch = fit.updates // fit.epochs
    # The very first step is in no block.
    done = 1 + np.cumsum(launch.blocks.steps)
    later = np.asarray(launch.blocks.duration_ns)[done > per_epoch]
    return float(later.sum()) / (fit.epochs - 1) if fit.epochs > 1 else None


def score_of(fit: Fit) -> float | None:
    """Return the accuracy, or the mean squared error of a network that reconstructs."""
    if fit.confusion is None:
        return fit.mean_squared_error
    counts = np.asarray(fit.confusion)
    return float(np.trace(counts) / counts.sum())


def score_difference(launches: Sequence[Launch], baseline: Sequence[Launch]) -> ScoreDifference | None:
    """Return whether two cells' scores agree, repeat by repeat: those of one round began alike."""
    fits, base_fits = (
        {launch.round: launch.fit for launch in of_cell if launch.fit is not None} for of_cell in (launches, baseline)
    )
    pairs = [(score_of(fits[number]), score_of(base_fits[number])) for number in sorted(fits.keys() & base_fits.keys())]
    known = [(mine, yours) for mine, yours in pairs if mine is not None and yours is not None]
    difference = over_rounds([mine - yours for mine, yours in known])
    if difference is None:
        return None
    low, high = difference.log_interval()
    reconstructs = any(fit.mean_squared_error is not None for fit in base_fits.values())
    margin = SCORE_MARGIN * (statistics.fmean(yours for _, yours in known) if reconstructs else 1)
    verdict: ScoreVerdict = "unresolved"
    if -margin <= low and high <= margin:
        verdict = "agrees"
    elif low > 0 or high < 0:
        verdict = "differs"
    return ScoreDifference(
        verdict=verdict, difference=difference.mean_log, low=low, high=high, margin=margin, repeats=len(known)
    )
