"""Rows taken together, as arrays, against the same formulas written out row by row."""

import math

import numpy as np
import pytest
from scipy.special import stdtr, stdtrit

from kit.stats.difference import paired_difference, paired_differences, welch_difference, welch_differences
from kit.stats.verdict import LAUNCHES_FOR_VERDICT, LAUNCHES_TO_PLAN, LAUNCHES_TO_SETTLE_MAX, judge, judge_all

ROWS = 400
PRECISE = {"rel": 1e-12, "abs": 1e-300}


def rows_of_medians():
    """Whole nanoseconds of 0 to 40 launches a side: near and far, quiet and noisy, some without any spread."""
    generator = np.random.default_rng(3)
    rows = []
    for number in range(ROWS):
        sizes = generator.integers(0, 41, 2) if number % 2 else (10, 10)
        sigma = 0.0 if number % 40 == 0 else 10 ** generator.uniform(-4, 0.5)
        centre = generator.choice([0.0, 0.005, 0.02, 0.5, 3.0, -0.1])
        sides = [
            np.exp(generator.normal(shift, sigma, size)) * 1e7 for shift, size in zip((centre, 0), sizes, strict=True)
        ]
        rows.append(tuple([int(value) for value in side] for side in sides))
    return rows


def by_round(side):
    return {3 * round % 41: value for round, value in enumerate(side)}


def expected_of(centre, standard_error, freedom):
    """Ratio, low, high and p."""
    half = stdtrit(freedom, 0.975) * standard_error
    with np.errstate(over="ignore"):
        low, high = np.exp(centre - half), np.exp(centre + half)
    p = float(centre == 0) if standard_error == 0 else 2 * stdtr(freedom, -abs(centre) / standard_error)
    return math.exp(centre), low, high, p


def check(found, expected, launches):
    assert (found.ratio, found.low, found.high, found.p) == pytest.approx(expected, **PRECISE)
    assert found.launches == launches


def test_welch_differences_are_those_of_single_rows():
    rows = rows_of_medians()
    for (candidate, baseline), found in zip(rows, welch_differences(rows), strict=True):
        if min(len(candidate), len(baseline)) < 2:
            assert found is None
            continue
        logs = np.log(candidate), np.log(baseline)
        errors = [side.var(ddof=1) / side.size for side in logs]
        squares = sum(error**2 / (side.size - 1) for error, side in zip(errors, logs, strict=True))
        launches = min(side.size for side in logs)
        freedom = sum(errors) ** 2 / squares if squares > 0 else launches - 1
        check(found, expected_of(logs[0].mean() - logs[1].mean(), math.sqrt(sum(errors)), freedom), launches)
        assert found == welch_difference(candidate, baseline)


def test_paired_differences_are_those_of_single_rows():
    rows = [tuple(map(by_round, sides)) for sides in rows_of_medians()]
    for (candidate, baseline), found in zip(rows, paired_differences(rows), strict=True):
        rounds = candidate.keys() & baseline.keys()
        if len(rounds) < 2:
            assert found is None
            continue
        logs = np.array([math.log(candidate[r]) - math.log(baseline[r]) for r in sorted(rounds)])
        error = logs.std(ddof=1) / math.sqrt(logs.size)
        check(found, expected_of(logs.mean(), error, logs.size - 1), logs.size)
        assert found == paired_difference(candidate, baseline)


def settling(difference, band, p):
    """One launch after the other until the interval is narrow enough."""
    edge, distance = math.log1p(band), abs(math.log(difference.ratio))
    alpha = 0.05 * (difference.p / p if distance > edge and p else 1.0)
    wanted = distance if distance > edge else math.log1p(0.01) - distance
    cannot = distance <= edge and band > 0.01
    if difference.launches < LAUNCHES_TO_PLAN or alpha <= 0 or cannot:
        return None
    variances = difference.spread.variances
    squares = sum(v**2 for v in variances)
    freedom = sum(variances) ** 2 / squares if squares > 0 else 1.0
    for launches in range(max(difference.launches + 1, LAUNCHES_FOR_VERDICT), LAUNCHES_TO_SETTLE_MAX + 1):
        if stdtrit((launches - 1) * freedom, 1 - alpha / 2) * math.sqrt(sum(variances) / launches) < wanted:
            return launches
    return None


@pytest.mark.parametrize("band", [0.01, 0.05])
@pytest.mark.parametrize("differences_of", [welch_differences, paired_differences])
def test_judgements_are_those_of_single_rows(differences_of, band):
    rows = rows_of_medians()
    if differences_of is paired_differences:
        rows = [tuple(map(by_round, sides)) for sides in rows]
    differences = differences_of(rows)
    adjusted = [None if one is None else min(1.0, factor * one.p) for factor, one in enumerate(differences)]
    judgements = judge_all(differences, adjusted, band)
    possible = {"faster", "slower", "unresolved"} | ({"same"} if band <= 0.01 else set())
    assert {judgement.verdict for judgement in judgements} == possible
    known = [judgement.launches_to_settle for judgement in judgements if judgement.launches_to_settle is not None]
    assert len(known) > 10 and max(known) > 100
    for judgement, difference, p in zip(judgements, differences, adjusted, strict=True):
        assert judgement == judge(difference, p, band)
        if judgement.verdict == "unresolved" and difference is not None:
            assert judgement.launches_to_settle == settling(difference, band, p)
        else:
            assert judgement.launches_to_settle is None


def test_an_interval_beyond_every_number_is_unresolved_and_no_error():
    difference = paired_difference({0: 1, 1: 1e60}, {0: 1e60, 1: 1})
    assert (difference.low, difference.high) == (0.0, math.inf)
    assert judge(difference).verdict == "unresolved"


def test_no_rows():
    assert welch_differences([]) == paired_differences([]) == judge_all([], []) == []
