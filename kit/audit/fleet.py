"""Several machines of one kind: one that lacks a cell the others have. How fast each is, `kit fleet` says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kit.audit.finding import Finding
from kit.audit.rule import Audited, Outcome, rule
from kit.profile.reason import reason

# What most of four machines have is usual there.
FLEET_LEAST = 4

# A machine's profiles by its host name. A container that gets a new one each time looks like another machine.
Machines = dict[str, list[Audited]]


@rule("fleet", worst="warning")
def missing_in_fleet(audited: Sequence[Audited]) -> Outcome:
    """Find machines without a result for a cell that most machines of their kind have."""
    fleets = defaultdict[tuple[tuple[str, ...], ...], Machines](lambda: defaultdict(list))
    for of in audited:
        identity = of.profile.identity
        asked = tuple(sorted(key for group in of.profile.groups for key in group.cells))
        fleets[identity.kind, asked][identity.hostname_sha256].append(of)
    enough = [machines for machines in fleets.values() if len(machines) >= FLEET_LEAST]
    if not enough:
        return reason("no_fleet", needed=FLEET_LEAST)
    return [finding for machines in enough for finding in _missing(machines)]


def _missing(machines: Machines) -> Iterator[Finding]:
    having = {name: {key for of in profiles for key in of.steps_ns} for name, profiles in machines.items()}
    for key in dict.fromkeys(key for keys in having.values() for key in keys):
        have = sum(key in keys for keys in having.values())
        for name, profiles in machines.items():
            if 2 * have > len(machines) and key not in having[name]:
                yield Finding(
                    code="missing_in_fleet",
                    severity="warning",
                    values={"have": have, "machines": len(machines), "cell": key},
                    remedy=reason("resume_or_fix"),
                    profile=profiles[-1].label,
                    cell_key=key,
                )
