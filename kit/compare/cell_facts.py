"""What a cell's launches ran on and with, and how two cells differ in it."""

from __future__ import annotations

from typing import NamedTuple

from kit.compare.grades import Grade, grade_of
from kit.profile.brief import AnyCell
from kit.profile.launch import Parity
from kit.stats.parity_verdict import same_losses

# A hash is only told apart, never read: eight digits do.
HASH_DIGITS = 8


class CellFacts(NamedTuple):
    """Of the launches that finished; a set is empty where none of them recorded it."""

    data: frozenset[tuple[str, str]]  # name, SHA-256 of what the steps were fed
    threads: frozenset[int]
    planted_pct: frozenset[float]
    parity: Parity | None


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


def cell_facts(result: AnyCell) -> CellFacts:
    """Of a cell; its losses are those of the first launch that recorded them."""
    finished = [launch for launch in result.launches if launch.failure is None]
    return CellFacts(
        data=frozenset((data.name, data.sha256) for data in {launch.data for launch in finished} if data is not None),
        threads=frozenset([launch.threads.requested for launch in finished if launch.threads is not None]),
        planted_pct=frozenset([launch.planted_slowdown_pct for launch in finished]),
        parity=next((launch.parity for launch in result.launches if launch.parity is not None), None),
    )


def cell_differences(
    result: AnyCell,
    baseline: AnyCell,
    facts: CellFacts | None = None,
    baseline_facts: CellFacts | None = None,
    *,
    like_hardware: bool,
) -> list[CellDifference]:
    """In what two cells of one key, or of one work, differ. What one of them did not record is no difference.

    Args:
        facts, baseline_facts: of the two, where they are at hand.
        like_hardware: whether both ran on the same hardware, as far as recorded.
    """
    ours, theirs = facts or cell_facts(result), baseline_facts or cell_facts(baseline)
    if ours == theirs:
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
    if on_same_data and ours.parity != theirs.parity and same_losses(result, baseline) is False:
        grade = grade_of("arithmetic", like_hardware=like_hardware)
        found.append(CellDifference("arithmetic", grade, "other losses", "the baseline's losses"))
    return found


def _data_in_words(ours: frozenset[tuple[str, str]], theirs: frozenset[tuple[str, str]]) -> tuple[str, str]:
    """Names alone where they tell the two apart."""
    names = tuple(" and ".join(sorted({name for name, _ in data})) for data in (ours, theirs))
    if names[0] != names[1]:
        return names[0], names[1]
    with_hash = tuple(
        " and ".join(sorted(f"{name} {sha256[:HASH_DIGITS]}" for name, sha256 in data)) for data in (ours, theirs)
    )
    return with_hash[0], with_hash[1]


def _numbers(values: frozenset[int]) -> str:
    return " and ".join(map(str, sorted(values)))


def _planted(values: frozenset[float]) -> str:
    return " and ".join(f"{value:g} %" if value else "none" for value in sorted(values))
