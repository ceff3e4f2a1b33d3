"""Reasons below a table, with a mark in the cell that has no number."""

from __future__ import annotations

from kit.report.plain import one_line

SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class Footnotes:
    """Numbers each distinct text once, in the order met."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}

    def mark(self, text: str) -> str:
        """The mark of `text`: ``¹``."""
        number = self._texts.setdefault(one_line(text), len(self._texts) + 1)
        return str(number).translate(SUPERSCRIPT)

    def lines(self) -> list[str]:
        """``¹ no RAPL domain …``, one line each."""
        return [f"{str(number).translate(SUPERSCRIPT)} {text}" for text, number in self._texts.items()]
