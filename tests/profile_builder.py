"""Profiles with planted truths: step times, spreads and counters are given, everything else is plain and complete.

    built = profile(group("mlp train", member("tensorflow", 4.0), member("torch", 2.0, sd=0.02)), rounds=8)
    write(folder / "a.json", built)

A block's median is ``step_ms x drift(cycle) x luck(member, round) x noise(block)``: the drift is the machine's and is
shared by all members of a cycle, the luck is of one process, the noise of one block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from kit.compare.contradictions import mode_of
from kit.profile.cell import Cell, Variant
from kit.profile.consistency import steps_of
from kit.profile.facts import Accelerator, Facts, FactValue, Identity, State, device_facts
from kit.profile.fields import Reason, reason
from kit.profile.instruments import Certificate, Distribution, SensorReport, SensorSummary
from kit.profile.schema import (
    SCHEMA,
    Blocks,
    CellResult,
    Compilations,
    ComputedNumbers,
    DataUsed,
    Energy,
    Failure,
    Group,
    Kit,
    Launch,
    Parity,
    Phase,
    Profile,
    StateSpan,
    StepPlan,
    SuiteUsed,
    Threads,
    ThreadsOnCpus,
    WhatRan,
)
from kit.profile.store import canonical_json, launch_id, profile_digest
from kit.profile.unfinished import RunPlan
from kit.workloads.device_operations import is_operation

AnyFacts = TypeVar("AnyFacts", bound=Facts)

MS = 1_000_000
S = 1_000_000_000
FLOAT32 = {
    "tensorflow": ("tensor_float_32", "False"),
    "torch": ("float32_matmul_precision", "highest"),
    "jax": ("jax_default_matmul_precision", "None"),
}
DEFAULT_MODE = {"tensorflow": "graph", "torch": "eager", "jax": "jit"}
CREATED = "2026-01-01T00:00:00Z"
BLOCK_NS = 250 * MS
PHASES_NS = {"import": 2000 * MS, "build": 5 * MS, "trace": 100 * MS, "first_step": 50 * MS, "warmup": S}
EXAMPLE_MACHINE = {
    "cpu.vendor": "Example", "cpu.architecture": "x86_64", "cpu.cores_physical": 2, "cpu.cores_logical": 4,
    "cpu.cache.L3_b": 32 << 20, "memory_b": 16 << 30, "hypervisor": None, "container.engine": None,
    "container.cpu_limit": None, "container.memory_limit_b": None, "container.image": None, "kit": "0.2.0",
    "python": "3.11.0", "os": "Example Linux", "libc": "glibc 2.36",
}  # fmt: skip
ON_BOTH_CPUS = ThreadsOnCpus(threads=2, cpus=[0, 1])
# Of every member unless it says otherwise: its two CPUs are nearly busy, hardly in the kernel, without page faults.
CPUS_USED = {"process.cpu_ns": 1.9, "process.user_ns": 1.87, "process.system_ns": 0.03, "process.minor_faults": 0.0}

DEAD = dict.fromkeys(range(8), reason("out_of_memory", signal="SIGKILL"))  # for a member's `failed_rounds`
EXACT = {"sd": 0.0, "noise": 0.0}
# Operations with milliseconds a step: 200 GFLOP/s, 40 and 10 GB/s, a dispatch, and 10 GB/s.
PRODUCT, EMPTY, COPY = ("matmul", 10.0, {"n": 1000}), ("empty", 0.1, {}), ("copy_in", 6.7108864, {})
TRIADS = [("triad", 1.2582912, {"mib": 16}), ("triad", 80.530637, {"mib": 256})]
MLP_FLOPS = 2 * 128 * (784 * 512 + 512 * 512 + 512 * 10)  # of inference of a batch of 128


def cell(backend="torch", workload="mlp", task="train", *, batch=128, device="cpu", compile_mode=None, **more) -> Cell:
    """A cell with plain coordinates."""
    return Cell(
        workload=workload,
        backend=backend,
        device=device,
        task=task,
        batch=batch,
        compile_mode=compile_mode or DEFAULT_MODE.get(backend, "graph"),
        **({"precision": "float32", "feed": "device"} | more),
    )


@dataclass
class Member:
    """One cell and what its launches are to show."""

    cell: Cell
    step_ms: float
    sd: float = 0.01  # of the log of a launch's level, over rounds: luck of the process
    noise: float = 0.02  # of the log of a block's median
    slow: float = 1.0  # blocks of slow rounds take this times as long
    slow_rounds: Sequence[int] = ()
    slow_cycles: Sequence[int] | None = None  # of slow rounds; null: all
    trend: float = 0.0  # log: by how much the last cycle is slower than the first
    stall: float = 0.0  # of the timed steps' whole time, outside the median step
    counters: Mapping[str, float] = field(default_factory=dict)  # per step
    failed_rounds: Mapping[int, Reason] = field(default_factory=dict)
    launch: Mapping[str, object] = field(default_factory=dict)  # fields of its launches, as they are
    change: Callable[[Launch], None] | None = None  # called with each finished launch


def member(backend="torch", step_ms=2.0, workload="mlp", task="train", **more) -> Member:
    """A member; names of `Member`'s fields go there, others to its cell."""
    given = {name: more.pop(name) for name in list(more) if name in Member.__dataclass_fields__}
    return Member(cell=given.pop("cell", None) or cell(backend, workload, task, **more), step_ms=step_ms, **given)


