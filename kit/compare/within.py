"""One profile: the cells of each group against their baseline, round by round.

round 1   tensorflow  torch  jax      the log-ratio of each pair in each round;
round 2   tensorflow  torch  jax      the pairs of one group are one family
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kit.compare.cell_numbers import compile_first_ns, judged_ns
from kit.compare.clean_cycles import count_cycles
from kit.compare.energy import energy_verdicts
from kit.compare.fits import score_difference
from kit.compare.launch_arrays import block_arrays
from kit.compare.leaders import leaders_of
from kit.compare.modes import Modes, modes_of
from kit.compare.naming import swept_axis, titles
from kit.compare.notes import deduplicated, headline_of, left_out_notes, notes_within
from kit.compare.pairs import Pairs
from kit.compare.rows import Comparison, GroupRows, Numbers, Recommendation, Row
from kit.compare.runs import CellRun, RunFacts, WholeGroup, row_of, whole_groups, whole_key
from kit.compare.scaling import scaling_of
from kit.errors import KitError
from kit.profile.launch import Launch
from kit.profile.reason import reason
from kit.profile.schema import CellResult, Profile
from kit.stats.break_even import BreakEven, break_even
from kit.stats.rounds import By, launch_time_ns
from kit.stats.verdict import Versus

if TYPE_CHECKING:
    from kit.audit.finding import Finding

# Axes on which less is cheaper: memory and latency grow with the batch, threads are taken from others.
CHEAPER_WHEN_SMALLER = ("batch", "threads")
# Nobody pays more for the last twentieth of a throughput.
WITHIN_5_PCT = 1.05


def compare_within(
    label: str,
    profile: Profile,
    *,
    baseline: str | None = None,
    findings: Sequence[Finding] = (),
    by: By = "step",
    all_cycles: bool = False,
) -> Comparison:
    """Return every group of one profile with its verdicts.

    Args:
        label: of the profile.
        profile: whole.
        baseline: name of a row, or key of a cell, that is the baseline where a group has it; null: the groups' own.
        findings: of the profile's audit, gravest first.
        by: what is compared.
        all_cycles: cycles that others disturbed count, too.

    Raises:
        KitError: no group has such a cell.
    """
    counted = count_cycles(profile, all_cycles=all_cycles)
    profile, whole = counted.profile, whole_groups(counted)
    known = {name for group in whole for name in group.names.values()}
    if baseline is not None and baseline not in known and not any(baseline in group.results for group in whole):
        raise KitError(f"no baseline {baseline!r} in {label}; choose from {', '.join(sorted(known))}")
    heads = titles([[result.cell for result in group.results.values()] for group in whole])
    facts = RunFacts.of(profile)
    modes = {place: known for group in whole for place, known in _modes(group).items() if known is not None}
    without_all_reduce = {variant.name for variant in profile.suite.variants if not variant.all_reduces}
    groups = []
    for group, title in zip(whole, heads, strict=True):
        base = next((key for key, name in group.names.items() if baseline in (name, key)), group.parts[0].baseline)
        pairs = group.pairs(by, modes, base)
        by_step = pairs if by == "step" else group.pairs()
        runs = {key: group.cell_run(key, by_step, facts, by) for key in group.results}
        of_group = [finding for finding in findings if whole_key(finding.group) == group.key]
        axis = swept_axis([run.cell for run in runs.values()], profile.suite.compare)
        groups.append(_group_rows(group, runs, pairs, base, of_group, title, axis, without_all_reduce, by))
    return Comparison(
        kind="cells",
        groups=groups,
        headlines=[headline_of(label, profile)],
        notes=deduplicated([*notes_within(label, profile, groups, by), *left_out_notes(label, counted)]),
        by=by,
        rule=counted.rule,
    )


def _group_rows(  # noqa: PLR0917 - what a group is made of
    group: WholeGroup,
    runs: Mapping[str, CellRun],
    pairs: Pairs,
    baseline: str,
    findings: Sequence[Finding],
    title: list[str],
    axis: str | None,
    without_all_reduce: Collection[str],
    by: By,
) -> GroupRows:
    """Return the group's rows with their verdicts; `axis`: that it sweeps, `without_all_reduce`: variants."""
    trends, joules = pairs.trends(), energy_verdicts(group.results, baseline)
    # One name, one number: whatever a cell is compared with, its joules are those beside the group's own baseline.
    own_baseline = group.parts[0].baseline if group.parts[0].baseline in runs else baseline
    own_joules = joules if own_baseline == baseline else energy_verdicts(group.results, own_baseline)
    rows = []
    for key, run in runs.items():
        row = row_of(run.name, [run], is_baseline=key == baseline)
        stalls = [
            reason("stalls", share_pct=finding.values["stalled_pct"])
            for finding in findings
            if (finding.code, finding.cell_key) == ("stalls", key)
        ]
        row = replace(row, marks=[*row.marks, *stalls, *trends.get(key, []), *pairs.modes_mark(key)])
        if key != baseline and run.numbers.step_ns is not None and baseline in runs:
            result, base = group.results[key], group.results[baseline]
            row = replace(
                row,
                versus=pairs.versus(key, baseline),
                energy_versus=joules.get(key),
                numbers=_with_joules(run.numbers, runs[own_baseline].numbers, own_joules.get(key)),
                score_difference=score_difference(result.launches, base.launches),
                break_even=_break_even(result, base),
                scaling=scaling_of(key, baseline, group.results, pairs, without_all_reduce) if by == "step" else None,
            )
        rows.append(row)
    if axis is None:
        rows.sort(key=lambda row: judged_ns(row.numbers, by) or math.inf)
    else:
        rows.sort(key=lambda row: row.cell.value(axis) or 0)
    keys = {name: key for key, name in group.names.items()}
    # One that averages nothing does not do the work.
    names = [row.name for row in rows if row.numbers.step_ns is not None and row.cell.variant not in without_all_reduce]
    return GroupRows(
        key=group.key,
        title=title,
        baseline=group.names.get(baseline),
        rows=rows,
        leaders=leaders_of(names, pairs, keys) if axis is None else None,
        recommendation=None if axis is None or by != "step" else _recommended(axis, rows, pairs, keys),
        findings=_once(findings),
    )


