"""Runs at different times: neighbours in time are paired, and a side that was measured in one go is one observation.

    A B B A A B         in turn: what the machine does in the meantime is in both of a pair; pairs are the unit
    A A A B B B         one after the other: all runs of a side share what the machine did then; sessions are the unit

Three pairs, or three sessions of a side, show how much they differ. Of fewer that is taken to be SESSIONS_SD, which was
measured elsewhere; the spread of runs within a session, or of rounds, comes on top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from msgspec.structs import replace

from kit.stats.estimate import Estimate, estimate, over

# Sessions of one side, or pairs. Two have one degree of freedom: see ROUNDS_FOR_VERDICT.
SESSIONS_FOR_SPREAD = 3
# Runs of a side that follow each other within an hour are one session: a machine's neighbours, heat and clocks last.
SESSION_GAP_S = 3600.0
# Standard deviation that is assumed of the logarithm of one machine's sessions. Frameworks measured one after the other
# on a shared virtual machine spread by 0.056 to 0.107, their own step from round to round by 0.11 to 0.12, and runs
# hours apart by 0.026 where nothing else ran (docs/explanation/method.md).
SESSIONS_SD = 0.107
# How well that is known.
SESSIONS_SD_DF = 13.0
# Below, a run does not show how much its rounds differ. Two single rounds of one cell beside other work were seen to
# lie a factor of 4.5 apart.
ROUNDS_TO_SPREAD, ROUNDS_SD = 3, 0.6
# A margin: of two machines neither may be one that SESSIONS_SD was seen on.
UNLIKE_HARDWARE = 1.5
# Beyond this fraction of all CPU time, nothing would be left over.
CONTENTION_MAX = 0.95
# A B alone does not show whether the machine changed.
PAIRS_IN_TURN = 2


class RunLevel(NamedTuple):
    """One cell in one run."""

    log: float  # of its step
    se: float | None = None  # its standard error, over rounds; null: of one round
    rounds: int = 1
    contention: float = 0.0  # share of its CPUs' time that others took
    begin_s: float | None = None  # of the run, on a clock that all runs share; null: not known
    end_s: float | None = None


Session = Sequence[RunLevel]
Variance = tuple[float, float]  # with its degrees of freedom


def over_runs(
    a: Sequence[RunLevel],
    b: Sequence[RunLevel],
    *,
    same_hardware: bool,
    same_host: bool = True,
    has_known_spread: bool = True,
    is_log: bool = True,
) -> Estimate:
    """Return how far two sides of runs are apart; it is not yet judged.

    Args:
        a: the runs of the first side; at least one.
        b: those of the second.
        same_hardware: then the sessions of both sides spread alike, and three of either side are enough: the spread is
            pooled over sides of two and more. Other hardware may spread otherwise: each side needs its own three
            (Welch).
        same_host: then runs that alternate in time are paired. What one machine does is not in another's runs.
        has_known_spread: SESSIONS_SD holds of what is compared, as of times; else too few runs give no interval.
        is_log: levels are logarithms.
    """
    pairs = pairs_in_turn(a, b) if same_hardware and same_host else []
    if len(pairs) >= SESSIONS_FOR_SPREAD:
        known = over(run_a.log - run_b.log for run_a, run_b in pairs)
        # What was left over of the CPUs may differ between the sides in all pairs alike.
        contended = [part for runs in zip(*pairs, strict=True) for part in _contention(runs)]
        variance, df = _combined([(known.se_log**2, known.df), *contended])
        return estimate(known.mean_log, math.sqrt(variance), df, len(pairs), "pair", is_log=is_log)
    sides = [sessions_of(a), sessions_of(b)]
    # Two pairs do not show how much sessions differ; three sessions of a side on this hardware do.
    if pairs and max(map(len, sides)) < SESSIONS_FOR_SPREAD:
        sides = [[[run] for run in runs] for runs in zip(*pairs, strict=True)]
    else:
        pairs = []
    means, counts = [[_mean(session) for session in side] for side in sides], [len(side) for side in sides]
    centers = [fmean(side) for side in means]
    if same_hardware and max(counts) >= SESSIONS_FOR_SPREAD:
        # One variance for both sides; a lone session adds nothing to it.
        df = float(sum(count - 1 for count in counts))
        squares = ((log - center) ** 2 for side, center in zip(means, centers, strict=True) for log in side)
        se = math.sqrt(sum(squares) / df * sum(1 / count for count in counts))
        few = [side for side in sides if len(side) < SESSIONS_FOR_SPREAD]
        # Rounds, or runs, of a few sessions may spread by more than other sessions do.
        for variance, df_within in map(_within_sessions, few):
            if variance > se**2:
                se, df = math.sqrt(se**2 + variance), min(df, df_within)
        is_assumed = any(not _shows_rounds(run) for side in few for session in side for run in session)
    else:
        variance, df = _combined([_variance_of_mean(side, same_hardware=same_hardware) for side in sides])
        se, is_assumed = math.sqrt(variance), min(counts) < SESSIONS_FOR_SPREAD
    if is_assumed and not has_known_spread:
        se = df = math.nan
    known = estimate(centers[0] - centers[1], se, df, min(counts), "pair" if pairs else "session", is_log=is_log)
    return replace(known, is_spread_assumed=is_assumed)


def pairs_in_turn(a: Sequence[RunLevel], b: Sequence[RunLevel]) -> list[tuple[RunLevel, RunLevel]]:
    """Return neighbours in time of two sides that alternate, as A B A B and A B B A do; of one pair alone nothing.

    A run is in one pair at most. Runs whose times are not known, or that overlap with one of the other side, are not
    in turn.
    """
    if any(run.begin_s is None for run in (*a, *b)) or overlapping(a, b):
        return []
    ordered = sorted([*((run, 0) for run in a), *((run, 1) for run in b)], key=lambda entry: entry[0].begin_s or 0.0)
    pairs: list[tuple[RunLevel, RunLevel]] = []
    while len(ordered) > 1:
        (first, side), (second, other_side) = ordered[:2]
        if side != other_side:
            pairs.append((first, second) if side == 0 else (second, first))
        ordered = ordered[2 if side != other_side else 1 :]
    return pairs if len(pairs) >= PAIRS_IN_TURN else []


def overlapping(a: Sequence[RunLevel], b: Sequence[RunLevel]) -> bool:
    """Return whether a run of one side began before one of the other, which had begun before, was over."""
    spans = [(run.begin_s or 0.0, run.end_s or run.begin_s or 0.0, side) for side in (0, 1) for run in (a, b)[side]]
    ends_s = [-math.inf, -math.inf]  # of each side, so far
    for begin_s, end_s, side in sorted(spans):
        if begin_s < ends_s[1 - side]:
            return True
        ends_s[side] = max(ends_s[side], end_s)
    return False


def sessions_of(runs: Sequence[RunLevel]) -> list[Session]:
    """Return the runs of a side by session; those whose times are not known are taken for one."""
    if any(run.begin_s is None for run in runs):
        return [runs]
    sessions: list[list[RunLevel]] = []
    for run in sorted(runs, key=lambda run: run.begin_s or 0.0):
        last = sessions[-1][-1] if sessions else None
        if last is None or (run.begin_s or 0.0) - (last.end_s or last.begin_s or 0.0) > SESSION_GAP_S:
            sessions.append([])
        sessions[-1].append(run)
    return list(sessions)


def _mean(runs: Session) -> float:
    return fmean(run.log for run in runs)


def _shows_rounds(run: RunLevel) -> bool:
    """Whether a run has rounds enough to show how much they differ."""
    return run.se is not None and run.rounds >= ROUNDS_TO_SPREAD


def _variance_of_mean(side: Sequence[Session], *, same_hardware: bool) -> Variance:
    """Return the variance of the mean of one side's sessions (Welch 1947)."""
    means, count = [_mean(session) for session in side], len(side)
    center = fmean(means)
    shown = sum((mean - center) ** 2 for mean in means) / max(1, count - 1) / count, count - 1.0
    if count >= SESSIONS_FOR_SPREAD:
        return shown
    sd = SESSIONS_SD if same_hardware else SESSIONS_SD * UNLIKE_HARDWARE
    assumed = _combined([(sd**2 / count, SESSIONS_SD_DF), _within_sessions(side)])
    return assumed if assumed[0] >= shown[0] else shown


