"""Boards that ran below the clock they were asked for: the step is then that of a cap or of the cooling."""

from __future__ import annotations

from kit.audit.rule import Member, Outcome, rule
from kit.profile.reason import Reason, reason


@rule("member", worst="warning", on="accelerator")
def board_throttled(member: Member) -> Outcome:
    """Find cells whose launches were marked so when they ran; the gravest launch is the evidence."""
    marks = {mark.code: mark for launch in member.launches.values() for mark in launch.marks}
    slowed = [mark for launch in member.launches.values() for mark in launch.marks if mark.code == "board_throttled"]
    if not slowed:
        return None
    worst = max(slowed, key=_share_pct)
    capped = marks.get("power_capped")
    remedy = reason("cool_board") if capped is None else Reason(code="raise_power_cap", values=capped.values)
    return member.finding("board_throttled", "warning", worst.values, _share_pct(worst), remedy)


def _share_pct(mark: Reason) -> float:
    share_pct = mark.values.get("share_pct")
    return share_pct if isinstance(share_pct, int | float) else 0.0  # of a profile that somebody else wrote
