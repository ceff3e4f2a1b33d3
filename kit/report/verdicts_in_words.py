"""Verdicts in words: a row's answer, the sentences below a group, the last lines of a run that compares two versions.

1.42 ± 0.03 × slower              its step takes 1.42 times as long; ± is half of the 95 % interval
1.56 [1.23, 1.96] × faster        the interval is lopsided
3.1 ± 0.5 % slower                near 1 a ratio is a percentage
same (within 0.8 %)               the difference is shown to be smaller than 1 %
same (0.5 ± 0.2 % slower)         the same, and a difference was found
bimodal: 1.3 and 2.4 × slower     this row or the baseline has two step times
unresolved (within ±4 %)          the interval holds 1
unresolved (2.6 × faster to 1.1 × slower)          the interval holds 1 and is wide
unresolved (rounds disagree: 1.50 × slower)        the interval is so wide that it says nothing
unresolved (1.50 × slower, not significant in 3 tests)   the interval leaves out 1, the adjusted p does not
unresolved (1.50 × slower in 2 rounds)             a verdict needs more rounds
unresolved (contended)            other programs disturbed every cycle, or unlike cells unlike

JAX is the fastest: 1.83 × as fast as PyTorch.
JAX is the fastest on gpu and cpu; comparing the fastest of each, gpu is 22 × as fast as cpu.

mlp train: is new more than 3 % slower than old? yes: 5.1 ± 1.2 % slower (12 rounds)
mlp train: is new more than 3 % slower than old? no: at most 2.6 % slower, one-sided (9 rounds)
… not known yet: 2.2 ± 11 % slower after 3 rounds; about 14 more rounds (6 minutes) for ±3 %
… not known: 2.9 ± 1.2 % slower (9 rounds); about 30 more rounds (12 minutes) would decide
mlp train: new against old: 5.1 ± 1.2 % slower (12 rounds); 46 rounds (19 minutes) would halve the interval
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile

from kit.compare.fail_if_slower import limit_slow_downs, limited_rows
from kit.compare.fits import score_margin
from kit.compare.metrics import METRICS
from kit.compare.ratios import Metric
from kit.compare.rows import Comparison, GroupRows, Row
from kit.report.reasons_in_words import LETTERS, sentence
from kit.report.values_in_words import counted, decimals, number, one_line, several, unbroken
from kit.stats.estimate import (
    ALPHA,
    ROUNDS_FOR_VERDICT,
    ROUNDS_PRELIMINARY,
    SAME_LEVEL,
    SMALLEST_DIFFERENCE,
    TIME_WORDS,
    Estimate,
    SlowerBy,
    rounds_for,
)

# A ratio this close to 1 is read as a percentage, a larger one as "times".
PERCENT_BELOW = 0.1
# An answer that begins so goes on with the text of an error.
FAILED = "failed:"
# Halves of an interval that differ by more than this are both shown.
LOPSIDED = 1.3
# Ends further apart say nothing about the difference: a round was disturbed, or a cell is bimodal.
DISAGREEING = 10.0
# From here on a ratio has no decimals, unless its interval is narrow: "31 [24, 39] × faster".
DECIMALS_BELOW = 10
# An interval that reaches beyond this is shown as "times", in both directions.
PERCENT_UNWIELDY = 30.0
# No half of an interval has more decimals; one that rounds to zero is not shown.
DECIMALS_MAX = 3
# What an A/B differs in: other comparisons do not ask what got slower.
AB_AXES = ("variant", "workload", "parameters")
HALF_PCT_SHOWN = 100.0
# `kit run` ends there, and more than these are no advice.
ROUNDS_SHOWN_MAX = 200


def shows_times(rows: Iterable[Row], of: Callable[[Row], Estimate | None] = lambda row: row.versus) -> bool:
    """Whether a ratio of some row is read as "times": the other rows of its table then show none as a percentage."""
    return any(_is_in_times(of(row)) for row in rows)


def _is_in_times(known: Estimate | None) -> bool:
    ratio = None if known is None or known.modes is not None or known.contention_pct is not None else known.ratio
    return ratio is not None and max(ratio, 1 / ratio) >= 1 + PERCENT_BELOW


def answer(row: Row, *, in_times: bool = False) -> str:
    """Return the words of a row in the last column; `in_times`: no ratio is shown as a percentage."""
    if row.is_baseline and row.has_number:
        return "baseline"
    if row.blocked and row.versus is None:
        return f"not compared: {', '.join(dict.fromkeys(mismatch.kind.replace('_', ' ') for mismatch in row.blocked))}"
    if not row.has_number:
        return f"{FAILED} {sentence(row.failure)}" if row.failure is not None else "no rounds"
    if row.versus is None:
        return "no baseline to compare with"
    if row.judged is None:
        return "not measured"
    words = in_words(row.versus, METRICS[row.metric].words, in_times=in_times)
    return f"{words} (forced)" if row.blocked else words


def with_words(known: Estimate, metric: Metric, *, in_times: bool = False) -> str:
    """Return a difference beside a value: ``1.80 ± 0.10 × less``, ``1.80 × more (1 round)``."""
    if known.ratio is not None and known.low is None:
        return f"{_point(known.ratio, metric.words, in_times)} ({counted(known.count, known.unit)})"
    return in_words(known, metric.words, in_times=in_times)


def in_words(known: Estimate, words: tuple[str, str] = TIME_WORDS, *, in_times: bool = False) -> str:  # noqa: PLR0911, PLR0912 - a kind of answer each
    """Return the verdict on a difference, in words.

    Args:
        known: the difference.
        words: the metric's, of less and of more.
        in_times: a ratio near 1 is no percentage, either.
    """
    ratio, low, high, count = known.ratio, known.low, known.high, counted(known.count, known.unit)
    if isinstance(known.difference, float):
        if low is None or high is None:
            return f"unresolved ({known.difference:+.3g} in {count})"
        ends = f"{known.difference:+.3g} [{low:+.3g}, {high:+.3g}]"
        return f"{known.verdict} ({ends})" if known.verdict in ("same", "unresolved") else f"{ends} {known.verdict}"
    if ratio is None:
        return "no common round"
    if known.contention_pct is not None:
        return "unresolved (contended)"
    if known.modes is not None:
        near, far = sorted(max(mode, 1 / mode) for mode in known.modes)
        if known.modes[0] <= 1 <= known.modes[1]:
            return f"bimodal: {', '.join(_directed(mode, words) for mode in known.modes)}"
        return f"bimodal: {times(near)} and {times(far)} × {words[known.modes[0] > 1]}"
    too_few = f"unresolved ({_point(ratio, words, in_times)} in {count})"
    if low is None or high is None:
        return too_few
    if known.verdict in words:
        return _with_interval(ratio, low, high, words, in_times)
    if known.verdict == "same":
        # Shown at the level of the test, whose interval is narrower than the one at hand.
        matters = 1 + SMALLEST_DIFFERENCE
        low, high = max(low, 1 / matters), min(high, matters)
        shown = f"within {_widest(low, high):g} %"
        if (known.p_adjusted or 0.0) <= ALPHA:
            shown = _with_interval(ratio, low, high, words, in_times)
        return f"same ({shown})"
    if low <= 1 <= high or (known.p_adjusted is not None and known.p_adjusted <= ALPHA):
        if high / low > DISAGREEING and known.unit != "round":
            # The interval is that wide because the spread of sessions is assumed, or because others took CPUs.
            return too_few
        if high / low > DISAGREEING and known.count > 1:
            return f"unresolved ({known.unit}s disagree: {_point(ratio, words, in_times)})"
        widest, ends = _widest(low, high), " to ".join(_directed(end, words) for end in (low, high))
        return f"unresolved ({f'within ±{widest:g} %' if widest <= PERCENT_UNWIELDY else ends})"
    # An interval that leaves out 1 would contradict "unresolved": the words say what is missing instead.
    if known.p_adjusted is None:
        return too_few
    return f"unresolved ({_point(ratio, words, in_times)}, not significant in {counted(known.comparisons, 'test')})"


def says_unresolved(known: Estimate) -> bool:
    """Whether the words begin with "unresolved": of two modes, or of nothing in common, they say that instead."""
    is_said = known.contention_pct is not None or known.modes is None
    return known.verdict == "unresolved" and known.count > 0 and is_said


def times(ratio: float) -> str:
    """Return ``1.8`` of a ratio above 1; more digits near 1."""
    places = 2 if ratio < 1 + PERCENT_BELOW else 1 if ratio < DECIMALS_BELOW else 0
    return f"{ratio:,.{places}f}"


def _directed(ratio: float, words: tuple[str, str]) -> str:
    return f"{times(ratio)} × {words[1]}" if ratio >= 1 else f"{times(1 / ratio)} × {words[0]}"


def _point(ratio: float, words: tuple[str, str], in_times: bool) -> str:
    """Return a difference without its interval."""
    direction, factor = (words[1], ratio) if ratio >= 1 else (words[0], 1 / ratio)
    if factor < 1 + PERCENT_BELOW and not in_times:
        return f"{100 * (factor - 1):.1f} % {direction}"
    # Near 1 with as many decimals as show that it is not 1.
    places = 0 if factor >= DECIMALS_BELOW else max(2, min(DECIMALS_MAX, decimals(factor - 1, 1)))
    return f"{factor:,.{places}f} × {direction}"


def _with_interval(ratio: float, low: float, high: float, words: tuple[str, str], in_times: bool) -> str:
    """Return ``1.42 ± 0.03 × slower``, near 1 a percentage; both ends where ± would mislead, none where both are 1.

    ± would where one half is much longer, or would reach beyond no difference. Halves that round to zero are not shown.
    """
    direction, nothing, places, sign = words[ratio > 1], 1, 2, "×"
    if ratio <= 1:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    if ratio < 1 + PERCENT_BELOW and not in_times:
        ratio, low, high = (100 * (end - 1) for end in (ratio, low, high))
        nothing, places, sign = 0, 1, "%"
    half, other = sorted((ratio - low, high - ratio), reverse=True)
    places = 0 if ratio >= DECIMALS_BELOW else places
    places = min(DECIMALS_MAX, max(places, decimals(half, 1)))
    if half > min(LOPSIDED * max(other, 10.0**-places), ratio - nothing):
        # An end that is above nothing does not look as if it were nothing.
        while places < DECIMALS_MAX and low > nothing and round(low, places) <= nothing:
            places += 1
        return f"{ratio:,.{places}f} [{low:,.{places}f}, {high:,.{places}f}] {sign} {direction}"
    plus_minus = f" ± {half:.{places}f}" if round(half, places) else ""
    return f"{ratio:.{places}f}{plus_minus} {sign} {direction}"


def _widest(low: float, high: float) -> float:
    """Return how far the interval reaches from 1 in percent, rounded away from zero where it is shown."""
    widest = round(100 * (max(high, 1 / low) - 1), 9)
    if widest > PERCENT_UNWIELDY:
        return widest
    return math.ceil(10 * widest) / 10 if widest < 3 else math.ceil(widest)  # noqa: PLR2004 - a digit more when small


def group_sentences(group: GroupRows, titles: Mapping[str, str], *, wide: bool = False) -> list[str]:
    """Return what is concluded about a group: ``JAX is the fastest: 1.83 × as fast as PyTorch.``, and what else."""
    return [
        *_fastest(group, titles),
        *_recommended(group),
        *_broken_even(group, wide),
        *_scores(group),
        *_injected(group),
    ]


def _fastest(group: GroupRows, titles: Mapping[str, str]) -> list[str]:
    """Return who is the fastest: a ratio has as many digits as its row, and a bimodal row has no mean."""
    if (leaders := group.leaders) is None:
        return []
    first, *tied = (one_line(titles.get(name, name)) for name in leaders.tied)
    claims = []
    for name, ratio in leaders.slower_than_fastest:
        by = "in both modes faster than"
        if ratio is not None:
            by = f"{ratio:.{3 if ratio < 1 + PERCENT_BELOW else 2}f} × as fast as"
        claims.append(f"{by} {one_line(titles.get(name, name))}")
    for name, fast, slow in leaders.modes:
        claims.append(f"{times(fast)} and {times(slow)} × as fast as {one_line(titles.get(name, name))} (bimodal)")
    slower = ", ".join(claims)
    if tied:
        return [f"{_and([first, *tied])}: no significant difference. {first} is {slower}."]
    return [f"{first} is {slower}." if leaders.modes else f"{first} is the fastest: {slower}."]


def _recommended(group: GroupRows) -> list[str]:
    """Return a sweep's best point, and the smallest that nearly has its throughput."""
    if (sweep := group.recommendation) is None:
        return []
    rate = "" if sweep.samples_per_s is None else f", {number(sweep.samples_per_s)} samples/s"
    open_to = several([one_line(name) for name in sweep.unresolved])
    best = f"Best throughput: {one_line(sweep.best)}{rate}{f'; not resolved against {open_to}' if open_to else ''}."
    if sweep.smallest is None or sweep.ratio is None:
        return [best if sweep.smallest is None else f"{best} No smaller one is within 5 % of it."]
    interval = f"{sweep.ratio:.3f} [{sweep.low:.3f}, {sweep.high:.3f}]"
    smallest = f"{one_line(sweep.smallest)}, {interval} × the time per sample"
    return [f"{best} The smallest shown to be within 5 % of it: {smallest}."]


