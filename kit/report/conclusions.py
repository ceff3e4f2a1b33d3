"""The sentences below a group: the fastest, a sweep's best point, when compiling pays, whose scores agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

from kit.compare.comparison import GroupRows
from kit.compare.metrics import score_margin
from kit.report.columns import LETTERS
from kit.report.values_in_words import counted, number, one_line, several
from kit.report.verdict_words import PERCENT_BELOW, times


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
        margin, ends = score_margin(base.samples, [base.value("fit_score")]), (known.difference, known.low, known.high)
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
