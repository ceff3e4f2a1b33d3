"""What differs between two profiles (`kit compare --why`), for a reader."""

from __future__ import annotations

from rich.text import Text

from kit.compare.grades import ORDER, Grade
from kit.compare.why import Why
from kit.report.grid import grid
from kit.report.plain import one_line, sentence
from kit.report.terminal import to_string, wrapped

TITLES: dict[Grade, str] = {
    "blocks": "Blocks: these make the numbers answers to different questions",
    "warns": "Warns: these could explain a difference",
    "noted": "Noted: these explain nothing by themselves",
}
STYLES: dict[Grade, str] = {"blocks": "bold red", "warns": "bold yellow", "noted": "bold cyan"}
NO_STATE = "Neither profile knows its machine's state."


def render(why: Why, *, color: bool = False) -> str:
    """Sections: the two, their numbers, what differs by grade, and how their machines were."""
    lines = [Text(one_line(line), style="bold") for line in why.headline]
    lines += wrapped(one_line(why.apart), "")
    for said in why.numbers:
        lines += wrapped(sentence(said), "bold")
    for grade in ORDER:
        reasons = [reason for reason in why.reasons if reason.grade == grade]
        lines += [Text(), Text(TITLES[grade], style=STYLES[grade])]
        for reason in reasons:
            lines += wrapped(f"· {sentence(reason.sentence)}", "")
            lines += wrapped(f"  {one_line(reason.effect)}", "dim")
        lines += [] if reasons else [Text("  nothing", style="dim")]
    lines += [Text(), Text("State: before → after, or what happened between", style="bold cyan")]
    lines += [Text(f"  {line}") for line in _states(why)]
    return to_string(lines, color=color)


def _states(why: Why) -> list[str]:
    if not why.states:
        return [NO_STATE]
    rows = [["", *map(one_line, why.labels)], *([line.name, *map(one_line, line.values)] for line in why.states)]
    return grid(rows, [False] * len(rows[0]))