def _broken_even(group: GroupRows, wide: bool) -> list[str]:
    """Return after how many steps the compile mode that compiles for longer has paid for it."""
    lines = []
    for row in group.rows:
        if (even := row.break_even) is None:
            continue
        name, other = one_line(row.name), one_line(group.baseline or "")
        if even.baseline_pays:
            name, other = other, name
        steps = "" if even.steps is None else f"{even.steps:,.0f}"
        if even.outcome == "pays":
            interval = f"{steps} [{even.low:,.0f}, {even.high:,.0f}]"
            line = f"{name} pays for its compilation after {interval} steps, compared with {other}"
        elif even.outcome == "at_once":
            line = f"{name} is ahead of {other} from the first step"
        elif even.outcome == "never":
            line = f"{name} never pays for its compilation: its steps are not shorter than those of {other}"
        else:
            point = f" (if so, after about {steps} steps)" if steps else ""
            line = f"It is unresolved whether {name} pays for its compilation, compared with {other}{point}"
        lines.append(f"{line}{LETTERS['process_shared'] if wide and row.value('process_shared') else ''}.")
    return lines


def _scores(group: GroupRows) -> list[str]:
    """Return whether scores are the baseline's, and by how much they differ."""
    lines = []
    for row in group.rows:
        known = row.score_difference
        if known is None or known.low is None or known.high is None or not isinstance(known.difference, float):
            continue
        name, base = one_line(row.name), next(row for row in group.rows if row.is_baseline)
        margin = score_margin(row.value("fit_metric"), [base.value("fit_score")])
        ends = known.difference, known.low, known.high
        if row.value("fit_metric") == "accuracy":
            within, (mean, low, high) = f"{100 * margin:g} point", (f"{100 * end:+.2f}" for end in ends)
        else:
            within, (mean, low, high) = number(margin), (f"{end:+.2g}" for end in ends)
        claim = f"{name} differs from {one_line(base.name)}"
        if known.verdict == "same":
            claim = f"{name} agrees with {one_line(base.name)} within {within}"
        elif known.verdict == "unresolved":
            claim = f"whether {name} agrees with {one_line(base.name)} is unresolved"
        lines.append(f"Score: {claim}: {mean} [{low}, {high}], {counted(known.count, 'repeat')}.")
    return lines


