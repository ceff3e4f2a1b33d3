"""What is concluded of a group: the fastest, a sweep's best point, when compiling pays, whose scores agree."""

from __future__ import annotations

from kit.compare.rows import GroupRows
from kit.report.answer import times
from kit.report.plain import one_line
from kit.report.quantity import counted, number
from kit.report.words import Titles


def group_sentences(group: GroupRows, titles: Titles) -> list[str]:
    """Return what is concluded of a group: ``JAX is the fastest: 1.8 × TensorFlow, 2.4 × PyTorch.``, and what else."""
    said = [*_recommended(group), *_broken_even(group), *_agreeing(group)]
    return [*_fastest(group, titles), *said]


def _recommended(group: GroupRows) -> list[str]:
    """Return a sweep's best point, and the smallest that nearly has its throughput."""
    one = group.recommendation
    if one is None:
        return []
    rate = "" if one.samples_per_s is None else f", {number(one.samples_per_s)} samples/s"
    best = f"Best throughput: {one_line(one.best)}{rate}."
    if one.ratio is None:
        return [f"{best} No smaller one is within 5 % of it."]
    interval = "" if one.low is None or one.high is None else f" [{one.low:.3f}, {one.high:.3f}]"
    return [f"{best} The smallest within 5 % of it: {one_line(one.smallest)}, {one.ratio:.3f}{interval} × the time."]


def _broken_even(group: GroupRows) -> list[str]:
    """Return after how many steps each compile mode has paid for its compilation."""
    lines = []
    for row in (row for row in group.rows if row.break_even is not None and group.baseline):
        own, against = row.break_even, one_line(group.baseline or "")
        if own is None:
            continue
        if own.outcome == "pays" and own.low is not None and own.high is not None:
            interval = f"{own.steps:,.0f} [{own.low:,.0f}, {own.high:,.0f}]"
            lines.append(
                f"{one_line(row.name)} has paid for its compilation after {interval} steps, against {against}."
            )
        elif own.outcome == "at_once":
            lines.append(f"{one_line(row.name)} is ahead of {against} from the first step.")
        elif own.outcome == "never":
            lines.append(f"{one_line(row.name)} never pays for its compilation: its steps are no shorter.")
        else:
            point = "" if own.steps is None else f" (about {own.steps:,.0f} steps, if so)"
            lines.append(f"Whether {one_line(row.name)} pays for its compilation is unresolved{point}.")
    return lines


def _agreeing(group: GroupRows) -> list[str]:
    """Return whose scores agree with the baseline's, and by how much the others' differ."""
    own = [(row, row.agreement, row.numbers.fit) for row in group.rows if row.agreement is not None]
    agree = [one_line(row.name) for row, one, _ in own if one.agrees]
    lines = []
    if agree:
        verb = "agrees" if len(agree) == 1 else "agree"
        repeats = min(fit.repeats for _, _, fit in own if fit is not None)
        what = f"{verb} with {one_line(group.baseline or '')}"
        lines.append(f"Scores: {' and '.join(agree)} {what} within the spread of {counted(repeats, 'repeat')}.")
    for row, one, fit in own:
        if not one.agrees:
            scale, unit = (100, " points") if fit is not None and fit.metric == "accuracy" else (1, "")
            interval = f"{scale * one.difference:+.3g} [{scale * one.low:+.3g}, {scale * one.high:+.3g}]{unit}"
            lines.append(f"Scores: {one_line(row.name)} differs from {one_line(group.baseline or '')} by {interval}.")
    return lines


def _fastest(group: GroupRows, titles: Titles) -> list[str]:
    if group.leaders is None:
        return []
    names = [one_line(titles.get(name, name)) for name in group.leaders.names]
    beaten = ", ".join(f"{times(ratio)} × {one_line(titles.get(name, name))}" for name, ratio in group.leaders.beaten)
    for name, fast, slow in group.leaders.modes:
        beaten += f", {times(fast)} and {times(slow)} × {one_line(titles.get(name, name))} in two modes"
    if len(names) == 1:
        return [f"{names[0]}: {beaten}." if group.leaders.modes else f"{names[0]} is the fastest: {beaten}."]
    return [f"{' and '.join(names)} are not told apart; {names[0]}: {beaten}."]
