"""Several machines of one kind: one that is far slower than the rest, and one that lacks a cell the others have."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from kit.audit.finding import Finding
from kit.audit.rule import Audited, Outcome, rule
from kit.profile.reason import reason
from kit.stats.runs import RUNS_SD

# A median says what is usual of four; of three, one that is odd moves it.
FLEET_LEAST = 4
# Of like machines' runs, three standard deviations apart: one in 370 by chance. 1.38 times the median.
FAR_LOG = 3 * RUNS_SD


def _fleets(audited: Sequence[Audited]) -> list[list[Audited]]:
    """Return the profiles by kind of machine: model of CPU and of boards; those with enough of them."""
    kinds: dict[tuple[str, ...], list[Audited]] = defaultdict(list)
    for of in audited:
        identity = of.profile.identity
        boards = sorted(board.model for board in identity.accelerators)
        kinds[identity.cpu.model, str(identity.cpu.cores_logical), *boards].append(of)
    return [fleet for fleet in kinds.values() if len({_machine(of) for of in fleet}) >= FLEET_LEAST]


def _machine(of: Audited) -> str:
    """Return what tells machines apart: several profiles of one are not several machines."""
    return of.profile.identity.hostname_sha256


@rule("fleet", worst="warning")
def far_below_fleet(audited: Sequence[Audited]) -> Outcome:
    """Find cells of one machine that are far slower than on most machines of its kind."""
    fleets = _fleets(audited)
    if not fleets:
        return reason("no_fleet", needed=FLEET_LEAST)
    findings = []
    for fleet in fleets:
        steps_ns: dict[str, dict[str, float]] = defaultdict(dict)
        for of in fleet:
            for key, step_ns in of.steps_ns.items():
                steps_ns[key][of.label] = step_ns
        for key, by_label in steps_ns.items():
            if len(by_label) < FLEET_LEAST:
                continue
            usual_ns = statistics.median(by_label.values())
            findings += [
                Finding(
                    code="far_below_fleet",
                    severity="warning",
                    values={"step_ns": step_ns, "usual_ns": usual_ns, "machines": len(by_label)},
                    rank=100 * (1 - usual_ns / step_ns),
                    remedy=reason("look_at_machine"),
                    profile=label,
                    cell_key=key,
                )
                for label, step_ns in by_label.items()
                if math.log(step_ns / usual_ns) > FAR_LOG
            ]
    return findings


@rule("fleet", worst="warning")
def missing_in_fleet(audited: Sequence[Audited]) -> Outcome:
    """Find machines without a cell that most machines of their kind have."""
    fleets = _fleets(audited)
    if not fleets:
        return reason("no_fleet", needed=FLEET_LEAST)
    findings = []
    for fleet in fleets:
        # Those of which the same was asked: another suite has other cells.
        for alike in _of_one_plan(fleet):
            having: dict[str, set[str]] = defaultdict(set)
            for of in alike:
                for key in of.steps_ns:
                    having[key].add(of.label)
            findings += [
                Finding(
                    code="missing_in_fleet",
                    severity="warning",
                    values={"have": len(labels), "machines": len(alike), "cell": key},
                    remedy=reason("resume_or_fix"),
                    profile=of.label,
                    cell_key=key,
                )
                for key, labels in having.items()
                for of in alike
                if 2 * len(labels) > len(alike) and of.label not in labels
            ]
    return findings


def _of_one_plan(fleet: Sequence[Audited]) -> list[list[Audited]]:
    plans: dict[tuple[str, ...], list[Audited]] = defaultdict(list)
    for of in fleet:
        plans[tuple(sorted(key for group in of.profile.groups for key in group.cells))].append(of)
    return list(plans.values())
