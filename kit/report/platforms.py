"""Platforms side by side: a row for each cell, and below each platform its time, its joules and the verdict.

                 cpu       gpu · H100 80GB HBM3
mlp train         step       step  J/1k  against cpu
  jax          3.18 ms     104 µs  0.51  31 [24, 39] × faster
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.compare.rows import Comparison, GroupRows, Headline, Row
from kit.report.answer import answer, times
from kit.report.columns import NAME_MAX, OBSERVED, STEP, STYLES, Shown, columns_of
from kit.report.plain import NONE, one_line
from kit.report.quantity import counted, moment, several
from kit.report.sentences import sentence
from kit.report.table import Cell, Column, Table

# Without --wide a platform shows what is judged, and joules and costs where they are known.
ANSWERING = ("step", "fit", "median", "time/sample", "J/1k", "cost/1M")
# What platforms may differ in apart from the device. The headline names it where it differs from the baseline's.
NAMED_ABOVE = {"workload": "", "task": "", "batch": "batch ", "precision": "", "feed": "feed "}
PLATFORMS_LISTED_MAX = 12
GAP = 2


def platform_lines(headlines: Sequence[Headline]) -> list[str]:
    """Return a line for each platform: its device, its runs, and in what it differs from the first."""
    lines = [_platform_line(head, headlines[0]) for head in headlines[:PLATFORMS_LISTED_MAX]]
    more = len(headlines) - len(lines)
    return [*lines, *([f"and {counted(more, 'platform')} more"] if more > 0 else [])]


def _platform_line(head: Headline, base: Headline) -> str:
    apart = [
        f"{prefix}{several(head.axes[axis])}"
        for axis, prefix in NAMED_ABOVE.items()
        if sorted(head.axes[axis]) != sorted(base.axes[axis])
    ]
    data = [f"data {several(head.data)}"] if sorted(head.data) != sorted(base.data) else []
    details = [*device_words(head), *apart, *data, runs_words(head), moment(head.created)]
    return one_line(f"{head.label}: {' · '.join(details)}")


def runs_words(head: Headline) -> str:
    """Return ``3 runs of 4 to 8 rounds``."""
    more = f" to {head.rounds_max}" if head.rounds_max > head.rounds else ""
    return f"{counted(head.profiles, 'run')} of {head.rounds}{more} {'round' if head.rounds_max == 1 else 'rounds'}"


def device_words(head: Headline) -> list[str]:
    """Return the devices of a run with their buses and counts: ``NVIDIA H100 80GB HBM3 (bus 0000:1b:00, 1 of 8)``.

    The processor that feeds an accelerator stands behind it.
    """
    words = []
    for device in head.devices:
        details = [f"bus {', '.join(device.device_ids)}"] if device.device_ids else []
        details += [f"{device.used} of {device.present}"] if device.present > device.used else []
        if device.model != head.cpu:
            words.append(device.model + (f" ({', '.join(details)})" if details else ""))
    cpus = f"{head.cpus} vCPUs ({head.hypervisor})" if head.hypervisor else counted(head.cpus or 0, "CPU")
    return [*words, f"{head.cpu}, {cpus}"]


def platform_tables(
    comparison: Comparison, groups: Sequence[GroupRows], titles: Mapping[str, str], wide: bool
) -> list[Table]:
    """Return a table for each group; all have the same columns."""
    sides = comparison.sides or [head.label for head in comparison.headlines]
    short = _short(sides)
    shown = {side: _columns(groups, side, comparison, wide) for side in sides}
    columns = [Column("", right=False, width_max=NAME_MAX)]
    for side in sides:
        of_side = [Column(column.title, right=column is not OBSERVED) for column in shown[side]]
        if side != sides[0]:
            of_side.append(Column(f"against {short[sides[0]]}", right=False))
        # A platform is called by its whole name where there is room for it.
        over = side if len(side) <= sum(len(column.title) + GAP for column in of_side) else short[side]
        columns += [column._replace(over=one_line(over)) for column in of_side]
    return [
        Table(
            title=" · ".join(map(one_line, group.title)),
            columns=columns,
            rows=_rows(group, sides, shown, wide),
            sentences=_sentences(group, short, titles),
        )
        for group in groups
    ]


def _columns(groups: Sequence[GroupRows], side: str, comparison: Comparison, wide: bool) -> list[Shown]:
    """Return what a platform's rows show, in all of its groups the same."""
    of_side = [
        GroupRows(key=group.key, title=group.title, baseline=None, rows=[row for row in group.rows if row.side == side])
        for group in groups
    ]
    known = columns_of([group for group in of_side if group.rows], by=comparison.by, wide=wide)
    answering = (column for column in known if wide or column.title in ANSWERING or column.name == comparison.by)
    return list(answering) or [STEP[0]]


