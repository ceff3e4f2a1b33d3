"""Rules on how accelerators are timed and shared: waits, the device's clock, targets, turns, parity with the CPU."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter

from kit.audit.rule import Found, Outcome, rule, says
from kit.audit.subject import MeasuredCell, MeasuredRun, NotApplicableError, NotMeasuredError, not_recorded
from kit.compare.comparability import max_relative_difference
from kit.compare.table import LaunchRow
from kit.profile.cell import Variant
from kit.profile.fields import Value, reason
from kit.profile.schema import CellResult
from kit.stats.estimate import ROUNDS_FOR_VERDICT, over
from kit.workloads.parity_proof import parity_tolerance

# A worker runs so many steps between two waits that a wait costs less (`kit.runner.warm_up_and_blocks`).
WAIT_PCT = 1.0
# A step without a wait of its own takes no longer than one with; blocks of a disturbed machine lie this far apart.
ABOVE_LATENCY_PCT = 20.0
# Host and device were 0.03 to 0.5 % apart in 16 launches on an H100 (docs/trust/tested-on.md).
DEVICE_CLOCK_PCT = 1.0
# Two processes of one cell can differ by 5 % for as long as they live (docs/explanation/method.md), and cuDNN and XLA
# choose other kernels where they have less memory.
TURNS_PCT = 10.0


def _stepping(cell: MeasuredCell) -> list[LaunchRow]:
    """Return the launches of a cell, unless its blocks are stretches of a fit, with one wait at the end of each."""
    if not cell.cell.in_blocks:
        raise NotApplicableError
    return list(cell.launches.values())


@rule("warning", on="accelerator", at_least=WAIT_PCT)
@says("{who}: an empty wait takes {wait_ns}, {wait_pct:.2f} % of the time between two waits (steps: {per_wait}).")
def wait_too_long(cell: MeasuredCell) -> Found:
    """Find cells whose waits for the device take a noticeable part of their step time."""
    waits = [
        (100 * wait_ns / (per_wait[-1] * launch.mean_step_ns), wait_ns, per_wait[-1])
        for launch in _stepping(cell)
        if (wait_ns := launch.record.empty_wait_ns) is not None and (per_wait := launch.counting.per_wait)
    ]
    if not waits:
        raise not_recorded("empty_wait_ns")
    wait_pct, wait_ns, steps = sorted(waits, key=itemgetter(0))[len(waits) // 2]
    return Found({"wait_ns": wait_ns, "per_wait": steps, "wait_pct": wait_pct}, wait_pct)


@rule("warning", "quiet_machine", on="accelerator", at_least=ABOVE_LATENCY_PCT)
@says("{who}: step time is {step_ns}, and {latency_ns} where each step has its own wait ({difference_pct:+.0f} %).")
def step_above_latency(cell: MeasuredCell) -> Found:
    """Find cells whose steps take longer without a wait after each step than with one."""
    times_ns = [(launch.time_ns(), launch.time_ns("latency")) for launch in _stepping(cell)]
    known_ns = [both for both in times_ns if not math.isnan(sum(both))]
    if not known_ns:
        raise not_recorded("median_ns")
    step_ns, latency_ns = map(statistics.geometric_mean, zip(*known_ns, strict=True))
    difference_pct = 100 * (step_ns / latency_ns - 1)
    return Found({"step_ns": step_ns, "latency_ns": latency_ns, "difference_pct": difference_pct}, difference_pct)


@rule("bad", on="accelerator", at_least=DEVICE_CLOCK_PCT)
@says("{who}: a step takes {host_ns} by the host's clock and {device_ns} by the device's ({difference_pct:+.2f} %).")
def device_clock(cell: MeasuredCell) -> Found:
    """Find cells whose steps take another time by the device's own clock than by the host's."""
    events = [known for launch in _stepping(cell) if (known := launch.record.device_events) is not None]
    if not events:
        raise NotApplicableError  # PyTorch alone times steps by its device's events
    host_ns = statistics.median(group.host_ns for group in events)
    device_ns = statistics.median(group.device_ns for group in events)
    # No device's events are a nanosecond apart: CUDA's have a resolution of half a microsecond.
    difference_pct = 100 * (host_ns / max(device_ns, 1.0) - 1)
    values = {"host_ns": host_ns, "device_ns": device_ns, "difference_pct": difference_pct}
    return Found(values, abs(difference_pct))


@rule("warning", on="accelerator")
@says("{who}: the targets lie on {where}, so each step copies them to the device.")
def targets_on_host(cell: MeasuredCell) -> Found | None:
    """Find cells whose targets stay in the host's memory although their batches lie on the device."""
    if cell.cell.feed == "host" or not (cell.cell.traits.trains and cell.cell.in_blocks):
        raise NotApplicableError
    devices = {device for record in cell.records if (device := record.settings.get("targets")) is not None}
    if not devices:
        raise not_recorded("targets")
    on_host = sorted(device for device in devices if "cpu" in device.lower())
    return Found({"where": on_host[0]}, 100.0) if on_host else None


