"""Rules on results and the record: parity, losses, denormal numbers, cells without a number, missing readings.

A broken digest is no rule: such a file is not read at all, and is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import itemgetter

from kit.audit.remedies import again
from kit.audit.rule import USUAL, Found, Outcome, rule, says
from kit.audit.subject import MeasuredCell, MeasuredRun, NotApplicableError, NotMeasuredError, not_recorded
from kit.compare.comparability import agreements
from kit.profile.cell import OWN
from kit.profile.fields import reason
from kit.profile.schema import ComputedNumbers
from kit.workloads.device_operations import is_operation, networks_among

# Of the loss in the first step: beside its error float32 does not resolve less, so gradients are rounding errors.
VANISHED = 1e-6
# A product with a denormal number takes 15 to 150 times as long (docs/explanation/method.md). Of a thousandth the work
# that is not a matrix product gets longer by some percent.
DENORMAL_PCT = 0.1
# Backends that flush denormal numbers to 0 when they compute on a CPU. Accelerators compute with them at full speed.
FLUSHING = ("tensorflow", "jax")
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
@says("{who}: a loss, a weight or an output was not finite in {launches} of {of_launches} launches.")
def loss_not_finite(run: MeasuredRun) -> Iterator[Outcome]:
    """Find cells whose loss, weights or output stopped being finite."""
    for result in run.profile.cells:
        count = sum(
            (launch.failure is not None and launch.failure.reason.code in NOT_FINITE)
            or (launch.numbers is not None and launch.numbers.was_not_finite)
            for launch in result.launches
        )
        if count:
            yield Found({"launches": count, "of_launches": len(result.launches)}, 100.0, cell_key=result.key)
        unchecked = [why for launch in result.launches if (why := launch.output_unchecked) is not None]
        if unchecked:
            yield NotMeasuredError(unchecked[0])


@rule("warning", "reset_state")
@says("{who}: the loss vanished, from {first_loss:.2g} in the first step to {last_loss:.2g} after the last block.")
def vanished_loss(cell: MeasuredCell) -> Found | None:
    """Find training whose loss vanished, so that its steps compute with other numbers than training does."""
    if not cell.cell.traits.trains or not cell.cell.in_blocks:
        raise NotApplicableError
    losses = [
        (abs(numbers.first_step_loss), abs(numbers.last_block_loss), numbers.blocks_begin)
        for numbers in _numbers(cell)
        if numbers.first_step_loss is not None and numbers.last_block_loss is not None
    ]
    if not losses:
        why = next((numbers.loss_reason for numbers in _numbers(cell) if numbers.loss_reason is not None), None)
        raise NotMeasuredError(why or reason("output_not_finite"))
    vanished = [known for known in losses if known[1] < VANISHED * known[0]]
    if not vanished:
        return None
    first_loss, last_loss, begin = min(vanished, key=itemgetter(1))
    values = {"first_loss": first_loss, "last_loss": last_loss, "launches": len(vanished)}
    is_alike = begin != "left"  # every block loses it in the same way
    return Found(values, severity="note" if is_alike else "warning", remedy=None if is_alike else USUAL)


@rule("warning", "flush_denormals", at_least=DENORMAL_PCT)
@says(
    "{who}: {denormal_pct:.3g} % of weights and optimizer state are denormal numbers, which many CPUs compute slowly."
)
def denormals(cell: MeasuredCell) -> Found:
    """Find cells that compute with denormal numbers."""
    known = _numbers(cell)
    shares = [numbers.denormal_share for numbers in known if numbers.denormal_share is not None]
    if not shares:
        why = next((numbers.denormal_reason for numbers in known if numbers.denormal_reason is not None), None)
        raise NotMeasuredError(why) if why is not None else not_recorded("denormals")
    denormal_pct = 100 * max(shares)
    is_slow = cell.cell.device == "cpu" and cell.cell.backend not in FLUSHING
    return Found(
        {"denormal_pct": denormal_pct, "launches": sum(100 * share >= DENORMAL_PCT for share in shares)},
        value=denormal_pct,
        severity="warning" if is_slow else "note",
        remedy=USUAL if is_slow else None,
    )


def _numbers(cell: MeasuredCell) -> list[ComputedNumbers]:
    if is_operation(cell.cell):
        raise NotApplicableError
    known = [record.numbers for record in cell.records if record.numbers is not None]
    if not known:
        raise not_recorded("losses and denormals")
    return known


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
