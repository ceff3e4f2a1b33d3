"""One launch, from import to parity, phase by phase.

import ─ data ─ build ─ trace ─ compile ─ first_step ─ warmup ─ steady ─ evaluate ─ observer ─ parity
                                          └──────── stamped ────────┘
         sampler: ├──────────────────────────────────────────┤  (its own process)
"""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kit import clock
from kit.backends.load import load as load_backend
from kit.backends.protocol import Backend, Compilations, DeviceBatch, Output, Program
from kit.errors import KitError
from kit.profile.clock import Calibration, ClockSource
from kit.profile.launch import Launch, LaunchRequest, StepPlan, Threads, Utilization
from kit.worker.affinity import pin
from kit.worker.cpus_taken import CpuUse, cpu_use, taken_pct
from kit.worker.evaluate import evaluate
from kit.worker.inputs import feed, load_inputs
from kit.worker.ledger import PhaseLedger
from kit.worker.observer import observe
from kit.worker.parity import record_parity
from kit.worker.peak_memory import peak_memory_b
from kit.worker.planted import Planted, wait_ns
from kit.worker.sampler_process import SamplerProcess
from kit.worker.step_loop import run_steps, steady_steps, warm_up
from kit.workloads.catalog import WORKLOADS
from kit.workloads.weights import initial_weights


class LaunchError(KitError):
    """The launch ran, but what it measured cannot stand."""


class Steps(NamedTuple):
    """Everything that was stamped."""

    step_ns: NDArray[np.int64]  # (steps,), step 0 first
    warmup_steps: int
    recompiles: Compilations
    last_output: Output
    planted_wait_ns: int  # within each steady step; 0 but in a self-test
    cpu_use: tuple[CpuUse | None, CpuUse | None]  # before and after the steady steps


def new_launch(request: LaunchRequest) -> Launch:
    """The record of a launch that has measured nothing yet."""
    return Launch(
        cell_key=request.cell.key,
        round=request.round,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        python=platform.python_version(),
        backend_version=None,
    )


def measure(request: LaunchRequest, ledger: PhaseLedger, launch: Launch, keep: Callable[[], None]) -> None:
    """Run the launch, writing into `launch` as it goes: what had been measured stays if a later phase fails.

    `keep` is called when the steps are measured, before scoring and parity, which need more memory than the steps did.

    Raises:
        KitError: the device is not there, the data is damaged, or the loss is not finite.
        Exception: whatever the framework raises.
    """
    launch.phases = ledger.phases
    cpus = pin(request.cpus)
    source, _ = clock.choose_source(request.clock)
    launch.calibration_start = clock.calibrate(source)
    workload = WORKLOADS[request.cell.workload]

    with SamplerProcess() as sampler:
        with ledger.phase("import"):
            backend = load_backend(request.cell.backend)
        launch.backend_version = backend.version
        launch.threads = _set_threads(backend, request, cpus)
        _check_device(backend, request)
        with ledger.phase("data"):
            inputs = load_inputs(workload, request)
        launch.data = inputs.used
        with ledger.phase("build"):
            weights = initial_weights(workload, request.seed)
            program = backend.build(workload, request.cell, weights, request.seed)
            batches = feed(program, inputs.pool, request)
        _trace_and_compile(program, ledger)
        steps = _stamped_steps(
            program,
            batches,
            plan=request.plan,
            ledger=ledger,
            source=source,
            calibration=launch.calibration_start,
            planted_slowdown_pct=request.planted_slowdown_pct,
            cpus=cpus,
        )

    launch.peak_memory_b = peak_memory_b()
    launch.calibration_end = clock.calibrate(source)
    launch.certificate = clock.certify(source, launch.calibration_start, launch.calibration_end)
    steady = ledger.named("steady")
    launch.sensors = sampler.reports
    launch.utilization = sampler.utilization(steady.begin_ns, steady.begin_ns + steady.duration_ns)
    _record_contention(launch, launch.utilization, steps, cpus)
    launch.energy = sampler.energies(steady.begin_ns, steady.begin_ns + steady.duration_ns)
    _record_steps(launch, steps)
    _record_plant(launch, request, steps)
    _check_output(program, steps.last_output)
    keep()
    if request.evaluate and request.cell.task == "train":
        with ledger.phase("evaluate"):
            launch.evaluation = evaluate(program, workload, inputs.dataset, updates=launch.steps)
    if request.observer_s > 0:
        # After scoring, which counts the updates that were measured: these steps are more of them.
        with ledger.phase("observer"):
            launch.observer = observe(
                program,
                batches,
                seconds=request.observer_s,
                steady_ns=steps.step_ns[steps.warmup_steps :],
                source=source,
                calibration=launch.calibration_start,
            )
    if request.parity:
        with ledger.phase("parity"):
            launch.parity = record_parity(backend, workload, request, inputs.pool)