@rule("warning", "one_at_a_time", on="accelerator")
@says("{who}: the group's workers ran one after another, so rounds are compared and not cycles: {because}.")
def not_in_turns(cell: MeasuredCell) -> Found | None:
    """Find cells that could not take turns with the other cells of their group, because of their device."""
    why = next((why for launch in _stepping(cell) if (why := launch.record.turns_reason) is not None), None)
    if why is None or why.code not in ("lack_of_device_memory", "exclusive_device"):
        return None
    return Found({}, because=why, severity="warning" if why.code == "lack_of_device_memory" else "note")


@rule("warning", "measure_alone", on="accelerator", at_least=TURNS_PCT)
@says(
    "{who}: a step takes {difference_pct:+.1f} % ({low_pct:+.1f} to {high_pct:+.1f} %) beside {others} paused workers "
    "than in a worker that has the device and its memory alone."
)
def turns_cost(run: MeasuredRun) -> Iterator[Outcome]:
    """Find cells whose steps differ between a worker beside others and the same cell in a worker alone."""
    plain = [
        (cell.cell.key_without(("variant",)), cell, len(group) - 1)
        for group in run.groups
        for cell in group
        # A variant that changes nothing is the same cell under another name.
        if cell.cell.device != "cpu" and cell.variant in (None, Variant(name=cell.cell.variant))
    ]
    alone = {key: cell for key, cell, others in plain if not others}
    pairs = [(cell, alone[key], others) for key, cell, others in plain if others and key in alone]
    if not pairs:
        raise NotApplicableError
    for cell, other, others in pairs:
        logs = [
            math.log(launch.time_ns() / other.launches[number].time_ns())
            for number, launch in cell.launches.items()
            if launch.takes_turns and number in other.launches
        ]
        if len(logs) < ROUNDS_FOR_VERDICT:
            yield NotMeasuredError(reason("too_few_rounds", rounds=len(logs), needed=ROUNDS_FOR_VERDICT))
            continue
        cost = over(logs)
        low, high = cost.interval()
        percents = [100 * (ratio - 1) for ratio in (cost.ratio or math.nan, low, high)]
        values: dict[str, Value] = dict(zip(("difference_pct", "low_pct", "high_pct"), percents, strict=True))
        beyond_pct = 100 * (max(low, 1 / high) - 1)
        yield Found(values | {"others": others}, abs(percents[0]), value=beyond_pct, cell_key=cell.key)


@rule("bad", "same_arithmetic", on="accelerator", at_least=1.0)
@says("{who}: the losses differ from those on the CPU by {difference:.1g} (relative); the limit is {tolerance:.0g}.")
def parity_with_cpu(run: MeasuredRun) -> Iterator[Outcome]:
    """Find cells whose losses on the device differ from those of the same cell on the CPU."""
    by_work: defaultdict[str, dict[str, CellResult]] = defaultdict(dict)
    for result in run.profile.cells:
        by_work[result.cell.key_without(("device",))][result.cell.device] = result
    pairs = [(known["cpu"], result) for known in by_work.values() if "cpu" in known for result in known.values()]
    pairs = [(on_cpu, result) for on_cpu, result in pairs if result is not on_cpu]
    if not pairs:
        raise NotApplicableError
    for pair in pairs:
        losses = [
            next((launch.parity.losses for launch in result.launches if launch.parity is not None), [])
            for result in pair
        ]
        if not all(losses):
            yield NotMeasuredError(reason("no_parity"))
            continue
        difference = max_relative_difference(*losses)
        tolerance = parity_tolerance(pair[1].cell.precision, like_hardware=False)
        known: dict[str, Value] = {"difference": math.inf if difference is None else difference, "tolerance": tolerance}
        value = math.inf if difference is None else difference / tolerance
        yield Found(known, 100.0, value=value, cell_key=pair[1].key)
