"""The record itself: sensor readings that are missing.

A broken digest is not among the rules: such a file is not read at all, and is named.
"""

from __future__ import annotations

from kit.audit.rule import Member, Outcome, rule
from kit.profile.reason import reason

# Reasons of energy that was refused because readings were missing.
GAPS = ("energy_low_coverage", "energy_gap", "sampler_failed")


@rule("member", worst="warning")
def sampling_gaps(member: Member) -> Outcome:
    """Find cells for which readings of sensors are missing."""
    launches = member.launches.values()
    ended = sum(any(mark.code == "sampler_failed" for mark in launch.notes) for launch in launches)
    gaps = sum(
        any(
            energy.kind == "steady"
            and energy.tier != "external_meter"
            and energy.reason is not None
            and energy.reason.code in GAPS
            for energy in launch.energy
        )
        for launch in launches
    )
    if not ended and not gaps:
        return None
    evidence = {"launches": max(ended, gaps), "of_launches": len(launches)}
    return member.finding("sampling_gaps", "warning", evidence, remedy=reason("free_a_cpu"))
