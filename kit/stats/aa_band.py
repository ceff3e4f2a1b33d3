"""How far a cell strayed from itself in comparisons of launches that were measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kit.stats.interval import CONFIDENCE
from kit.stats.rules import MeasuredLaunch, Question


def aa_band(questions: Sequence[Question]) -> float | None:
    """Relative difference that 95 % of comparisons of a cell with itself stayed within; null without comparisons.

    The quantile of |ln ratio| of geometric means, as a relative difference: which side is the baseline plays no role.
    """
    if not questions:
        return None
    strays = [abs(_mean_log(question.candidate) - _mean_log(question.baseline)) for question in questions]
    return math.expm1(float(np.quantile(strays, CONFIDENCE)))


def _mean_log(launches: Sequence[MeasuredLaunch]) -> float:
    return float(np.mean(np.log([launch.median_ns for launch in launches])))
