"""Boards that ran below the clock they were asked for: the step is then that of a cap or of the cooling."""

from __future__ import annotations

from kit.audit.finding import Finding, Member
from kit.profile.reason import reason


def find(member: Member) -> Finding | None:
    """Find cells whose launches were marked so when they ran; the gravest launch is the evidence."""
    marks = {mark.code: mark for launch in member.launches.values() for mark in launch.marks}
    slowed = [mark for launch in member.launches.values() for mark in launch.marks if mark.code == "board_throttled"]
    if not slowed:
        return None
    worst = max(slowed, key=lambda mark: float(mark.values["share_pct"]))
    capped = marks.get("power_capped")
    remedy = reason("cool_board") if capped is None else reason("raise_power_cap", **capped.values)
    return member.finding("board_throttled", worst.values, float(worst.values["share_pct"]), remedy)
