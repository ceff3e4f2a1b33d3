"""One profile: the cells of each group against their baseline, round by round.

round 1   tensorflow  torch  jax      the log-ratio of each pair in each round;
round 2   tensorflow  torch  jax      the pairs of one group are one family
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kit.audit.finding import members as audited
from kit.audit.two_modes import modes_of
from kit.compare.cell_numbers import counted_marks, first_failure, judged_ns, launch_marks, numbers_of, processes_shared
from kit.compare.fits import score_difference
from kit.compare.naming import label_members, titles
from kit.compare.notes import deduplicated, headline_of, notes_within
from kit.compare.pairs import Pairs
from kit.compare.rows import Comparison, GroupRows, Leaders, Recommendation, Row
from kit.compare.sweep import break_even, recommendation, swept_axis
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.reason import reason
from kit.profile.schema import PART, CellResult, Group, Profile
from kit.stats.break_even import BreakEven
from kit.stats.rounds import By

if TYPE_CHECKING:
    from kit.audit.finding import Finding


def compare_within(
    label: str,
    profile: Profile,
    *,
    baseline: str | None = None,
    findings: Sequence[Finding] = (),
    by: By = "step",
) -> Comparison:
    """Return every group of one profile with its verdicts.

    Args:
        label: of the profile.
        profile: whole.
        baseline: name of a row, or key of a cell, that is the baseline where a group has it; null: the groups' own.
        findings: of the profile's audit, gravest first.
        by: what is compared.

    Raises:
        KitError: no group has such a cell.
    """
    whole = whole_groups(profile)
    names = {
        key: label_members({result.key: result.cell for result in results}, profile.suite.compare)
        for key, results in whole.items()
    }
    known = {name for of_group in names.values() for name in of_group.values()}
    if baseline is not None and baseline not in known and not any(baseline in of_group for of_group in names.values()):
        raise KitError(f"no baseline {baseline!r} in {label}; choose from {', '.join(sorted(known))}")
    heads = titles([[result.cell for result in results] for results in whole.values()])
    groups = [
        _group(profile, key, title, names[key], baseline, findings, by) for key, title in zip(whole, heads, strict=True)
    ]
    return Comparison(
        kind="cells",
        groups=groups,
        headlines=[headline_of(label, profile)],
        notes=deduplicated(notes_within(label, profile, groups, by)),
        by=by,
    )


def whole_groups(profile: Profile) -> dict[str, list[CellResult]]:
    """Return the cells of each group, its parts put together, each cell once."""
    results = {result.key: result for result in profile.cells}
    whole: dict[str, dict[str, CellResult]] = {}
    for group in profile.groups:
        of_group = whole.setdefault(_whole_key(group.key), {})
        of_group.update({key: results[key] for key in group.cells if key in results})
    return {key: list(cells.values()) for key, cells in whole.items() if cells}


def parts_of(profile: Profile, key: str) -> list[Group]:
    """Return the parts that the whole group `key` was measured in; one where it was not split."""
    return [group for group in profile.groups if _whole_key(group.key) == key]


def launches_of(profile: Profile, key: str) -> dict[str, list[Launch]]:
    """Return, by the key of each cell of the whole group `key`, its launches in that group."""
    cells = {cell for part in parts_of(profile, key) for cell in part.cells}
    return {
        result.key: [launch for launch in result.launches if _whole_key(launch.group) == key]
        for result in profile.cells
        if result.key in cells
    }


def _whole_key(group_key: str) -> str:
    return group_key.partition(PART)[0]


def _group(  # noqa: PLR0917 - what a group is made of
    profile: Profile,
    key: str,
    title: list[str],
    names: Mapping[str, str],
    wanted: str | None,
    findings: Sequence[Finding],
    by: By,
) -> GroupRows:
    parts, launches = parts_of(profile, key), launches_of(profile, key)
    members = [result for result in profile.cells if result.key in names]
    modes_of_all = {
        (member.group, member.cell.key): modes_of(member)
        for member in audited(profile)
        if _whole_key(member.group) == key
    }
    modes = {where: of_member for where, of_member in modes_of_all.items() if of_member is not None}
    cells = {member.key: member.cell for member in members}
    pairs, shared = Pairs(parts, cells, launches, modes, by), processes_shared(profile)
    axis = swept_axis(list(cells.values()), profile.suite.compare)
    baseline = next((name for name in names if wanted in (names[name], name)), parts[0].baseline)
    trends = pairs.trends()
    rows = []
    for member in members:
        of_cell = launches[member.key]
        numbers = numbers_of(member, of_cell, shared, pairs.shown_ns(member.key, baseline), by)
        judged = member.key != baseline and numbers.step_ns is not None and baseline in names
        marks = counted_marks(mark for launch in of_cell for mark in launch_marks(launch))
        marks += [
            reason("stalls", share_pct=finding.values["stalled_pct"])
            for finding in findings
            if (finding.code, finding.cell_key, _whole_key(finding.group)) == ("stalls", member.key, key)
        ]
        rows.append(
            Row(
                name=names[member.key],
                cell=member.cell,
                profiles=[],
                numbers=numbers,
                is_baseline=member.key == baseline,
                versus=pairs.versus(member.key, baseline) if judged else None,
                score_difference=score_difference(of_cell, launches[baseline]) if judged else None,
                break_even=_break_even(cells, launches, member.key, baseline) if judged else None,
                marks=[*marks, *trends.get(member.key, []), *pairs.modes_mark(member.key)],
                failure=first_failure(of_cell),
            )
        )
    if axis is None:
        rows.sort(key=lambda row: judged_ns(row.numbers, by) or math.inf)
    else:
        rows.sort(key=lambda row: row.cell.value(axis) or 0)
    keys = {name: key for key, name in names.items()}
    return GroupRows(
        key=key,
        title=title,
        baseline=names.get(baseline),
        rows=rows,
        leaders=_leaders(rows, pairs, keys) if axis is None else None,
        recommendation=None if axis is None or by != "step" else _recommended(axis, rows, pairs, keys),
        findings=_once(finding for finding in findings if _whole_key(finding.group) == key),
    )


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Return each finding of a cell once: a baseline is measured in every part of its group."""
    return list({(finding.cell_key, finding.code): finding for finding in findings}.values())


