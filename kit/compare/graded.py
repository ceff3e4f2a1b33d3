"""A difference between profiles: what it is, how grave it is, and who has which value."""

from __future__ import annotations

import msgspec

from kit.compare.grades import Grade

# More values or profiles than these are a list nobody reads.
VALUES_SHOWN = 6


class GradedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that is not the same in all profiles.

    Attributes:
        kind: a key of `kit.compare.grades.GRADES`.
        name: which of its kind: "torch" of the kind "framework"; often the kind itself.
        values: value in words -> labels of the profiles that have it.
        effect: what such a difference may do to the numbers.
    """

    grade: Grade
    kind: str
    name: str
    values: dict[str, list[str]]
    effect: str

    @property
    def in_words(self) -> str:
        """``kernel: 6.1.0 (a), 6.6.0 (b, c)``."""
        shown = [f"{value} ({several(labels)})" for value, labels in self.values.items()]
        return f"{self.name}: {several(shown)}"


def several(words: list[str]) -> str:
    """``a, b, c``; of many, the first and how many more."""
    rest = len(words) - VALUES_SHOWN
    return ", ".join(words) if rest <= 1 else f"{', '.join(words[:VALUES_SHOWN])} and {rest:,} more"
