"""What was computed, and whether it was measured at all: parity, finite losses, cells without a number."""

from __future__ import annotations

from kit.audit.finding import Finding
from kit.audit.rule import Audited, Outcome, rule
from kit.compare.parity import agreements
from kit.profile.cell import OWN
from kit.profile.launch import Failure
from kit.profile.reason import reason
from kit.profile.schema import CellResult
from kit.workloads.operations import is_operation


@rule("profile", worst="bad")
def parity(audited: Audited) -> Outcome:
    """Find cells whose losses differ from those of other cells with the same weights and batches."""
    judged = agreements(audited.results)
    odd = [
        Finding(
            code="parity",
            severity="bad",
            values={"difference": agreement.max_relative_difference or float("inf")},
            rank=100.0,
            remedy=reason("same_arithmetic"),
            cell_key=key,
        )
        for key, agreement in judged.items()
        if agreement.agrees is False
    ]
    proved = {key for key, agreement in judged.items() if agreement.agrees is not None}
    unproved = [result for result in audited.results if result.key not in proved and not is_operation(result.cell)]
    if not unproved:
        return odd
    programs = any(result.cell.precision == OWN for result in unproved)
    return [*odd, reason("own_programs_unproved" if programs else "no_parity")]


@rule("profile", worst="bad")
def loss_not_finite(audited: Audited) -> Outcome:
    """Find cells whose loss or output stopped being finite."""
    return [
        _of_cell(result, "loss_not_finite", {"launches": count, "of_launches": len(result.launches)}, "lower_rate")
        for result in audited.results
        if (count := sum(_is_not_finite(launch.failure) for launch in result.launches))
    ]


@rule("profile", worst="warning")
def missing_cell(audited: Audited) -> Outcome:
    """Find cells that were planned but have no result."""
    planned = dict.fromkeys(key for group in audited.profile.groups for key in group.cells)
    results = {result.key: result for result in audited.results}
    findings = []
    for key in planned:
        launches = results[key].launches if key in results else []
        if not any(launch.gave_number for launch in launches):
            why = next((launch.failure for launch in launches if launch.failure is not None), None)
            unreached = reason("run_interrupted" if audited.profile.interrupted else "not_measured")
            findings.append(
                Finding(
                    code="missing_cell",
                    severity="warning",
                    values={} if why is None else {"phase": why.phase},
                    because=unreached if why is None else why.reason,
                    rank=100.0,
                    remedy=reason("resume_or_fix"),
                    cell_key=key,
                )
            )
    return findings


@rule("profile", worst="bad")
def empty_input(audited: Audited) -> Outcome:
    """Find profiles without a single measurement."""
    launches = [launch for result in audited.results for launch in result.launches]
    if any(launch.gave_number for launch in launches):
        return None
    values = {"cells": len(audited.results), "launches": len(launches)}
    return Finding(code="empty_input", severity="bad", values=dict(values), rank=100.0, remedy=reason("measure_again"))


def _of_cell(result: CellResult, code: str, values: dict[str, int], remedy: str) -> Finding:
    return Finding(
        code=code, severity="bad", values=dict(values), rank=100.0, remedy=reason(remedy), cell_key=result.key
    )


def _is_not_finite(failure: Failure | None) -> bool:
    return failure is not None and failure.reason.code == "output_not_finite"
