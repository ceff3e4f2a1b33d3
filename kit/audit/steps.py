"""Rules on step times: two modes, stalls, compilations, and whether a step did its work."""

from __future__ import annotations

import math
import statistics
from operator import itemgetter

from kit.audit.finding import Severity
from kit.audit.remedies import again, larger_batch, other_allocator
from kit.audit.rule import Found, rule, says
from kit.audit.subject import MeasuredCell, NotApplicableError, NotMeasuredError, not_recorded
from kit.compare.ceilings import beside, best_product, cost, named, step_ns_of
from kit.compare.table import By, LaunchRow
from kit.profile.cell import OWN
from kit.profile.fields import reason
from kit.stats.estimate import ROUNDS_FOR_VERDICT, over
from kit.workloads.device_operations import is_operation

# A mean lies 1 to 3 % above its median by common jitter.
STALLED_PCT = 5.0
# Ceilings are measured at other moments than networks: on shared machines speed differs between them by a third and
# more, and by a factor of two beside a busy program. A step that computes nothing is above by orders of magnitude.
CEILINGS_REACHED, CEILINGS_IMPOSSIBLE = 1.5, 3.0
# Beside as many busy programs as CPUs, threads that spin for each other took ten times as long as alone. So a product
# whose best block others disturbed shows only what is above it by far more.
DISTURBED_CEILINGS_REACHED = 30.0
# A fraction of an empty dispatch. A program that calls its framework directly saves some of it.
DISPATCH_FRACTION = 0.5
# In the reference profiles input takes little time: 101 of 105 fits are below 10 %. One that a neighbor
# disturbed is at 30 %, so a warning needs several fits.
INPUT_PCT, INPUT_WARNED_PCT = 10.0, 25.0
# Settings under which a framework logs why it compiles. TensorFlow warns of retracing by itself.
LOG_SETTINGS = {"torch": "TORCH_LOGS=recompiles", "jax": "JAX_EXPLAIN_CACHE_MISSES=1"}


@rule("warning", "log_recompiles")
@says("{who}: the framework recompiled {recompiles} × after the first step, in {launches} of {of_launches} launches.")
def recompiles(cell: MeasuredCell) -> Found | None:
    """Find cells that their framework compiled again after the first step."""
    recorded = [record.recompiles for record in cell.records if record.recompiles is not None]
    counts = [compilations.count for compilations in recorded if compilations.count is not None]
    if not counts and cell.cell.compile_mode != "eager":  # which compiles nothing
        why = next((compilations.reason for compilations in recorded if compilations.reason is not None), None)
        raise NotMeasuredError(why) if why is not None else not_recorded("recompiles")
    affected = [count for count in counts if count > 0]
    if not affected:
        return None
    setting = LOG_SETTINGS.get(cell.cell.backend)
    return Found(
        {"recompiles": sum(affected), "launches": len(affected), "of_launches": len(counts)},
        100 * len(affected) / len(counts),
        remedy=None if setting is None else reason("log_recompiles", setting=setting),
    )


@rule("warning", "see_latency", at_least=STALLED_PCT)
@says("{who}: occasional slow steps take {stalled_pct:.0f} % of the time; the median hides them.")
def stalls(cell: MeasuredCell) -> Found | None:
    """Find cells in which occasional slow steps take a noticeable part of the time."""
    # The machine's drift within a round is in the other cells, too. A cell alone is compared with its own blocks.
    excess, others = _excess_logs(cell), [_excess_logs(other) for other in cell.beside if other is not cell]
    beyond = [
        [log - other_logs[number] for number, log in excess.items() if number in other_logs] for other_logs in others
    ]
    estimates = [over(logs) for logs in beyond or [[*excess.values()]] if len(logs) >= ROUNDS_FOR_VERDICT]
    if not estimates:
        raise NotMeasuredError(reason("too_few_rounds", rounds=len(cell.launches), needed=ROUNDS_FOR_VERDICT))
    low, least = min(((estimate.interval()[0], estimate) for estimate in estimates), key=itemgetter(0))
    stalled_pct = 100 * (1 - 1 / (least.ratio or 1.0))
    return Found({"stalled_pct": stalled_pct, "rounds": least.count}, stalled_pct, value=100 * (low - 1))


def _excess_logs(cell: MeasuredCell) -> dict[int, float]:
    """Return ln of a cell's mean step over its usual one by round; of a cell alone the usual step is each block's.

    On an accelerator a step that is waited for by itself is longer than the others: there a block's step is usual.
    """

    def excess_log(launch: LaunchRow) -> float:
        blocks = launch.counting
        usual: By = "step" if blocks.per_wait else "latency"
        if len(cell.beside) > 1:
            ratio = launch.mean_step_ns / launch.time_ns(usual)
        else:
            times_ns = zip(blocks.steps, launch.times_ns(usual), strict=True)
            ratio = sum(blocks.duration_ns) / sum(steps * time_ns for steps, time_ns in times_ns)
        return math.log(ratio) if ratio > 0 else math.nan

    return cell.sample.once(
        (cell.group, _excess_logs), lambda: {number: excess_log(launch) for number, launch in cell.launches.items()}
    )