def _modes(group: WholeGroup) -> dict[tuple[str, str], Modes | None]:
    """Return the two modes of each cell that has them, by part of the group and cell."""
    modes = {}
    for part in group.parts:
        finished: dict[str, dict[int, Launch]] = {}
        for key in part.cells:
            for launch in group.results[key].launches if key in group.results else ():
                if launch.group == part.key and launch.gave_number:
                    finished.setdefault(key, {})[launch.round] = launch
        for key, launches in finished.items():
            others = [of_other for other, of_other in finished.items() if other != key]
            modes[part.key, key] = modes_of(group.results[key].cell, launches, others)
    return modes


def _with_joules(numbers: Numbers, baseline: Numbers, versus: Versus | None) -> Numbers:
    """Return the numbers with the joules that a cell would have taken in the rounds that its baseline saw.

    As of times: what stands in a row has the ratio that is judged; `numbers.energy` keeps the cell's own.
    """
    if versus is None or versus.ratio is None or baseline.energy_per_sample_j is None:
        return numbers
    return replace(numbers, energy_per_sample_j=baseline.energy_per_sample_j * versus.ratio)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Return the gravest finding of each kind of a cell: a baseline is measured in every part of its group."""
    kept: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        kept.setdefault((finding.cell_key, finding.code, finding.about), finding)
    return list(kept.values())


def _break_even(result: CellResult, baseline: CellResult) -> BreakEven | None:
    """Return after how many steps the compile mode that compiles for longer has paid for it; None of other axes."""
    axis = ("compile_mode",)
    if result.cell.key_without(axis) != baseline.cell.key_without(axis) or result.cell.task == "fit":
        return None
    # By part, too: where a group was split its baseline ran in a process of each.
    by_place, base_by_place = (
        {(launch.group, launch.round): launch for launch in of_cell.launches if launch.gave_number}
        for of_cell in (result, baseline)
    )
    pairs = [(by_place[place], base_by_place[place]) for place in sorted(by_place.keys() & base_by_place.keys())]
    extra_ns = [compile_first_ns(launch) - compile_first_ns(base) for launch, base in pairs]
    saving_ns = [launch_time_ns(block_arrays(base)) - launch_time_ns(block_arrays(launch)) for launch, base in pairs]
    return break_even(extra_ns, saving_ns)


def _recommended(axis: str, rows: Sequence[Row], pairs: Pairs, keys: Mapping[str, str]) -> Recommendation | None:
    """Return the point of best throughput, and the smallest that nearly has it; null if it is shown to beat no other.

    Rows are in the axis' order; `keys`: by name. Of axes on which less is not cheaper nothing is recommended.
    """
    rows = [row for row in rows if row.numbers.sample_ns is not None]
    if axis not in CHEAPER_WHEN_SMALLER or not any(row.is_baseline for row in rows):
        return None
    best = min(rows, key=lambda row: row.numbers.sample_ns or math.inf)
    against = {row.name: pairs.versus(keys[row.name], keys[best.name]) for row in rows if row is not best}
    if not any(versus.verdict == "slower" for versus in against.values()):
        return None
    smallest = next(row for row in rows if row is best or (against[row.name].high or math.inf) <= WITHIN_5_PCT)
    versus = against.get(smallest.name)
    # That none is smaller has to be shown, too.
    smaller = rows[: rows.index(best)] if smallest is best else []
    is_shown = all((against[row.name].low or 0) > WITHIN_5_PCT for row in smaller)
    return Recommendation(
        best=best.name,
        samples_per_s=best.numbers.samples_per_s,
        unresolved=[name for name, versus in against.items() if versus.verdict == "unresolved"],
        smallest=smallest.name if is_shown else None,
        ratio=None if versus is None else versus.ratio,
        low=None if versus is None else versus.low,
        high=None if versus is None else versus.high,
    )


class RoundRatios(NamedTuple):
    """What the verdict of a row rests on; ratios are of step times: below 1 it is faster than the baseline."""

    name: str
    versus: Versus  # of the whole run
    by_round: dict[int, float]  # of the cycles that count; of a round that does not: of all
    by_cycle: dict[int, list[float]]  # of each round, in order of cycle; none where members ran one after another
    counting: dict[int, list[bool]]  # of each round that counts, which of its `by_cycle` do


def round_ratios(profile: Profile, group: GroupRows) -> list[RoundRatios]:
    """Return them of every row of a group that has a common round with the baseline, in the group's order."""
    base = next((row.cell.key for row in group.rows if row.is_baseline), None)
    if base is None:
        return []
    parts = [part for part in profile.groups if whole_key(part.key) == group.key]
    members = {key for part in parts for key in part.cells}
    alone = replace(profile, groups=parts, cells=[result for result in profile.cells if result.key in members])
    (every,), (counted,) = (whole_groups(count_cycles(alone, all_cycles=of_all)) for of_all in (True, False))
    all_pairs, pairs = every.pairs(), counted.pairs()
    ratios = []
    for row in group.rows:
        key = row.cell.key
        if row.versus is not None and (logs := all_pairs.log_ratios(key, base)):
            clean_logs, ran, clean = pairs.log_ratios(key, base), _cycles(every, key, base), _cycles(counted, key, base)
            if any(counted.counted.is_disturbed(launch.group) for launch in counted.results[key].launches):
                counting = {}
            else:
                counting = {number: [cycle in clean[number] for cycle in ran[number]] for number in clean_logs}
            by_round = {number: math.exp(log) for number, log in (logs | clean_logs).items()}
            in_cycles = all_pairs.cycle_ratios(key, base)
            by_cycle = {number: [math.exp(log) for log in of_round] for number, of_round in in_cycles.items()}
            ratios.append(RoundRatios(row.name, row.versus, by_round, by_cycle, counting))
    return ratios


def _cycles(group: WholeGroup, key: str, other: str) -> Mapping[int, list[int]]:
    """Return the cycles that two cells of one part have in common in each round, in order."""
    mine, yours = (
        {(launch.group, launch.round): launch.blocks.cycle for launch in group.results[of].launches}
        for of in (key, other)
    )
    common = {
        number: sorted({*mine[part, number]}.intersection(yours[part, number]))
        for part, number in mine.keys() & yours.keys()
    }
    return defaultdict(list, common)