def _injected(group: GroupRows) -> list[str]:
    """Return how many intervals contain the injected delay, and the smallest delay that was found."""
    base = next((row for row in group.rows if row.is_baseline), None)
    delays = [
        (row.value("injected_ratio"), row.versus)
        for row in group.rows
        if row.value("injected_ratio") and row.versus is not None and row.versus.low is not None
    ]
    if base is None or base.value("injected_ratio") or not delays or delays[0][1].unit != "round":
        return []
    inside = sum((known.low or 0) <= ratio <= (known.high or 0) for ratio, known in delays)
    lines = [f"{inside} of {len(delays)} intervals hold what was injected; at least 19 in 20 are expected."]
    # A small delay found by luck, with a larger one missed, does not count.
    by_size = sorted(delays, key=lambda item: -item[0])
    smallest = [ratio for ratio, _ in takewhile(lambda item: item[1].verdict == "slower", by_size)][-1:]
    if not smallest:
        return [*lines, "No injected delay was found: more rounds narrow the intervals."]
    return [*lines, f"The smallest injected delay that was found is {100 * (smallest[0] - 1):.1f} %."]


def platform_sentences(group: GroupRows, short: Mapping[str, str], titles: Mapping[str, str]) -> list[str]:
    """Return the fastest of each platform, then how far the platforms' best are from the baseline's, by verdicts."""
    if len({row.member for row in group.rows}) == 1:
        return []
    short = {side: unbroken(name) for side, name in short.items()}
    fastest: dict[tuple[str, ...], list[str]] = {}
    against: dict[str, list[tuple[str, float]]] = {"faster": [], "slower": []}
    alike = []
    for best in group.best:
        if best.fastest:
            names = tuple(one_line(titles.get(name, name)) for name in best.fastest)
            fastest.setdefault(names, []).append(short[best.platform])
        if best.versus is not None and best.versus.verdict in against and best.versus.ratio is not None:
            against[best.versus.verdict].append((short[best.platform], best.versus.ratio))
        elif best.versus is not None and best.versus.p_adjusted is not None:
            alike.append(short[best.platform])
    parts = []
    for (first, *tied), platforms in fastest.items():
        if tied:
            no_difference = f"{_and([first, *tied])} (no significant difference)"
            parts.append(f"the fastest on {_and(platforms)} are {no_difference}")
        else:
            parts.append(f"{first} is the fastest on {_and(platforms)}")
    base, apart = short[group.best[0].platform] if group.best else "", []
    if alike:
        apart.append(f"{_and([*alike, base])} show no significant difference")
    if against["faster"]:
        (first, ratio), *others = against["faster"]
        listed = [f"{first} is {times(1 / ratio)} ×", *(f"{name} {times(1 / ratio)} ×" for name, ratio in others)]
        apart.append(f"{_and(listed)} as fast as {base}")
    if against["slower"]:
        apart.append(f"{base} is {_and([f'{times(ratio)} × as fast as {name}' for name, ratio in against['slower']])}")
    parts += [f"comparing the fastest of each, {' and '.join(apart)}"] if apart else []
    text = "; ".join(parts)
    return [f"{text[:1].upper()}{text[1:]}."] if text else []


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def ab_answers(comparison: Comparison, precision_pct: float, round_s: float | None) -> list[str]:
    """Return the question and the answer of each row that is its baseline's cell in another variant or program.

    The answer is that of `--fail-if-slower` with the same percentage.

    Args:
        comparison: of one run.
        precision_pct: that it was to reach.
        round_s: seconds that a round takes; null: not known.
    """
    if comparison.kind != "cells":
        return []
    more_rounds, lines = limit_slow_downs(comparison, precision_pct).more_rounds, []
    bases = {
        id(row): base for group in comparison.groups for base in group.rows if base.is_baseline for row in group.rows
    }
    titles = {id(row): " ".join(group.title) for group in comparison.groups for row in group.rows}
    for name, row, shown in limited_rows(comparison, precision_pct):
        base = bases.get(id(row))
        if base is not None and row.cell.key_without(AB_AXES) == base.cell.key_without(AB_AXES):
            question = f"is {row.name} more than {precision_pct:g} % slower than {base.name}?"
            words = _ab_answer(row, shown, precision_pct, round_s, more_rounds.get(name))
            lines.append(one_line(f"{titles[id(row)]}: {question} {words}"))
    return lines


