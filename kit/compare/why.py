"""What differs between two profiles, in sentences, and what that may have done to their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from kit.compare.comparison import compare
from kit.compare.counted import counted
from kit.compare.differences import differences
from kit.compare.gate import LabelledProfile, NotComparableError
from kit.compare.graded import GradedDifference, several
from kit.compare.grades import Grade
from kit.compare.not_compared import is_undecided
from kit.compare.notes import headline
from kit.compare.rows import Row, Versus
from kit.compare.sentences import sentence
from kit.compare.state_facts import moment
from kit.compare.states import StateLine, state_lines
from kit.profile.hardware import same_hardware

# The largest of which there are at least two is the one that people say.
UNITS_S = {"day": 86_400, "hour": 3_600, "minute": 60}


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between the two profiles: `GradedDifference`, and what it says of these two."""

    grade: Grade
    kind: str
    name: str
    values: dict[str, list[str]]  # value in words -> labels
    sentence: str
    effect: str  # on the numbers


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Two profiles and what stands between them; the second is measured against the first."""

    labels: list[str]
    headline: list[str]  # what ran where
    apart: str  # in time and place
    numbers: list[str]  # what a comparison says, in sentences
    reasons: list[Reason]  # gravest first
    states: list[StateLine]  # how the machines were, before and after


def explain(first: LabelledProfile, second: LabelledProfile) -> Why:
    """Compare `second` with `first`, whatever the gate says, and put what differs into words."""
    pair = [first, second]
    try:
        comparison = compare(pair, first[0], force=True)
        found: Sequence[GradedDifference] = comparison.differences
        numbers = _numbers(comparison.rows, first[0], second[0])
    except NotComparableError as error:
        found = differences(pair, first[0], {})
        numbers = [f"There is nothing to compare: {error}."]
    return Why(
        labels=[first[0], second[0]],
        headline=headline(pair),
        apart=_apart(first, second),
        numbers=numbers,
        reasons=[_reason(one, pair) for one in found],
        states=state_lines(pair),
    )


def _reason(found: GradedDifference, pair: Sequence[LabelledProfile]) -> Reason:
    return Reason(
        grade=found.grade,
        kind=found.kind,
        name=found.name,
        values=found.values,
        sentence=sentence(found, pair),
        effect=found.effect,
    )


def _apart(first: LabelledProfile, second: LabelledProfile) -> str:
    if first[1].id == second[1].id:
        return f"{first[0]} and {second[0]} are the same run."
    where = "other hardware"
    if same_hardware(first[1].identity, second[1].identity):
        same_host = first[1].identity.hostname_sha256 == second[1].identity.hostname_sha256
        where = "the same host" if same_host else "another host (or container) of the same hardware"
    begun, after = moment(first[1].created), moment(second[1].created)
    if begun is None or after is None:
        return f"{second[0]} was taken on {where} as {first[0]}; when is not known."
    seconds = (after - begun).total_seconds()
    return (
        f"{second[0]} was taken {_span(abs(seconds))} {'after' if seconds >= 0 else 'before'} {first[0]}, on {where}."
    )


def _span(seconds: float) -> str:
    for unit, size_s in UNITS_S.items():
        if seconds >= 2 * size_s:
            return counted(round(seconds / size_s), unit)
    return counted(round(seconds), "second")


def _numbers(rows: Sequence[Row], first: str, second: str) -> list[str]:
    """Of the cells that both have: how they compare, and which the gate keeps apart."""
    own = [row for row in rows if row.profile == second and (row.versus is not None or row.no_verdict is not None)]
    undecided = [row for row in own if is_undecided(row)]
    decided = [row.versus for row in own if row.versus is not None and _has_ratio(row) and not is_undecided(row)]
    said = []
    if decided:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in Counter(v.verdict for v in decided).items())
        said.append(
            f"A steady step takes {_ratios(decided)} times as long in {second} as in {first} "
            f"({counted(len(decided), 'cell')}: {verdicts})."
        )
    if undecided:
        shown = [f"{row.cell.key} {_interval(row.versus)}" for row in undecided if row.versus is not None]
        said.append(f"Not shown to differ, times as long with the 95 % interval: {several(shown)}.")
    nothing = [f"{row.cell.key} ({row.no_verdict or 'too few launches'})" for row in own if not _has_ratio(row)]
    if nothing:
        said.append(f"Without a verdict: {several(nothing)}.")
    forced = [f"{row.cell.key} ({row.forced})" for row in own if row.forced is not None]
    if forced:
        said.append(f"The gate would keep apart {several(forced)}.")
    return said


def _ratios(found: Sequence[Versus]) -> str:
    """``0.98 to 1.21``."""
    ratios = sorted(versus.time_ratio for versus in found if versus.time_ratio is not None)
    return " to ".join(dict.fromkeys(f"{ratio:.3g}" for ratio in (ratios[0], ratios[-1])))


def _interval(versus: Versus) -> str:
    """``1.21 [0.94, 1.55]``."""
    ends = (versus.time_ratio_low, versus.time_ratio_high)
    return f"{versus.time_ratio:.3g} [{', '.join('?' if end is None else f'{end:.3g}' for end in ends)}]"


def _has_ratio(row: Row) -> bool:
    return row.versus is not None and row.versus.time_ratio is not None