@rule("warning", "try_variant", explains=("stalls",))
@says("{who}: step time is bimodal, {fast_step_ns} or {slow_step_ns}; {slow_share_pct:.0f} % of the blocks are slow.")
@says(
    "{who}: step time is bimodal, and page faults differ with it: {slow_faults_per_step:,.0f} per step in the slow "
    "mode, {fast_faults_per_step:,.0f} in the fast mode.",
    code="bimodal_page_faults",
    explains=("stalls", "page_faults", "kernel_share"),
)
def bimodal(cell: MeasuredCell) -> Found | None:
    """Find cells whose step time is bimodal, and whether page faults differ between the modes."""
    together = cell.sample.cell_group
    modes = None if together is None else together.modes.get((cell.group, cell.key))
    if modes is None:
        return None
    (fast_ns, slow_ns), slow_pct = modes.step_ns, 100 * statistics.fmean(modes.is_slow.values())
    values = {"fast_step_ns": fast_ns, "slow_step_ns": slow_ns, "slow_share_pct": slow_pct}
    rank = 100 * (1 - math.exp(-modes.slowed_log))
    if modes.faults_per_step is None:
        return Found(values, rank, remedy=None)
    fast, slow = modes.faults_per_step
    values |= {"fast_faults_per_step": fast, "slow_faults_per_step": slow}
    return Found(values, rank, code="bimodal_page_faults", remedy=other_allocator(cell))


@rule("bad", "see_what_runs", explains=("cpus_idle",))
@says(
    "{who}: the step would have to reach {reached_gflop_s:,.0f} GFLOP/s, but the fastest matrix product measured "
    "here reaches {ceiling_gflop_s:,.0f} ({operation}): the step cannot have done its work."
)
@says(
    "{who}: a step takes {step_ns}, less than an empty dispatch of a framework ({empty_ns}).",
    code="shorter_than_dispatch",
    explains=("cpus_idle",),
)
def above_ceiling(cell: MeasuredCell) -> Found | None:
    """Find cells whose steps are too fast to have done their work."""
    if is_operation(cell.cell):
        raise NotApplicableError
    ceilings = beside(cell.cell, cell.sample.run.ceilings, any_backend=True)
    step_ns = step_ns_of(cell.launches.values()) if ceilings else None
    if step_ns is None:
        raise NotMeasuredError(reason("ceilings_not_measured"))
    empty = named("empty", beside(cell.cell, ceilings) or ceilings)
    empty_ns = min((ceiling.step_ns for ceiling in empty), default=0.0)
    is_program = cell.cell.precision == OWN
    if step_ns < DISPATCH_FRACTION * empty_ns:
        # A program may compute without a framework.
        values = {"step_ns": step_ns, "empty_ns": empty_ns}
        return Found(values, 100.0, code="shorter_than_dispatch", severity="warning" if is_program else "bad")
    product, work = best_product(cell.cell, ceilings), cost(cell.cell)
    if product is None or work is None:
        is_unknown = product is not None or (is_program and empty)
        raise NotMeasuredError(reason("work_not_known" if is_unknown else "ceilings_not_measured"))
    reached = 1e9 * work.least_flops / step_ns
    if reached <= CEILINGS_REACHED * product.rate:
        return None
    if product.is_disturbed and reached <= DISTURBED_CEILINGS_REACHED * product.rate:
        raise NotMeasuredError(reason("ceilings_disturbed", operation=product.name))
    rates = {"reached_gflop_s": reached / 1e9, "ceiling_gflop_s": product.rate / 1e9}
    severity: Severity = "bad" if reached > CEILINGS_IMPOSSIBLE * product.rate else "warning"
    return Found({**rates, "operation": product.name, "step_ns": step_ns}, 100.0, severity=severity)


@rule("warning", at_least=INPUT_PCT)
@says("{who}: the fit waits for its input {input_pct:.0f} % of the time.")
def input_bound(cell: MeasuredCell) -> Found:
    """Find fits that wait for their input."""
    if cell.cell.in_blocks:
        raise NotApplicableError
    ratios = [ratio for launch in cell.launches.values() if (ratio := launch.pipeline_ratio) is not None]
    if not ratios:
        raise not_recorded("reference steps")
    input_pct = 100 * (1 - 1 / statistics.median(ratios))
    is_sure = input_pct >= INPUT_WARNED_PCT and len(ratios) >= ROUNDS_FOR_VERDICT
    return Found(
        {"input_pct": input_pct, "fits": len(ratios)},
        input_pct,
        severity="warning" if is_sure else "note",
        remedy=again("resident_batches", [cell], {"feed": ["host", "device"]}) if cell.cell.feed == "host" else None,
    )


@rule("warning")
@says("{who}: a step takes {step_ns}, too short to time individually; the minimum is {shortest_ns}.")
def step_too_short(cell: MeasuredCell) -> Found | None:
    """Find cells whose steps are too short to time individually."""
    steps_ns = [ns for launch in cell.launches.values() for ns in launch.counting.median_ns if ns is not None]
    certificates = [record.certificate for record in cell.records if record.certificate is not None]
    if not steps_ns:
        raise NotApplicableError
    if not certificates:
        raise not_recorded("certificate")
    step_ns, shortest_ns = min(steps_ns), max(certificate.shortest_step_ns for certificate in certificates)
    if step_ns >= shortest_ns:
        return None
    return Found({"step_ns": float(step_ns), "shortest_ns": shortest_ns}, 100.0, remedy=larger_batch(cell))
