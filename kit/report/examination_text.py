"""What `kit doctor` found, for a reader."""

from __future__ import annotations

from rich.text import Text

from kit.profile.examination import Examination, Finding
from kit.report.grid import grid
from kit.report.plain import one_line
from kit.report.profile_machine import container_in_words, sensors_section
from kit.report.terminal import to_string


def render(examination: Examination, *, color: bool = False) -> str:
    """Lay the examination out in sections; with `color`, ANSI colours for a terminal."""
    cpus = examination.cpus
    sections = {
        "Where": grid(
            [
                ["CPUs", f"{len(cpus)} usable: {', '.join(map(str, cpus))}"],
                ["container", one_line(container_in_words(examination.container))],
            ],
            [False, False],
        ),
        "Frameworks": _findings(examination.backends),
        "Data": _findings([examination.data]),
        "Clock sources": _findings(examination.clocks),
        "Sensors": sensors_section(examination.sensors),
    }
    lines: list[Text] = []
    for title, section in sections.items():
        lines += [Text(title, style="bold cyan"), *(Text(f"  {line}") for line in section), Text()]
    return to_string(lines[:-1], color=color)


def _findings(findings: list[Finding]) -> list[str]:
    rows = [[finding.subject, "yes" if finding.here else "no", one_line(finding.detail)] for finding in findings]
    return grid(rows, [False] * 3)