@dataclass
class GroupPlan:
    """Members measured together; the first is the baseline."""

    key: str
    members: Sequence[Member]


def group(key: str, *members: Member) -> GroupPlan:
    """The first member is the baseline."""
    return GroupPlan(key, members)


def profile(
    *groups: GroupPlan,
    rounds: int = 8,
    cycles: int = 12,
    drift: float = 0.1,
    seed: int = 0,
    turns: str = "blocks",
    id: str = "run-1",
    data: str = "mnist",
    suite: str = "quick",
    compare: Sequence[str] = ("backend",),
    variants: Sequence[Variant] = (),
    **fields: object,
) -> Profile:
    """A whole profile; without groups, mlp and cnn in three frameworks."""
    rng = np.random.default_rng(seed)
    launches: dict[str, list[Launch]] = {}
    cells: dict[str, Cell] = {}
    groups = groups or six_cells()
    for number in range(rounds):
        for plan in groups:
            # A walk: neighbouring cycles are alike, distant ones are not.
            level = np.cumsum(rng.normal(0, drift / np.sqrt(cycles), cycles)) + rng.normal(0, drift)
            for each in plan.members:
                cells[each.cell.key] = each.cell
                made = _launch(each, plan.key, number, level, rng, data=data, turns=turns)
                launches.setdefault(each.cell.key, []).append(made)
    state = State(taken=CREATED, facts={"load_1min": 0.2})
    plain = {
        "schema": SCHEMA,
        "id": id,
        "created": CREATED,
        "kit": Kit(version="0.2.0", revision=None),
        "identity": identity(),
        "state": StateSpan(before=state, after=state),
        "clock": certificate(),
        "sensors": sensors(),
        "suite": SuiteUsed(
            name=suite,
            sha256="e" * 64,
            compare=list(compare),
            process_axes=["task"],
            rounds=rounds,
            plan=StepPlan(cycles=cycles, block_s=0.25, lead_in_s=0.02, warmup_s=1.0, warmup_steps=10, energy_s=0.0),
            variants=list(variants),
            data={"mnist": data},
            seed=0,
        ),
        "groups": [
            Group(key=plan.key, cells=[each.cell.key for each in plan.members], baseline=plan.members[0].cell.key)
            for plan in groups
        ],
        "cells": [
            CellResult(
                key=key,
                cell=cells[key],
                launches=made,
                p95_ns=max((launch.p95_ns for launch in made if launch.p95_ns is not None), default=None),
                p99_ns=max((launch.p99_ns for launch in made if launch.p99_ns is not None), default=None),
            )
            for key, made in launches.items()
        ],
    }
    return Profile(**(plain | fields))


