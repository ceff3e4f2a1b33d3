"""The fits of a profile in words: their time, their input pipeline, their scores, and each class by itself."""

from __future__ import annotations

from kit.compare.fits import pipeline_ratio
from kit.profile.launch import Fit, Launch
from kit.profile.schema import CellResult, Profile
from kit.report.plain import NONE
from kit.report.quantity import duration, number
from kit.report.reasons import sentence
from kit.report.sections import grid
from kit.stats.metrics import Metrics, metrics

TITLES = ("cell", "round", "epochs", "updates", "time", "pipeline", "test pass", "score")
CLASS_TITLES = ("cell", "class", "precision %", "recall %", "F1 %")


def fit_lines(profile: Profile) -> list[str]:
    """Return a line for each fit that finished; none where there is none."""
    rows = [_fit(result, launch, fit) for result, launch, fit in _fits(profile)]
    return grid([TITLES, *rows], [False, *[True] * 6]) if rows else []


def class_lines(profile: Profile) -> list[str]:
    """Return precision, recall and F1 of each class, over all repeats of a cell, and their plain means."""
    rows = []
    for result in profile.cells:
        counted = [launch.fit.confusion for launch in result.launches if launch.fit and launch.fit.confusion]
        if counted:
            # Repeats of one size weigh alike: their counts may be added.
            total = metrics([[sum(cells) for cells in zip(*own, strict=True)] for own in zip(*counted, strict=True)])
            rows += _classes(result.key, total)
    return grid([CLASS_TITLES, *rows], [False, False, True, True, True]) if rows else []


def _fits(profile: Profile) -> list[tuple[CellResult, Launch, Fit]]:
    return [(result, one, one.fit) for result in profile.cells for one in result.launches if one.fit is not None]


def _fit(result: CellResult, launch: Launch, fit: Fit) -> list[str]:
    ratio = pipeline_ratio(launch, fit)
    if fit.confusion is not None:
        score = f"accuracy {100 * metrics(fit.confusion).accuracy:.2f} %"
    elif fit.mean_squared_error is not None:
        score = f"mean squared error {number(fit.mean_squared_error)}"
    else:
        score = NONE if fit.reason is None else sentence(fit.reason)
    return [
        result.key,
        str(launch.round),
        str(fit.epochs),
        f"{fit.updates} of {fit.all_updates}" if fit.is_part else str(fit.updates),
        duration(sum(launch.blocks.duration_ns)),
        NONE if ratio is None else f"{100 * (ratio - 1):+.1f} %",
        NONE if fit.test_ns is None else duration(fit.test_ns),
        score,
    ]


def _classes(key: str, found: Metrics) -> list[list[str]]:
    each = zip(found.precision, found.recall, found.f1, strict=True)
    macro = (found.macro_precision, found.macro_recall, found.macro_f1)
    named = [*((str(place), own) for place, own in enumerate(each)), ("macro", macro)]
    return [[key, name, *(f"{100 * share:.2f}" for share in own)] for name, own in named]
