"""Boards on which processes of others computed before or after a round: their work is in the steps."""

from __future__ import annotations

from kit.audit.rule import Member, Outcome, rule
from kit.profile.reason import reason


@rule("member", worst="bad", on="accelerator")
def board_shared(member: Member) -> Outcome:
    """Find cells whose launches were marked so when they ran."""
    launches = member.launches.values()
    marks = [mark for launch in launches for mark in launch.marks if mark.code == "board_shared"]
    if not marks:
        return None
    counts = [count for mark in marks if isinstance(count := mark.values.get("processes"), int)]
    evidence = {"processes": max(counts, default=0), "launches": len(marks), "of_launches": len(launches)}
    return member.finding("board_shared", "bad", evidence, 100 * len(marks) / len(launches), reason("free_board"))