def _rows(group: GroupRows, sides: Sequence[str], shown: Mapping[str, Sequence[Shown]], wide: bool) -> list[list[Cell]]:
    by_place = {(row.member, row.side): row for row in group.rows}
    why = {(missing.member, missing.side): sentence(missing.reason) for missing in group.missing}
    here = {row.side for row in group.rows}
    rows = []
    for member in dict.fromkeys(row.member for row in group.rows):
        cells = [Cell(one_line(member))]
        for side in sides:
            because = why.get((member, side), "") if side in here else ""
            cells += _cells(by_place.get((member, side)), shown[side], because, is_base=side == sides[0], wide=wide)
        rows.append(cells)
    return rows


def _cells(row: Row | None, columns: Sequence[Shown], why: str, *, is_base: bool, wide: bool) -> list[Cell]:
    """Return the cells below a platform; a letter where there is no number, whose reason stands below all tables."""
    answered = [] if is_base else [Cell("", is_empty=True)]
    if row is None and not why:  # nothing of the group is on this platform
        return [*(Cell("", is_empty=True) for _ in columns), *answered]
    if row is None or not row.has_number:
        because = why or (f"failed: {sentence(row.failure)}" if row and row.failure else "no rounds")
        return [Cell(NONE, because=because), *(Cell(NONE) for _ in columns[1:]), *answered]
    if not is_base:
        answered = [Cell(answer(row), "" if row.versus is None else STYLES.get(row.versus.verdict, ""))]
    return [*(Cell(column.show(row, wide=wide)) for column in columns), *answered]


def _short(sides: Sequence[str]) -> dict[str, str]:
    """Return each platform by its device alone, where no other has that."""
    devices = [side.partition(" · ")[0] for side in sides]
    return {
        side: device if devices.count(device) == 1 else one_line(side)
        for side, device in zip(sides, devices, strict=True)
    }


def _sentences(group: GroupRows, short: Mapping[str, str], titles: Mapping[str, str]) -> list[str]:
    """Return the fastest of each platform, then how far the platforms are apart at their best."""
    if len({row.member for row in group.rows}) == 1:
        return []
    fastest: dict[tuple[str, ...], list[str]] = {}
    for best in group.best:
        if best.fastest:
            names = tuple(one_line(titles.get(name, name)) for name in best.fastest)
            fastest.setdefault(names, []).append(short[best.platform])
    words = []
    for (first, *tied), platforms in fastest.items():
        if tied:
            no_difference = f"{_and([first, *tied])} (no significant difference)"
            words.append(f"the fastest on {_and(platforms)} are {no_difference}")
        else:
            words.append(f"{first} is the fastest on {_and(platforms)}")
    text = "; ".join([*words, *_apart(group, short)])
    return [f"{text[:1].upper()}{text[1:]}."] if text else []


def _apart(group: GroupRows, short: Mapping[str, str]) -> list[str]:
    """Return how far the platforms are from the baseline's, those that a verdict says are."""
    against: dict[str, list[tuple[str, float]]] = {"faster": [], "slower": []}
    for best in group.best:
        if best.versus is not None and best.versus.ratio is not None and best.versus.verdict in against:
            against[best.versus.verdict].append((short[best.platform], best.versus.ratio))
    alike = [
        short[best.platform]
        for best in group.best
        if best.versus is not None and best.versus.verdict in ("same", "unresolved")
    ]
    words = []
    if alike:
        words.append(f"{_and([*alike, short[group.best[0].platform]])} show no significant difference")
    if against["faster"]:
        (first, ratio), *others = against["faster"]
        listed = [f"{first} is {times(1 / ratio)} ×", *(f"{name} {times(1 / ratio)} ×" for name, ratio in others)]
        words.append(f"{_and(listed)} as fast as {short[group.best[0].platform]}")
    if against["slower"]:
        listed = [f"{times(ratio)} × as fast as {name}" for name, ratio in against["slower"]]
        words.append(f"{short[group.best[0].platform]} is {_and(listed)}")
    return [f"comparing the fastest of each, {' and '.join(words)}"] if words else []


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