def _within_sessions(side: Sequence[Session]) -> Variance:
    """Return what rounds, or runs of a session, add to the variance of a side's mean.

    A spread is assumed where there are too few rounds to show it. Other programs may have slowed all rounds of a run
    alike, so what they took is added. The spread between runs of a session contains the spread of their rounds, so the
    larger of the two counts.
    """
    runs = [run for session in side for run in session]
    parts = [
        (run.se or 0.0, run.rounds - 1.0) if _shows_rounds(run) else (max(ROUNDS_SD, run.se or 0.0), SESSIONS_SD_DF)
        for run in runs
    ]
    by_rounds = _combined([*((se**2 / len(runs) ** 2, df) for se, df in parts if se), *_contention(runs)])
    df = float(len(runs) - len(side))
    squares = sum((run.log - mean) ** 2 for session in side for mean in [_mean(session)] for run in session)
    return max(by_rounds, (squares / df / len(runs), df) if df else (0.0, 1.0))


def _contention(runs: Sequence[RunLevel]) -> list[Variance]:
    """Return what others' share of the CPUs adds to the variance of the mean of some runs."""
    losses = [-math.log1p(-min(run.contention, CONTENTION_MAX)) for run in runs]
    return [(loss**2 / len(runs) ** 2, SESSIONS_SD_DF) for loss in losses if loss]


def _combined(variances: Sequence[Variance]) -> Variance:
    """Return the sum of variances (Satterthwaite 1946)."""
    total = sum(variance for variance, _ in variances)
    squares = sum(variance**2 / df for variance, df in variances)
    smallest = min((df for _, df in variances), default=1.0)
    return total, max(smallest, total**2 / squares) if squares else smallest
