"""Whether a step did its work: it is compared with what operations reached on the same device in the same run."""

from __future__ import annotations

import statistics

from kit.audit.finding import Severity
from kit.audit.rule import NOT_APPLICABLE, Member, Outcome, rule
from kit.compare.ceilings import Ceiling, beside, best_product, ceilings_of, cost, named, step_ns_of
from kit.compare.launch_arrays import pipeline_ratio
from kit.profile.cell import OWN
from kit.profile.reason import Value, reason
from kit.stats.verdict import ROUNDS_FOR_VERDICT
from kit.workloads.operations import is_operation

# Of the fastest product of any framework here. Ceilings are measured at other moments than networks: on shared machines
# speed differs between them by a third and more, beside a busy program by a factor of two. What computes nothing is
# above by orders of magnitude.
ABOVE_CEILING, FAR_ABOVE_CEILING = 1.5, 3.0
# Of an empty dispatch. A network has one at least; a program that calls its framework directly saves some of it.
DISPATCH_SHARE = 0.5
# Of a fit's time that its input takes. Of 105 fits in the reference profiles, where it takes little, 101 are below; one
# alone that a neighbour disturbed is at 30 %, so that a warning needs several.
INPUT_NOTED_PCT = 10.0
INPUT_WARNED_PCT = 25.0


@rule("member", worst="bad", also=("shorter_than_dispatch",))
def above_ceiling(member: Member) -> Outcome:
    """Find cells whose steps are too fast to have done their work."""
    cell = member.cell
    if is_operation(cell):
        return NOT_APPLICABLE
    ceilings = beside(cell, member.once("ceilings", lambda: ceilings_of(member.profile)), any_backend=True)
    step_ns = step_ns_of(member.launches.values())
    if not ceilings or step_ns is None:
        return reason("ceilings_not_measured")
    empty = named("empty", beside(cell, ceilings) or ceilings)
    empty_ns = min((of.step_ns for of in empty), default=0.0)
    if step_ns < DISPATCH_SHARE * empty_ns:
        values = {"step_ns": step_ns, "empty_ns": empty_ns}
        # A program may compute without a framework.
        severity: Severity = "warning" if cell.precision == OWN else "bad"
        remedy, explains = reason("see_what_runs"), ("cpus_idle",)
        return member.finding("shorter_than_dispatch", severity, values, 100.0, remedy, explains)
    if cell.precision == OWN:
        return reason("work_not_known" if empty else "ceilings_not_measured")
    return _above_product(member, step_ns, best_product(cell, ceilings))


def _above_product(member: Member, step_ns: float, product: Ceiling | None) -> Outcome:
    of_step = cost(member.cell)
    if of_step is None or product is None:
        return reason("ceilings_not_measured" if product is None else "work_not_known")
    reached = 1e9 * of_step.least_flops / step_ns
    if reached <= ABOVE_CEILING * product.rate:
        return None
    evidence: dict[str, Value] = {
        "reached_gflop_s": reached / 1e9,
        "ceiling_gflop_s": product.rate / 1e9,
        "operation": product.name,
        "step_ns": step_ns,
    }
    severity: Severity = "bad" if reached > FAR_ABOVE_CEILING * product.rate else "warning"
    return member.finding("above_ceiling", severity, evidence, 100.0, reason("see_what_runs"), ("cpus_idle",))


@rule("member", worst="warning")
def input_bound(member: Member) -> Outcome:
    """Find fits that wait for their input."""
    if member.cell.task != "fit":
        return NOT_APPLICABLE
    fits = [(launch, launch.fit) for launch in member.launches.values() if launch.fit is not None]
    ratios = [ratio for launch, fit in fits if (ratio := pipeline_ratio(launch, fit)) is not None]
    if not ratios:
        return reason("not_recorded", what="reference steps")
    input_pct = 100 * (1 - 1 / statistics.median(ratios))
    if input_pct < INPUT_NOTED_PCT:
        return None
    is_sure = input_pct >= INPUT_WARNED_PCT and len(ratios) >= ROUNDS_FOR_VERDICT
    severity: Severity = "warning" if is_sure else "note"
    remedy = reason("resident_batches") if member.cell.feed == "host" else None
    return member.finding("input_bound", severity, {"input_pct": input_pct, "fits": len(ratios)}, input_pct, remedy)


@rule("member", worst="warning")
def step_too_short(member: Member) -> Outcome:
    """Find cells whose steps are too short to time individually."""
    steps_ns = [ns for launch in member.launches.values() for ns in launch.blocks.median_ns if ns is not None]
    certificates = [launch.certificate for launch in member.launches.values() if launch.certificate is not None]
    if not steps_ns or not certificates:
        return reason("not_recorded", what="certificate") if steps_ns else NOT_APPLICABLE
    shortest_ns = max(of.shortest_step_ns for of in certificates)
    if min(steps_ns) >= shortest_ns:
        return None
    values: dict[str, Value] = {"step_ns": float(min(steps_ns)), "shortest_ns": shortest_ns}
    return member.finding("step_too_short", "warning", values, 100.0, reason("larger_batch"))
