"""Profiles with planted truths: launch medians are given, everything else is plain and complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.profile.cell import Cell
from kit.profile.clock import Certificate, Distribution
from kit.profile.identity import Container, Cpu, Identity, Software, State
from kit.profile.journal import JournalHeader
from kit.profile.launch import (
    DataUsed,
    Energy,
    Evaluation,
    Failure,
    Launch,
    Parity,
    Phase,
    StepPlan,
    Threads,
    Utilization,
)
from kit.profile.run_plan import RunPlan
from kit.profile.schema import SCHEMA, CellResult, LaunchSummary, Profile, StateSpan, SuiteUsed
from kit.profile.sensor import SensorReport
from kit.stats.cell_summary import summarize_cell
from kit.stats.parity_verdict import parity_verdicts

MS = 1_000_000
DEFAULT_MODE = {"tensorflow": "graph", "torch": "eager", "jax": "jit"}
NO_RAPL = "no RAPL domain under /sys/class/powercap: virtual machines do not pass it through"


def build_cell(backend="torch", workload="mlp", task="train", *, batch=128, device="cpu", compile_mode=None, **more):
    fields = {"precision": "float32", "feed": "device", "devices": 1} | more
    return Cell(
        workload=workload,
        backend=backend,
        device=device,
        task=task,
        batch=batch,
        compile_mode=compile_mode or DEFAULT_MODE.get(backend, "graph"),
        **fields,
    )


def build_launch(cell, round=0, *, data="mnist", loss_shift=0.0, accuracy=0.97, data_sha256="d" * 64, **more):
    durations = {"import": 2000 * MS, "build": 5 * MS, "trace": 100 * MS, "first_step": 50 * MS, "steady": 900 * MS}
    phases, begin = [], 10**12
    for name, duration in durations.items():
        phases.append(Phase(name=name, begin_ns=begin, duration_ns=duration))
        begin += duration
    fields = {
        "cell_key": cell.key,
        "round": round,
        "started": "2026-01-01T00:00:00Z",
        "python": "3.11.0",
        "backend_version": "1.0",
        "phases": phases,
        "steps": 400,
        "warmup_steps": 100,
        "recompiles": 0,
        "threads": Threads(requested=2, reported=2, reported_reason=None, cpus=[0, 1]),
        "data": DataUsed(name=data, sha256=data_sha256, train_samples=60000, test_samples=10000, pool_batches=16),
        "utilization": Utilization(
            process_cpu_pct=180.0 + round,
            machine_cpu_pct=95.0,
            rss_peak_b=500 << 20,
            frequency_mhz=None,
            throttled_ns=0,
            samples=9,
            sampler_cpu_pct=0.5,
            reasons={"frequency_mhz": "not readable in this virtual machine"},
        ),
        "energy": [Energy(sensor="rapl.package-0", joules_j=None, window_ns=None, reason=NO_RAPL)],
        "peak_memory_b": 600 << 20,
        "evaluation": Evaluation(accuracy=accuracy, samples=10000)
        if data == "mnist"
        else Evaluation(accuracy=None, samples=0, reason="synthetic data has no accuracy"),
        "parity": Parity(
            losses=[2.3 / (1 + step) * (1 + loss_shift) for step in range(20)],
            weights_sha256="a" * 64,
            batches_sha256="b" * 64,
        ),
    }
    return Launch(**(fields | more))


def build_result(cell, medians_ns: Sequence[float | None], **launch_fields) -> CellResult:
    """One launch per median, in rounds 0, 1, …; a null median is a launch without a steady state."""
    launches = [build_launch(cell, round, **launch_fields) for round in range(len(medians_ns))]
    summaries = [build_summary(round, median) for round, median in enumerate(medians_ns)]
    return CellResult(
        key=cell.key,
        cell=cell,
        status="ok",
        launches=launches,
        launch_summaries=summaries,
        summary=summarize_cell(cell, launches, summaries),
    )


def build_summary(round, median_ns):
    if median_ns is None:
        nothing = dict.fromkeys(("warmup_steps", "median_ns", "p95_ns", "autocorrelation"))
        return LaunchSummary(round=round, verdict="no_steady_state", steady_steps=0, **nothing)
    return LaunchSummary(
        round=round,
        verdict="warmup",
        warmup_steps=40,
        steady_steps=300,
        median_ns=round_ns(median_ns),
        p95_ns=round_ns(1.1 * median_ns),
        autocorrelation=0.1,
    )


def round_ns(value):
    return int(value + 0.5)


def build_blank_launch(cell_key, round=0, *, failure=None, phase="build", **more):
    """A launch that measured nothing; with `failure`, the reason, one that failed in `phase`."""
    return Launch(
        cell_key=cell_key,
        round=round,
        started="2026-01-01T00:00:00Z",
        python="3.11.0",
        backend_version=None,
        failure=Failure(phase=phase, reason=failure, **more) if failure else None,
    )


def build_failed(cell, reason="out of memory", phase="first_step"):
    launch = build_blank_launch(cell.key, failure=reason, phase=phase, stderr_tail="Killed", exit_code=-9)
    return CellResult(
        key=cell.key,
        cell=cell,
        status="failed",
        launches=[launch],
        launch_summaries=[],
        summary=summarize_cell(cell, [], []),
        failures=[launch.failure],
    )


def build_identity(cpu_model="Example CPU 9000", kernel="6.1.0", packages: Mapping[str, str] | None = None, **more):
    fields = {
        "cpu": Cpu(
            model=cpu_model,
            vendor="Example",
            architecture="x86_64",
            cores_physical=2,
            cores_logical=4,
            flags_sha256=None,
            microcode=None,
            caches={"L3": 32 << 20},
        ),
        "memory_b": 16 << 30,
        "hypervisor": None,
        "accelerators": [],
        "container": Container(engine=None, cpu_limit=None, memory_limit_b=None, image=None),
        "software": Software(
            kit="0.1.0",
            python="3.11.0",
            os="Example Linux",
            kernel=kernel,
            libc="glibc 2.36",
            packages=dict(packages or {"torch": "2.0", "jax": "0.10", "tensorflow": "2.21"}),
        ),
        "hostname_sha256": "c" * 64,
        "hardware_sha256": "hardware of " + cpu_model,
    }
    return Identity(**(fields | more))


def build_profile(results: Sequence[CellResult], *, id="run-1", identity=None, seed=0, data="mnist", **more):
    for key, verdict in parity_verdicts(results).items():
        next(result for result in results if result.key == key).parity = verdict
    nothing = dict.fromkeys(State.__struct_fields__)
    state = State(**(nothing | {"taken": "2026-01-01T00:00:00Z", "load_1min": 0.2, "accelerators": [], "reasons": {}}))
    fields = {
        "schema": SCHEMA,
        "id": id,
        "created": "2026-01-01T00:00:00Z",
        "kit": "0.1.0",
        "identity": identity or build_identity(),
        "state": StateSpan(before=state, after=state),
        "clock": build_certificate(),
        "sensors": [
            SensorReport(
                name="rapl.package-0",
                quantity="energy",
                unit="J",
                scope="package 0, all processes",
                source="/sys/class/powercap",
                status="unavailable",
                reason=NO_RAPL,
            ),
            SensorReport(
                name="cpu.utilization",
                quantity="utilization",
                unit="%",
                scope="process tree",
                source="psutil",
                status="measured",
                update_period_ns=100 * MS,
            ),
        ],
        "suite": SuiteUsed(
            name="quick",
            sha256="e" * 64,
            launches=max((len(result.launches) for result in results), default=0),
            plan=StepPlan(warmup_s=1, warmup_steps_min=20, steady_s=1, steps_min=100, steps_max=1000),
            data=data,
            seed=seed,
        ),
        "cells": list(results),
    }
    return Profile(**(fields | more))


def build_certificate():
    spread = Distribution(min_ns=20, median_ns=21, p99_ns=30, p999_ns=60, max_ns=900, mean_ns=21.5, count=10000)
    return Certificate(
        source="monotonic_raw",
        source_reason="the TSC is not the kernel's clocksource",
        resolution_ns=1.0,
        null_interval=spread,
        path_cost=spread,
        calibration=None,
        drift_ppm=None,
        shortest_step_ns=21000,
    )


def six_cells(task="train", medians_ms=None, launches=10, jitter=0.002, **launch_fields):
    """`mlp` and `cnn` in the three backends; each launch of a round shares that round's disturbance."""
    medians_ms = medians_ms or {"tensorflow": 4.0, "torch": 2.0, "jax": 2.001}
    results = []
    for workload, factor in (("mlp", 1.0), ("cnn", 20.0)):
        for place, (backend, milliseconds) in enumerate(medians_ms.items()):
            # A small, deterministic disturbance that differs between backends and rounds.
            wobble = [((7 * round + 3 * place) % 5 - 2) * jitter for round in range(launches)]
            medians = [milliseconds * factor * MS * (1 + w) for w in wobble]
            results.append(build_result(build_cell(backend, workload, task), medians, **launch_fields))
    return results


def build_header(profile, plan):
    """Of the journal of the run that `profile` came of."""
    return JournalHeader(
        id=profile.id,
        created=profile.created,
        kit=profile.kit,
        identity=profile.identity,
        state_before=profile.state.before,
        sensors=profile.sensors,
        suite=profile.suite,
        plan=plan,
    )


def build_run_plan(cells, launches=4, **more):
    """As the quick suite would have it."""
    fields = {
        "cells": cells,
        "steps": StepPlan(warmup_s=0.5, warmup_steps_min=3, steady_s=1.5, steps_min=20, steps_max=20_000),
        "steady_s_min": 0.0,
        "launches": launches,
        "precision_pct": None,
        "data": "mnist",
        "seed": 0,
        "cpus": [0, 1],
        "clock": "monotonic_raw",
    }
    return RunPlan(**(fields | more))