def _break_even(
    cells: Mapping[str, Cell], launches: Mapping[str, Sequence[Launch]], key: str, baseline: str
) -> BreakEven | None:
    """Return it for another compile mode of the same framework; what else is compared compiles something else."""
    cell, base_cell, axis = cells[key], cells[baseline], ("compile_mode",)
    is_other_mode = (
        cell.key != base_cell.key and cell.key_without(axis) == base_cell.key_without(axis) and cell.task != "fit"
    )
    return break_even(launches[key], launches[baseline]) if is_other_mode else None


def _recommended(axis: str, rows: Sequence[Row], pairs: Pairs, keys: Mapping[str, str]) -> Recommendation | None:
    measured = [row for row in rows if row.numbers.sample_ns is not None]
    if not any(row.is_baseline for row in measured):
        return None
    best = min(measured, key=lambda row: row.numbers.sample_ns or math.inf)
    against = {row.name: pairs.versus(keys[row.name], keys[best.name]) for row in measured if row is not best}
    return recommendation(axis, measured, against)


def _leaders(rows: Sequence[Row], pairs: Pairs, keys: Mapping[str, str]) -> Leaders | None:
    """Return who is the fastest of the rows, which are so ordered; null where no verdict says so. `keys`: by name."""
    first, *others = [row for row in rows if row.numbers.step_ns is not None] or rows[:1]
    against = {row.name: pairs.versus(keys[row.name], keys[first.name]) for row in others}
    slower_than_fastest = [
        (name, versus.ratio if versus.modes is None else None)
        for name, versus in against.items()
        # One that changes between two modes is slower where both are slower.
        if versus.verdict == "slower" and versus.ratio is not None and (versus.modes is None or versus.modes[0] > 1)
    ]
    slower = {name for name, _ in slower_than_fastest}
    in_modes = [
        (name, *versus.modes)
        for name, versus in against.items()
        if name not in slower and versus.modes is not None and versus.modes[0] > 1
    ]
    if any(versus.verdict == "faster" for versus in against.values()):
        return None
    tied = [name for name in against if name not in {*slower, *(of_row[0] for of_row in in_modes)}]
    if not slower_than_fastest:
        return None
    return Leaders(tied=[first.name, *tied], slower_than_fastest=slower_than_fastest, modes=in_modes)
