"""One fact about a profile, named and in words."""

from __future__ import annotations

from typing import NamedTuple

UNKNOWN = "unknown"


class Fact(NamedTuple):
    """What is so in one profile.

    Attributes:
        kind: a key of `kit.compare.grades.GRADES`.
        name: which of its kind; often the kind itself.
        shown: its value in words.
        amount: where the value is a quantity that always varies a little; see `kit.compare.state_facts.NEGLIGIBLE`.
    """

    kind: str
    name: str
    shown: str
    amount: float | None = None


def fact(kind: str, shown: str | None, amount: float | None = None) -> Fact:
    """A fact that is the only one of its kind; `UNKNOWN` where nothing is known."""
    return Fact(kind, kind, shown or UNKNOWN, amount)
