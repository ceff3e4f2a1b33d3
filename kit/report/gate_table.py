"""The gate's table for docs/comparing.md: `python -m kit.report.gate_table` prints it."""

from __future__ import annotations

from kit.compare.grades import GRADES, ORDER
from kit.report.markdown_text import escape


def gate_table() -> str:
    """Every kind of difference with its grade and effect, in Markdown, gravest first."""
    lines = ["| grade | what differs | why |", "|---|---|---|"]
    for grade in ORDER:
        for kind, grading in GRADES.items():
            if grading.grade == grade:
                elsewhere = grading.on_other_hardware
                shown = grade if elsewhere is None else f"{grade}; {elsewhere} where the hardware differs, too"
                lines.append(f"| {shown} | {escape(kind)} | {escape(grading.effect)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(gate_table())
