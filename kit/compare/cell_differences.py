"""What a cell's launches ran on and with, and how two cells differ in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.compare.grades import Grade, grade_of
from kit.profile.launches_brief import LaunchesBrief
from kit.stats.parity_verdict import same_losses

# A hash is only told apart, never read: eight digits do.
HASH_DIGITS = 8


class CellDifference(NamedTuple):
    """In what a cell differs from its baseline, with both values in words."""

    kind: str  # a key of GRADES
    grade: Grade
    ours: str
    theirs: str

    @property
    def in_words(self) -> str:
        """``threads 1 against 2``."""
        if self.kind == "arithmetic":
            return "different arithmetic (parity): its first losses are not the baseline's"
        return f"{self.kind} {self.ours} against {self.theirs}"


def cell_differences(ours: LaunchesBrief, theirs: LaunchesBrief, *, like_hardware: bool) -> list[CellDifference]:
    """In what two cells of one key, or of one work, differ. What one of them did not record is no difference.

    Args:
        ours, theirs: of the cell and of its baseline.
        like_hardware: whether both ran on the same hardware, as far as recorded.
    """
    if ours is theirs or _alike(ours, theirs):
        return []
    pairs = [
        ("data", *_data_in_words(ours.data, theirs.data)),
        ("threads", _numbers(ours.threads), _numbers(theirs.threads)),
        ("planted slow-down", _planted(ours.planted_pct), _planted(theirs.planted_pct)),
    ]
    found = [
        CellDifference(kind, grade_of(kind, like_hardware=like_hardware), own, other)
        for kind, own, other in pairs
        if own and other and own != other
    ]
    on_same_data = not any(difference.kind == "data" for difference in found)
    if on_same_data and ours.parity != theirs.parity and same_losses(ours.parity, theirs.parity) is False:
        grade = grade_of("arithmetic", like_hardware=like_hardware)
        found.append(CellDifference("arithmetic", grade, "other losses", "the baseline's losses"))
    return found


def _alike(ours: LaunchesBrief, theirs: LaunchesBrief) -> bool:
    """Quicker than to put what is alike into words."""
    return (
        ours.data == theirs.data
        and ours.threads == theirs.threads
        and ours.planted_pct == theirs.planted_pct
        and ours.parity == theirs.parity
    )


def _data_in_words(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Names alone where they tell the two apart."""
    names = tuple(" and ".join(sorted({name for name, _ in data})) for data in (ours, theirs))
    if names[0] != names[1]:
        return names[0], names[1]
    with_hash = tuple(
        " and ".join(sorted(f"{name} {sha256[:HASH_DIGITS]}" for name, sha256 in data)) for data in (ours, theirs)
    )
    return with_hash[0], with_hash[1]


def _numbers(values: Sequence[int]) -> str:
    return " and ".join(map(str, values))


def _planted(values: Sequence[float]) -> str:
    return " and ".join(f"{value:g} %" if value else "none" for value in values)