def _set_threads(backend: Backend, request: LaunchRequest, cpus: list[int]) -> Threads:
    setting = backend.set_threads(request.threads)
    return Threads(requested=request.threads, reported=setting.reported, reported_reason=setting.reason, cpus=cpus)


def _check_device(backend: Backend, request: LaunchRequest) -> None:
    cell = request.cell
    found = backend.devices().get(cell.device, 0)
    if found < cell.devices:
        seen = ", ".join(f"{count} {kind}" for kind, count in backend.devices().items() if count) or "none"
        raise LaunchError(f"{backend.name} sees {found} {cell.device} of the {cell.devices} asked for; it sees: {seen}")


def _trace_and_compile(program: Program, ledger: PhaseLedger) -> None:
    with ledger.phase("trace"):
        told_apart = program.trace()
    if not told_apart:
        ledger.drop("trace")
    with ledger.phase("compile"):
        told_apart = program.compile()
    if not told_apart:
        ledger.drop("compile")


def _stamped_steps(
    program: Program,
    batches: Iterator[DeviceBatch],
    *,
    plan: StepPlan,
    ledger: PhaseLedger,
    source: ClockSource,
    calibration: Calibration | None,
    planted_slowdown_pct: float,
    cpus: Sequence[int],
) -> Steps:
    first_series = clock.stamps(2, source)
    warmup_series = clock.stamps(plan.steps_max + 1, source)
    steady_series = clock.stamps(plan.steps_max + 1, source)
    # What the build left behind is collected now, not in the middle of a step.
    gc.collect()
    gc.freeze()
    with ledger.phase("first_step"):
        first = run_steps(program, batches, 1, first_series, calibration)
    compiled_before = program.compilations()
    with ledger.phase("warmup"):
        warmup = warm_up(program, batches, plan, warmup_series, calibration)
    steps = steady_steps(warmup.step_ns, plan)
    planted_wait_ns = wait_ns(warmup.step_ns, planted_slowdown_pct)
    stepping = Planted(program, planted_wait_ns) if planted_slowdown_pct else program
    before = cpu_use(cpus)
    with ledger.phase("steady"):
        steady = run_steps(stepping, batches, steps, steady_series, calibration)
    after = cpu_use(cpus)
    return Steps(
        step_ns=np.concatenate([first.step_ns, warmup.step_ns, steady.step_ns]),
        warmup_steps=1 + len(warmup.step_ns),
        recompiles=_compiled_since(compiled_before, program.compilations()),
        last_output=steady.last_output,
        planted_wait_ns=planted_wait_ns,
        cpu_use=(before, after),
    )


def _compiled_since(before: Compilations, after: Compilations) -> Compilations:
    if before.count is None or after.count is None:
        return after
    return Compilations(after.count - before.count, None, after.graph_breaks)


def _record_contention(launch: Launch, used: Utilization, steps: Steps, cpus: Sequence[int]) -> None:
    taken, reason = taken_pct(*steps.cpu_use, len(cpus))
    reasons = used.reasons if reason is None else used.reasons | {"cpu_taken_pct": reason}
    launch.utilization = msgspec.structs.replace(used, cpu_taken_pct=taken, reasons=reasons)


def _record_steps(launch: Launch, steps: Steps) -> None:
    launch.step_ns = steps.step_ns.tolist()
    launch.steps = len(steps.step_ns)
    launch.warmup_steps = steps.warmup_steps
    launch.recompiles = steps.recompiles.count
    launch.recompiles_reason = steps.recompiles.reason
    launch.graph_breaks = steps.recompiles.graph_breaks
    if launch.recompiles:
        launch.warnings.append(f"{launch.recompiles} recompilations after the first step")
    if np.any(steps.step_ns <= 0):
        raise LaunchError("a step took no time by this clock: too coarse for steps this short; use larger batches")
    shortest_ns = launch.certificate.shortest_step_ns if launch.certificate else 0
    if int(np.median(steps.step_ns)) < shortest_ns:
        launch.warnings.append(f"steps are shorter than the {shortest_ns} ns that this clock may time singly")


def _record_plant(launch: Launch, request: LaunchRequest, steps: Steps) -> None:
    launch.planted_slowdown_pct = request.planted_slowdown_pct
    if request.planted_slowdown_pct:
        launch.warnings.append(
            f"planted slow-down: each steady step waits {steps.planted_wait_ns} ns, "
            f"{request.planted_slowdown_pct:g} % of the launch's own pace"
        )


def _check_output(program: Program, output: Output) -> None:
    values = program.to_host(output)
    if not np.isfinite(values).all():
        what = f"loss is {float(values)}" if values.ndim == 0 else "logits are not finite"
        raise LaunchError(f"the last step's {what}: a program that computes nonsense is not timed")