def ab_findings(comparison: Comparison, round_s: float | None) -> list[str]:
    """Return what was found, and what half the interval costs, of each group of two that `ab_answers` answers for.

    Args:
        comparison: of one run.
        round_s: seconds that a round takes; null: not known.
    """
    lines = []
    for group in comparison.groups if comparison.kind == "cells" else ():
        # Of more than two the table is the answer.
        base = next((row for row in group.rows if row.is_baseline and len(group.rows) == 2), None)  # noqa: PLR2004
        for row in group.rows:
            versus = row.versus
            if base is None or row is base or versus is None or versus.ratio is None:
                continue
            if row.cell.key_without(AB_AXES) == base.cell.key_without(AB_AXES):
                rounds, verdict = counted(versus.count, "round"), answer(row)
                words = verdict if versus.low is None or rounds in verdict else f"{verdict} ({rounds})"
                what = f"{' '.join(group.title)}: {row.name} against {base.name}: {words}"
                lines.append(one_line(f"{what}{_to_halve(versus, round_s)}"))
    return lines


def _to_halve(versus: Estimate, round_s: float | None) -> str:
    """Return ``; 32 rounds (12 minutes) would halve the interval``; empty where more rounds do not help."""
    if not versus.has_interval or versus.modes is not None or versus.contention_pct is not None or not versus.se_log:
        return ""
    if versus.count < ROUNDS_FOR_VERDICT:
        return ""
    needed = rounds_for(versus, versus.half_width(1 - ALPHA) / 2, 1 - ALPHA)
    if needed is None or needed > ROUNDS_SHOWN_MAX:
        return ""
    minutes = "" if round_s is None else f" ({counted(math.ceil(needed * round_s / 60), 'minute')})"
    return f"; {counted(max(needed, versus.count + 1), 'round')}{minutes} would halve the interval"


