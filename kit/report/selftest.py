"""What a self-test found, as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from kit.compare.planted import PlantedRow, SelfTest
from kit.report.plain import NONE
from kit.report.quantity import counted
from kit.report.sections import grid

TITLES = ["member", "planted", "found", "95 % interval", "rounds spread by", "verdict", "planted within interval"]


def render_selftest(found: SelfTest) -> str:
    """Return the table, and what it says in a sentence."""
    cell = found.cell
    rounds = counted(max((row.rounds for row in found.rows), default=0), "round")
    lines = [
        f"self-test · {cell.workload} {cell.task} · {cell.backend} · batch {cell.batch} · {rounds}",
        "",
        *grid([TITLES, *map(_row, found.rows)], [False, True, True, True, True]),
        "",
        *_sentences(found),
        f"rule {found.rule}: a verdict needs an adjusted p of at most 0.05 and a difference of more than 1 %",
    ]
    return "\n".join(lines) + "\n"


def _row(row: PlantedRow) -> list[str]:
    if row.found_ratio is None or row.low is None or row.high is None or row.planted_ratio is None:
        return [row.variant, NONE, NONE, NONE, NONE, "too few rounds", NONE]
    return [
        row.variant,
        _percent(row.planted_ratio) if row.asked_pct else "nothing",
        _percent(row.found_ratio),
        f"{_percent(row.low)} to {_percent(row.high)}",
        f"{row.sd_pct:.1f} %",
        row.verdict,
        "yes" if row.inside else "NO",
    ]


def _sentences(found: SelfTest) -> Iterator[str]:
    known = [row for row in found.rows if row.inside is not None]
    inside = sum(bool(row.inside) for row in known)
    yield f"{inside} of {len(known)} intervals hold what was planted; nineteen in twenty are to be expected."
    planted = sorted((row for row in known if row.asked_pct), key=lambda row: -row.asked_pct)
    # One that was told by luck, with a larger one missed, does not count.
    told = [row.asked_pct for row in takewhile(lambda row: row.verdict == "slower", planted)]
    if told:
        yield f"The smallest slow-down told apart here is {min(told):g} %."
    elif known:
        yield "No slow-down was told apart here: more rounds narrow the intervals."
    if any(row.verdict in ("faster", "slower") and not row.asked_pct for row in known):
        yield "A cell was told apart from itself: a false alarm, to be expected once in twenty."
    if found.failed:
        yield f"{counted(found.failed, 'launch')} failed; `kit show` says why."


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %".replace("-", "−")
