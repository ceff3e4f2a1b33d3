"""Several machines of one kind: one that is far slower than the rest, and one that lacks a cell the others have."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kit.audit.finding import Finding
from kit.audit.rule import Audited, Outcome, rule
from kit.profile.reason import reason
from kit.stats.runs import RUNS_SD

# A median says what is usual of four; of three, one that is odd moves it.
FLEET_LEAST = 4
# Of like machines' runs, three standard deviations apart: one in 370 by chance. 1.38 times the median.
FAR_LOG = 3 * RUNS_SD


# A machine's profiles by its host name. A container that gets a new one each time looks like another machine.
Machines = dict[str, list[Audited]]


def _fleets(audited: Sequence[Audited]) -> list[Machines]:
    """Return the machines of each kind, model and number of CPUs and models of boards; of kinds with enough of them."""
    kinds: dict[tuple[str, ...], list[Audited]] = defaultdict(list)
    for of in audited:
        identity = of.profile.identity
        boards = sorted(board.model for board in identity.accelerators)
        kinds[identity.cpu.model, str(identity.cpu.cores_logical), *boards].append(of)
    return _enough(kinds.values())


def _enough(groups: Iterable[Sequence[Audited]]) -> list[Machines]:
    """Return the profiles of each group by machine, of those groups that have enough machines."""
    fleets = []
    for group in groups:
        machines: Machines = defaultdict(list)
        for of in group:
            machines[of.profile.identity.hostname_sha256].append(of)
        if len(machines) >= FLEET_LEAST:
            fleets.append(machines)
    return fleets


@rule("fleet", worst="warning")
def far_below_fleet(audited: Sequence[Audited]) -> Outcome:
    """Find cells of one machine that are far slower than on most machines of its kind."""
    fleets = _fleets(audited)
    if not fleets:
        return reason("no_fleet", needed=FLEET_LEAST)
    return [finding for machines in fleets for finding in _far_below(machines)]


def _far_below(machines: Machines) -> Iterator[Finding]:
    for key in dict.fromkeys(key for profiles in machines.values() for of in profiles for key in of.steps_ns):
        # Of a machine's profiles the median, so that one with many files counts once.
        steps_ns = {
            name: statistics.median(known)
            for name, profiles in machines.items()
            if (known := [of.steps_ns[key] for of in profiles if key in of.steps_ns])
        }
        if len(steps_ns) < FLEET_LEAST:
            continue
        usual_ns = statistics.median(steps_ns.values())
        for name, step_ns in steps_ns.items():
            if math.log(step_ns / usual_ns) > FAR_LOG:
                slowest = max(machines[name], key=lambda of: of.steps_ns.get(key, 0.0))
                yield Finding(
                    code="far_below_fleet",
                    severity="warning",
                    values={"step_ns": step_ns, "usual_ns": usual_ns, "machines": len(steps_ns)},
                    rank=100 * (1 - usual_ns / step_ns),
                    remedy=reason("look_at_machine"),
                    profile=slowest.label,
                    cell_key=key,
                )


@rule("fleet", worst="warning")
def missing_in_fleet(audited: Sequence[Audited]) -> Outcome:
    """Find machines without a cell that most machines of their kind have, of those that were asked for the same."""
    fleets = []
    for machines in _fleets(audited):
        plans: dict[tuple[str, ...], list[Audited]] = defaultdict(list)
        for of in (of for profiles in machines.values() for of in profiles):
            plans[tuple(sorted(key for group in of.profile.groups for key in group.cells))].append(of)
        fleets += _enough(plans.values())
    if not fleets:
        return reason("no_fleet", needed=FLEET_LEAST)
    return [finding for machines in fleets for finding in _missing(machines)]


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