def six_cells() -> list[GroupPlan]:
    """`mlp` and `cnn` in three frameworks."""
    steps_ms = {"tensorflow": 4.0, "torch": 5.0, "jax": 2.0}
    return [
        group(f"{net} train", *(member(name, ms * factor, net) for name, ms in steps_ms.items()))
        for net, factor in (("mlp", 1.0), ("cnn", 20.0))
    ]


def operations(*planted: tuple[str, float, Mapping[str, int]], backends=("torch", "jax"), **more) -> list[GroupPlan]:
    """A group for each operation, of a name, a step in milliseconds and parameters."""
    return [
        group(
            f"{name} {parameters}",
            *(member(backend, ms, name, "infer", batch=1, parameters=parameters, **more) for backend in backends),
        )
        for name, ms, parameters in planted
    ]


def _launch(plan: Member, group_key: str, number: int, level, rng, *, data: str, turns: str) -> Launch:
    cycles = len(level)
    luck = rng.normal(0, plan.sd)
    logs = level + luck + rng.normal(0, plan.noise, cycles) + plan.trend * np.linspace(0, 1, cycles)
    if number in plan.slow_rounds:
        slow = range(cycles) if plan.slow_cycles is None else plan.slow_cycles
        logs[list(slow)] += np.log(plan.slow)
    median_ns = np.rint(plan.step_ms * MS * np.exp(logs)).astype(int)
    steps = np.maximum(2, BLOCK_NS // median_ns)
    duration_ns = np.rint(steps * median_ns * (1 + plan.stall)).astype(int)
    span_ns = duration_ns + median_ns
    begin_ns = 10 * S * number + np.concatenate([[0], np.cumsum(3 * span_ns)[:-1]])
    phases, at = [], 10**12
    for name, duration in (PHASES_NS | {"steady": int(span_ns.sum())}).items():
        phases.append(Phase(name=name, begin_ns=at, duration_ns=duration))
        at += duration
    failure = plan.failed_rounds.get(number)
    fields = {
        "cell_key": plan.cell.key,
        "group": group_key,
        "round": number,
        "process": f"{plan.cell.key}#{number}",
        "started": CREATED,
        "turns": turns,
        "turns_reason": None if turns == "blocks" else reason("memory", needed_b=9 << 30, available_b=4 << 30),
        "python": "3.11.0",
        "backend_version": "1.0",
        "phases": phases,
        "warmup_steps": 100,
        "blocks": Blocks(
            cycle=list(range(cycles)),
            begin_ns=begin_ns.tolist(),
            span_ns=span_ns.tolist(),
            lead_in=[1] * cycles,
            steps=steps.tolist(),
            duration_ns=duration_ns.tolist(),
            median_ns=median_ns.tolist(),
            early_ns=median_ns.tolist(),
            late_ns=median_ns.tolist(),
            counters={
                **{name: np.rint(span_ns * cpus).astype(int).tolist() for name, cpus in CPUS_USED.items()},
                **{name: np.rint((steps + 1) * value).astype(int).tolist() for name, value in plan.counters.items()},
            },
        ),
        "p95_ns": int(np.median(median_ns) * 1.1),
        "p99_ns": int(np.median(median_ns) * 1.3),
        "recompiles": Compilations(count=0, before=1),
        **_proof(plan.cell),
        "threads": Threads(requested=2, reported=2, reason=None, cpus=[0, 1], placement=[ON_BOTH_CPUS]),
        "data": DataUsed(name=data, sha256="d" * 64, pool_batches=16),
        "peak_memory_b": 600 << 20,
        "numbers": numbers(plan.cell),
        "parity": losses(),
    }
    made = Launch(**(fields | dict(plan.launch)))
    if failure is not None:
        made.failure = Failure(phase="steady", reason=failure, stderr_tail="Killed")
        made.blocks = Blocks()
        made.p95_ns = made.p99_ns = None
    if plan.change is not None:
        plan.change(made)
    return made


def _proof(cell: Cell) -> dict[str, object]:
    """What shows that the cell's compile mode ran, and on a CPU the switch of its precision."""
    mode = mode_of(cell)
    shown = {} if mode is None else {"ran": WhatRan(runs={mode.needs: 1})}
    switch = FLOAT32.get(cell.backend) if cell.device == "cpu" else None
    return shown if switch is None else {**shown, "settings": dict([switch])}


def numbers(cell: Cell, **more: object) -> ComputedNumbers | None:
    """What the steps of a cell computed with; None: an operation."""
    if is_operation(cell):
        return None
    trains = cell.task == "train"
    known = {"blocks_begin": "restored" if trains else "left", "state_numbers": 1_339_418, "denormal_share": 0.0}
    if cell.task == "infer":
        return ComputedNumbers(**(known | {"loss_reason": reason("step_returns_no_loss")} | more))
    losses = {"first_step_loss": 2.3, "first_block_loss": 0.9, "last_block_loss": 0.8}
    return ComputedNumbers(**(known | losses | more))


def beside_others(
    share: float, cycles: Callable[[int], Sequence[int]] | None = None, *, slow: float = 1.0, cpus: float = 1.9
) -> Callable[[Launch], None]:
    """For a member's `change`: others take this share of its CPUs' time in some cycles, and nothing in the rest.

    Args:
        share: of its two CPUs; the cell uses what is left, at most `cpus` of them.
        cycles: of a round; None: all.
        slow: in those cycles steps take so many times as long; a block has fewer of them, a stretch of a fit does not.
        cpus: that the cell uses where others leave them.
    """

    def change(launch: Launch) -> None:
        blocks = launch.blocks
        chosen = np.isin(blocks.cycle, blocks.cycle if cycles is None else list(cycles(launch.round)))
        slower = np.where(chosen, slow, 1.0)
        steps = np.asarray(blocks.steps)
        left = steps if launch.fit is not None else np.maximum(2, (steps / slower).astype(int))
        longer = slower * left / steps
        blocks.steps = left.tolist()
        for name, factor in (("median_ns", slower), ("duration_ns", longer), ("span_ns", longer)):
            setattr(blocks, name, np.rint(factor * getattr(blocks, name)).astype(int).tolist())
        spans_ns = np.asarray(blocks.span_ns, np.float64)
        own_ns = spans_ns * np.where(chosen, min(cpus, 2 * (1 - share)), cpus)
        counters = {"process.cpu_ns": own_ns, "machine.busy_ns": own_ns + np.where(chosen, 2 * share, 0.0) * spans_ns}
        counters["machine.steal_ns"] = 0 * spans_ns
        blocks.counters |= {name: np.rint(values).astype(int).tolist() for name, values in counters.items()}

    return change


def run_plan(built: Profile) -> RunPlan:
    """The plan of the run that gave this profile."""
    return RunPlan(
        id=built.id,
        created=built.created,
        kit=built.kit,
        identity=built.identity,
        state_before=built.state.before,
        sensors=built.sensors,
        suite=built.suite,
        cells=[result.cell for result in built.cells],
        groups=built.groups,
        cpus=[0, 1],
        clock="monotonic_raw",
    )


def losses(away: float = 0.0) -> Parity:
    """For a member's `launch`: the losses of all members, or such that lie away from them."""
    values = [2.3 / (1 + step) * (1 + away) for step in range(20)]
    return Parity(losses=values, weights_sha256="a" * 64, batches_sha256="b" * 64)


def compiling(seconds: float) -> dict[str, list[Phase]]:
    """For a member's `launch`: how long it compiled."""
    return {"phases": [Phase(name="compile", begin_ns=0, duration_ns=round(seconds * S))]}


def energy(
    joules_j: float | None, samples: int = 10_000, sensor: str = "rapl.package-0", **more: object
) -> list[Energy]:
    """For a member's `launch`: ``member("torch", launch={"energy": energy(12.0)})``."""
    why = None if joules_j is not None else reason("rapl_missing")
    fields = {"window_ns": 10 * S, "samples": samples, "block_ns": 11 * S, "reason": why} | more
    return [Energy(sensor=sensor, joules_j=joules_j, **fields)]


def sampled(**values: tuple[float, float, str]) -> dict[str, SensorSummary]:
    """For a member's `launch`: ``{"sensors": sampled(power=(90.0, 120.0, "W"))}``."""
    return {
        name: SensorSummary(mean=mean, max=top, unit=unit, samples=40) for name, (mean, top, unit) in values.items()
    }


def sensor(name: str, quantity: str = "", unit: str = "", **more: object) -> SensorReport:
    """One that is there, unless `more` says otherwise."""
    plain = {"quantity": quantity, "unit": unit, "scope": "", "source": "", "status": "measured"}
    return SensorReport(name=name, **plain | more)


def sensors() -> list[SensorReport]:
    """One that is not there, and a counter that is."""
    package = {"scope": "package 0, all processes", "source": "/sys/class/powercap", "status": "unavailable"}
    worker = {"scope": "worker", "source": "getrusage", "counter": True}
    return [
        sensor("rapl.package-0", "energy", "J", reason=reason("rapl_missing"), **package),
        sensor("process.cpu_ns", "utilization", "ns", **worker),
    ]


def identity(
    cpu_model="Example CPU 9000",
    kernel="6.1.0",
    packages: Mapping[str, str] | None = None,
    *,
    accelerators: Sequence[Accelerator] = (),
    hostname_sha256="c" * 64,
    hardware_sha256="",
    facts: Mapping[str, FactValue | None] | None = None,
) -> Identity:
    """One machine; other models are other hardware. `facts` are added or changed."""
    versions = packages or {"torch": "2.0", "jax": "0.10", "tensorflow": "2.21"}
    known = {
        "cpu.model": cpu_model,
        **EXAMPLE_MACHINE,
        "kernel": kernel,
        **{f"software.package.{name}": version for name, version in versions.items()},
        "hostname_sha256": hostname_sha256,
        **device_facts(list(accelerators)),
        **(facts or {}),
    }
    hardware = hardware_sha256 or hashlib.sha256(cpu_model.encode(errors="replace")).hexdigest()
    made = Identity(facts=known, hardware_sha256=hardware)
    return msgspec.structs.replace(made, sha256=hashlib.sha256(canonical_json(made)).hexdigest())


def changed(known: AnyFacts, facts: Mapping[str, FactValue | None], **fields: object) -> AnyFacts:
    """An identity or a state with other facts, and other fields."""
    return msgspec.structs.replace(known, facts=known.facts | facts, **fields)


def certificate() -> Certificate:
    """Of a plain clock."""
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


def raw_steps(built: Profile) -> dict[str, NDArray[np.int64]]:
    """As many steps as each launch says that it has, no two of a launch alike."""
    launches = [launch for result in built.cells for launch in result.launches]
    return {launch_id(launch): np.arange(1, 1 + steps_of(launch)) for launch in launches}


def write(path: Path, built: Profile) -> Path:
    """Write it with its digest, without a sidecar; the path."""
    plain = msgspec.to_builtins(built)
    built.digest = plain["digest"] = profile_digest(plain)
    path.write_bytes(canonical_json(plain) + b"\n")
    return path


def shown(row):
    """The metrics of a row as attributes, as JSON has them."""
    from kit.report.records import numbers

    return SimpleNamespace(**numbers(row))


def at_times(run, *times):
    """The run at another time."""
    from kit.compare.runs import RunTimes

    moved = copy(run)
    moved.times = RunTimes(*times)
    moved.samples = {key: replace(sample, run=moved) for key, sample in run.samples.items()}
    return moved
