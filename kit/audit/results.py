"""Rules on results and the record: parity, finite losses, cells without a number, missing readings of sensors.

A broken digest is no rule: such a file is not read at all, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from kit.audit.remedies import again
from kit.audit.rule import Found, Outcome, rule, says
from kit.audit.subject import MeasuredCell, MeasuredRun, NotMeasuredError
from kit.compare.comparability import agreements
from kit.profile.cell import OWN
from kit.profile.fields import reason
from kit.workloads.device_operations import networks_among

# Reasons of energy that was refused because readings were missing.
GAPS = ("energy_low_coverage", "energy_gap", "sampler_failed")
# Reasons of launches whose results are nonsense: of a network, and of a user program.
NOT_FINITE = ("output_not_finite", "program_output_not_finite")


@rule("warning")
@says("{who}: sensor readings are missing in {launches} of {of_launches} launches.")
def sampling_gaps(cell: MeasuredCell) -> Found | None:
    """Find cells for which readings of sensors are missing."""
    launches = cell.launches.values()
    ended = sum(any(mark.code == "sampler_failed" for mark in launch.record.notes) for launch in launches)
    long_blocks = [[energy for energy in launch.energy if energy.kind == "steady"] for launch in launches]
    gaps = sum(
        any(energy.reason.code in GAPS for energy in entries if energy.reason and energy.tier != "external_meter")
        for entries in long_blocks
    )
    if not ended and not gaps:
        return None
    threads = max(1, (cell.threads.requested if cell.threads is not None else 1) - 1)
    values = {"launches": max(ended, gaps), "of_launches": len(launches)}
    return Found(values, remedy=again("free_a_cpu", [cell], {"threads": ()}, threads=threads))


@rule("bad", "same_arithmetic")
@says("{who}: the losses differ from the other cells' (relative: {difference:.0e}), so it does other work.")
def parity(run: MeasuredRun) -> Iterator[Outcome]:
    """Find cells whose losses differ from those of other cells with the same weights and batches."""
    judged = agreements(run.profile.cells)
    for key, agreement in judged.items():
        if agreement.agrees is False:
            yield Found({"difference": agreement.max_relative_difference or math.inf}, 100.0, cell_key=key)
    proved = {key for key, agreement in judged.items() if agreement.agrees is not None}
    networks = networks_among(result.cell for result in run.profile.cells)
    unproved = [cell for cell in networks if cell.key not in proved]
    if unproved:
        programs = any(cell.precision == OWN for cell in unproved)
        yield NotMeasuredError(reason("own_programs_unproved" if programs else "no_parity"))


@rule("bad", "lower_rate")
@says("{who}: the loss or an output was not finite in {launches} of {of_launches} launches.")
def loss_not_finite(run: MeasuredRun) -> Iterator[Outcome]:
    """Find cells whose loss or output stopped being finite."""
    for result in run.profile.cells:
        failures = [launch.failure for launch in result.launches if launch.failure is not None]
        count = sum(failure.reason.code in NOT_FINITE for failure in failures)
        if count:
            yield Found({"launches": count, "of_launches": len(result.launches)}, 100.0, cell_key=result.key)
        unchecked = [why for launch in result.launches if (why := launch.output_unchecked) is not None]
        if unchecked:
            yield NotMeasuredError(unchecked[0])


@rule("warning", "fix_failure")
@says("{who}: the cell was planned but has no result: {because}.")
def missing_cell(run: MeasuredRun) -> Iterator[Outcome]:
    """Find cells that were planned but have no result."""
    launches = {result.key: result.launches for result in run.profile.cells}
    for key in dict.fromkeys(key for group in run.profile.groups for key in group.cells):
        tried = launches.get(key, [])
        if not any(launch.gave_number for launch in tried):
            why = next((launch.failure for launch in tried if launch.failure is not None), None)
            unreached = reason("run_interrupted" if run.profile.interrupted else "not_measured")
            values, because = ({}, unreached) if why is None else ({"phase": why.phase}, why.reason)
            # A run that is resumed measures what it did not reach, and no cell again that failed.
            is_resumed = why is None and run.profile.interrupted
            remedy = reason("resume" if is_resumed else "fix_failure" if why is not None else "measure_again")
            yield Found(values, 100.0, because=because, cell_key=key, remedy=remedy)


@rule("bad", "measure_again")
@says("the profile has no measurement (cells: {cells}, launches: {launches}).")
def empty_input(run: MeasuredRun) -> Found | None:
    """Find profiles without a single measurement."""
    values = {"cells": len(run.profile.cells), "launches": len(run.launches)}
    return None if any(launch.gave_number for launch in run.launches) else Found(values, 100.0)