def _ab_answer(row: Row, shown: SlowerBy, precision_pct: float, round_s: float | None, more_rounds: int | None) -> str:
    """Return ``yes: 5.1 ± 1.2 % slower (12 rounds)``."""
    versus = row.versus
    if versus is None or versus.low is None or versus.high is None or versus.contention_pct is not None:
        return f"not known: {answer(row)}"
    rounds = counted(versus.count, "round")
    # The question has one side, so that its bound may settle it where the verdict, which has two, is open.
    least_pct, most_pct = (100 * (end - 1) for end in versus.interval(SAME_LEVEL))
    is_open = versus.verdict == "unresolved" and versus.modes is None
    if shown == "slower":
        words = (
            f"at least {max(0.0, math.floor(10 * least_pct) / 10):.1f} % slower, one-sided" if is_open else answer(row)
        )
        return f"yes: {words} ({rounds})"
    if shown == "not_slower":
        words = f"at most {max(0.1, math.ceil(10 * most_pct) / 10):.1f} % slower, one-sided" if is_open else answer(row)
        return f"no: {words} ({rounds})"
    half_pct = 100 * math.expm1(min(10.0, versus.half_width(1 - ALPHA)))
    more, purpose = more_rounds, "would decide"
    if versus.modes is not None or (half_pct <= precision_pct and versus.count >= ROUNDS_PRELIMINARY):
        words = f"not known: {answer(row)} ({rounds})"
    else:
        apart_pct, direction = 100 * math.expm1(abs(versus.mean_log)), TIME_WORDS[versus.mean_log >= 0]
        points = f"{apart_pct:.1f} ± {half_pct:.{0 if half_pct >= 10 else 1}f} % {direction}"  # noqa: PLR2004
        words = f"not known yet: {points if half_pct < HALF_PCT_SHOWN else 'more than ±100 %'} after {rounds}"
        needed, purpose = rounds_for(versus, math.log1p(precision_pct / 100), 1 - ALPHA), f"for ±{precision_pct:g} %"
        more = None if needed is None else max(1, needed - versus.count)
    if more is None or versus.count + more > ROUNDS_SHOWN_MAX:
        return words if versus.modes is not None else f"{words}; far more rounds {purpose}"
    minutes = "" if round_s is None else f" ({counted(math.ceil(more * round_s / 60), 'minute')})"
    return f"{words}; about {counted(more, 'more round')}{minutes} {purpose}"
