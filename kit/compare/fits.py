"""Fits: what a cell that runs from its first epoch to its score gives, and blocks of steps do not.

    blocks, which are stretches of the fit   ─► its whole time, the time of an epoch
    references between them (`Fit`)          ─► what it waits for its input (`LaunchRow.pipeline_ratio`)
    the test split, in each repeat           ─► time of a pass, score, spread of the scores

Its rounds are clean or not as a whole (`kit.compare.clean`), and a step of it is the mean of all of its steps.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from itertools import accumulate

from kit.compare.runs import Sample
from kit.compare.table import LaunchRow
from kit.profile.fields import Value
from kit.profile.schema import Fit
from kit.stats.scores import scores

# Scores agree within one point of accuracy, or 1 % of the baseline's squared error: what papers call the same result.
SCORE_MARGIN = 0.01
SQUARED_ERROR = "mean_squared_error"  # value of `fit_metric`: the score of a network that reconstructs


def fits(sample: Sample) -> list[tuple[LaunchRow, Fit]]:
    """Return the fits that a cell's figures come from."""
    return [(launch, launch.record.fit) for launch in sample.good if launch.record.fit is not None]


def fitted(read: Callable[[list[tuple[LaunchRow, Fit]]], Value | None]) -> Callable[[Sample], Value | None]:
    """Return how a value is read of a cell's fits; null: it has none."""
    return lambda sample: read(measured) if (measured := fits(sample)) else None


def repeats(sample: Sample) -> list[float]:
    """Return the scores of a cell's fits: others make a fit longer, but they do not change what it learns."""
    finished = [launch.record for launch in sample.launches if launch.record.failure is None]
    known = (score_of(record.fit) for record in finished if record.fit is not None)
    return [score for score in known if score is not None]


def score_sd(sample: Sample) -> float | None:
    """Return the standard deviation of the scores of a cell's fits; null of one."""
    scored = repeats(sample)
    return statistics.stdev(scored) if len(scored) > 1 else None


def total_ns(sample: Sample, step_ns: float | None) -> float | None:
    """Return the whole time of a fit: all of its epochs but the first step, each step as long as in its row."""
    measured = fits(sample)
    if step_ns is None or not measured:
        return None
    launch, fit = measured[0]
    return float(step_ns * (fit.all_updates - 1 if fit.is_part else sum(launch.counting.steps)))


def epoch_ns(launch: LaunchRow, fit: Fit) -> float | None:
    """Return the mean time of an epoch, the first left out; None where there was no other; of a part computed."""
    if fit.is_part:
        return launch.mean_step_ns * fit.all_updates / fit.epochs
    per_epoch = fit.updates // fit.epochs
    # The very first step is in no block.
    blocks, done = launch.counting, accumulate(launch.counting.steps, initial=1)
    next(done)
    later_ns = sum(ns for ns, steps in zip(blocks.duration_ns, done, strict=True) if steps > per_epoch)
    return later_ns / (fit.epochs - 1) if fit.epochs > 1 else None


def score_of(fit: Fit) -> float | None:
    """Return the accuracy, or the mean squared error of a network that reconstructs."""
    if fit.confusion is None:
        return fit.mean_squared_error
    return sum(counts[index] for index, counts in enumerate(fit.confusion)) / sum(map(sum, fit.confusion))


def launch_score(_sample: Sample, launch: LaunchRow) -> float | None:
    """Return the score of a launch's fit."""
    return None if launch.record.fit is None else score_of(launch.record.fit)


def score_margin(fit_metric: str | None, base_scores: Sequence[float]) -> float:
    """Return the difference of scores that matters, given the baseline's `fit_metric` and scores."""
    return SCORE_MARGIN * (statistics.fmean(base_scores) if fit_metric == SQUARED_ERROR and base_scores else 1)


def score_matters(samples: Sequence[Sample], values: Sequence[float]) -> float:
    """Return the difference of scores that matters, given the baseline's samples and scores."""
    # Of many runs, whose launches were dropped, the values have it.
    reconstructs = any(
        sample.values.get("fit_metric") == SQUARED_ERROR
        or any(
            (fit := launch.record.fit) is not None and fit.mean_squared_error is not None for launch in sample.launches
        )
        for sample in samples
    )
    return score_margin(SQUARED_ERROR if reconstructs else None, values)


def scored(name: str) -> Callable[[Sample, LaunchRow], float | None]:
    """Return how a score is read of a launch's fit; null: the fit has no classes, or only a part of it ran."""

    def observe(_sample: Sample, launch: LaunchRow) -> float | None:
        confusion = None if launch.record.fit is None else launch.record.fit.confusion
        return None if confusion is None else getattr(scores(confusion), name)

    return observe
