"""Rules on proof: whether a launch did what its cell's name says, by what its framework recorded."""

from __future__ import annotations

from collections.abc import Iterator

from kit.audit.rule import USUAL, Found, rule, says
from kit.audit.subject import MeasuredCell, MeasuredRun, NotApplicableError, NotMeasuredError, not_recorded
from kit.compare.contradictions import (
    FULL_FLOAT32,
    against_mode,
    is_shown,
    left_out,
    lower_precision,
    mode_of,
    switched_off,
)
from kit.profile.cell import OWN
from kit.profile.fields import Value, reason
from kit.profile.schema import Launch
from kit.workloads.device_operations import is_operation


@rule("bad", "check_compiler")
@says("{who}: {by} compiled nothing, so another mode than {mode} ran.")
@says("{who}: {by} compiled it nonetheless, so another mode than {mode} ran.", code="compiled_nonetheless")
@says("{who}: {switch} switches its compiler off, so operations ran one by one.", code="compiler_off")
@says("{who}: TorchDynamo was to compile {tried} functions and compiled none.", code="compiler_failed")
def not_compiled(cell: MeasuredCell) -> Found | None:
    """Find cells in which another compile mode ran than the cell's, and programs whose compiler is off."""
    is_program = cell.cell.compile_mode == OWN
    if is_operation(cell.cell) or not (is_program or mode_of(cell.cell)):
        raise NotApplicableError
    check = switched_off if is_program else against_mode
    against = [known for record in cell.records if (known := check(cell.cell, record)) is not None]
    if against:
        values: dict[str, Value] = {
            "mode": cell.cell.compile_mode,
            "launches": len(against),
            "of_launches": len(cell.records),
        }
        # A user of TensorFlow may have asked XLA for its clusters, and debugs a program by switching a compiler off.
        is_warning = is_program or against[0].code == "compiled_nonetheless"
        code = "" if against[0].code == "not_compiled" else against[0].code
        switch = str(against[0].values.get("switch", ""))
        return Found(
            {**values, **against[0].values},
            100.0,
            code=code,
            severity="warning" if is_warning else None,
            # Another switch than a variable is in the program.
            remedy=reason("unset_switch", switch=switch) if switch.isupper() else USUAL,
        )
    if not any(_is_known(cell, record) for record in cell.records):
        raise _unknown(cell)
    return None


def _is_known(cell: MeasuredCell, record: Launch) -> bool:
    """Whether a launch recorded what would contradict its cell."""
    counted = record.recompiles is not None and record.recompiles.count is not None
    return counted if cell.cell.compile_mode == OWN else is_shown(cell.cell, record)


def _unknown(cell: MeasuredCell) -> NotMeasuredError:
    """Return why it is not known what ran, or what was compiled."""
    whys = [None if record.ran is None else record.ran.reason for record in cell.records]
    if cell.cell.compile_mode == OWN:
        whys += [None if record.recompiles is None else record.recompiles.reason for record in cell.records]
    return next((NotMeasuredError(why) for why in whys if why is not None), not_recorded("ran"))


@rule("bad", "pass_as_arguments")
@says(
    "{who}: a step asks for {flops_asked:,.0f} FLOPs and computes {flops:,.0f}: the compiler left out the rest, "
    "because nothing that the step returns needs it or its inputs are constants."
)
@says(
    "{who}: a step asks for {flops_asked:,.0f} FLOPs and computes {flops:,.0f}: its compiled program takes no inputs, "
    "so XLA computed the result when it compiled.",
    code="constant_inputs",
)
@says(
    "{who}: the graph of a step has {products_asked} products and runs {products}: TensorFlow left out the rest, "
    "because nothing that the step returns needs it or its inputs are constants.",
    code="products_left_out",
)
def work_left_out(cell: MeasuredCell) -> Found | None:
    """Find user programs whose compiler left out nearly all of a step's work."""
    if cell.cell.compile_mode != OWN:
        raise NotApplicableError
    missing = next((known for record in cell.records if (known := left_out(record)) is not None), None)
    if missing is not None:
        return Found(missing.values, 100.0, code="" if missing.code == "work_left_out" else missing.code)
    ran = [record.ran for record in cell.records if record.ran is not None]
    if not any(known.runs for known in ran):
        raise next((NotMeasuredError(known.reason) for known in ran if known.reason is not None), not_recorded("ran"))
    return None


@rule("note", "tested_release")
@says("{title} {version} is newer than the releases that Steadykit was tested with (up to {tested}).")
def newer_than_tested(run: MeasuredRun) -> Iterator[Found]:
    """Find frameworks that are newer than what Steadykit's tests have run with."""
    untested = {launch.untested.values["title"]: launch.untested for launch in run.launches if launch.untested}
    for known in untested.values():
        yield Found(known.values)


@rule("warning", "keep_float32")
@says("{who}: the cell says float32, but its framework may multiply in less: {settings}.")
def precision_lowered(cell: MeasuredCell) -> Found | None:
    """Find float32 cells whose framework is set to compute in less."""
    if cell.cell.precision != "float32" or is_operation(cell.cell):
        raise NotApplicableError
    if not any(FULL_FLOAT32.keys() & record.settings.keys() for record in cell.records):
        raise not_recorded("settings")
    lowered = next((known for record in cell.records if (known := lower_precision(cell.cell, record))), None)
    if lowered is None:
        return None
    return Found({"settings": ", ".join(f"{name}={value}" for name, value in lowered.items())}, 100.0)
