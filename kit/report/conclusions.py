"""What is concluded of a group: the fastest, a sweep's best point, when compiling pays, whose scores agree."""

from __future__ import annotations

from kit.compare.rows import GroupRows
from kit.report.answer import PERCENT_BELOW, times
from kit.report.plain import one_line
from kit.report.quantity import counted, number
from kit.report.words import Titles, several


def group_sentences(group: GroupRows, titles: Titles) -> list[str]:
    """Return what is concluded of a group: ``JAX is the fastest: 1.83 × as fast as PyTorch.``, and what else."""
    said = [*_recommended(group), *_broken_even(group), *_scores(group)]
    return [*_fastest(group, titles), *said]


def _recommended(group: GroupRows) -> list[str]:
    """Return a sweep's best point, and the smallest that nearly has its throughput."""
    one = group.recommendation
    if one is None:
        return []
    rate = "" if one.samples_per_s is None else f", {number(one.samples_per_s)} samples/s"
    open_to = several([one_line(name) for name in one.unresolved])
    best = f"Best throughput: {one_line(one.best)}{rate}{f'; not resolved against {open_to}' if open_to else ''}."
    if one.smallest is None:
        return [best]
    if one.ratio is None:
        return [f"{best} No smaller one is within 5 % of it."]
    interval = "" if one.low is None or one.high is None else f" [{one.low:.3f}, {one.high:.3f}]"
    smallest = f"{one_line(one.smallest)}, {one.ratio:.3f}{interval} × the time per sample"
    return [f"{best} The smallest shown to be within 5 % of it: {smallest}."]


def _broken_even(group: GroupRows) -> list[str]:
    """Return after how many steps the compile mode that compiles for longer has paid for it."""
    lines = []
    for row in group.rows:
        found = row.break_even
        if found is None:
            continue
        one, other = one_line(row.name), one_line(group.baseline or "")
        if found.of_baseline:
            one, other = other, one
        if found.outcome == "pays" and found.low is not None and found.high is not None:
            interval = f"{found.steps:,.0f} [{found.low:,.0f}, {found.high:,.0f}]"
            line = f"{one} has paid for its compilation after {interval} steps, against {other}"
        elif found.outcome == "at_once":
            line = f"{one} is ahead of {other} from the first step"
        elif found.outcome == "never":
            line = f"{one} never pays for its compilation: its steps are no shorter than those of {other}"
        else:
            point = "" if found.steps is None else f" (about {found.steps:,.0f} steps, if so)"
            line = f"Whether {one} pays for its compilation, against {other}, is unresolved{point}"
        lines.append(f"{line}{'*' if row.numbers.process_shared else ''}.")
    return lines


def _scores(group: GroupRows) -> list[str]:
    """Return whether scores are the baseline's, and by how much they differ."""
    base = one_line(group.baseline or "")
    lines = []
    for row in group.rows:
        found, fit = row.score_difference, row.numbers.fit
        if found is None or fit is None:
            continue
        name, margin, numbers = one_line(row.name), number(found.margin), (found.difference, found.low, found.high)
        mean, low, high = (f"{one:+.2g}" for one in numbers)
        if fit.metric == "accuracy":
            margin = f"{100 * found.margin:g} point"
            mean, low, high = (f"{100 * one:+.2f}" for one in numbers)
        said = {
            "agrees": f"{name} agrees with {base} within {margin}",
            "differs": f"{name} differs from {base}",
            "unresolved": f"whether {name} agrees with {base} is unresolved",
        }[found.verdict]
        lines.append(f"Score: {said}: {mean} [{low}, {high}], {counted(found.repeats, 'repeat')}.")
    return lines


def _fastest(group: GroupRows, titles: Titles) -> list[str]:
    if group.leaders is None:
        return []
    leaders = group.leaders
    first, *level = (one_line(titles.get(name, name)) for name in leaders.names)
    claims = [f"{_by(ratio)} {one_line(titles.get(name, name))}" for name, ratio in leaders.beaten]
    claims += [
        f"{times(fast)} and {times(slow)} × as fast as {one_line(titles.get(name, name))} in two modes"
        for name, fast, slow in leaders.modes
    ]
    said = ", ".join(claims)
    if level:
        return [f"{', '.join([first, *level[:-1]])} and {level[-1]}: no significant difference. {first} is {said}."]
    return [f"{first} is {said}." if leaders.modes else f"{first} is the fastest: {said}."]


def _by(ratio: float | None) -> str:
    """Return a ratio above 1 with as many digits as its row has; no mean describes two modes."""
    if ratio is None:
        return "in both modes faster than"
    return f"{ratio:.{3 if ratio < 1 + PERCENT_BELOW else 2}f} × as fast as"
