"""Writes the profiles of the golden cases into a folder: made with planted truths, and those of profiles/."""

from __future__ import annotations

import csv
import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import profile_builder as b
from msgspec.structs import replace

from kit.environment import NO_ALL_REDUCE
from kit.profile.cell import Variant
from kit.profile.identity import Accelerator, AcceleratorState
from kit.profile.launch import Failure, Fit, Parity, Phase, Threads
from kit.profile.program import ProgramSource
from kit.profile.reason import reason
from kit.profile.schema import Profile, Skipped, StateSpan
from kit.profile.sensor import SensorReport

PROFILES = Path(__file__).parents[2] / "profiles"
BUS = "0000:65:00.0"
DEAD = dict.fromkeys(range(8), reason("out_of_memory", signal="SIGKILL"))
STEADY = {"sd": 0.002, "noise": 0.002}
FAULTS = {"process.minor_faults": 87_341.0, "process.user_ns": 50e6, "process.system_ns": 50e6}
MODES = {"slow": 1.9, "slow_rounds": (1, 4, 6)}
# A long block of 10 s with 10,000 samples.
BLOCK = {"window_ns": 10 * b.S, "block_ns": 10 * b.S, "error_share": 0.01, "steps": 100, "updates": 400}
BLOCK |= {"tier": "device_counter", "begin_ns": 5 * b.S}
IDLE = {"idle_before_w": 20.0, "idle_after_w": 22.0, "idle_error_share": 0.05}
# A meter of the wall, UTC: what each member draws in its blocks, and when the first of them begins.
METER_BEGIN, METER_S, METER_BLOCK_S = datetime(2026, 3, 29, 0, 30, tzinfo=UTC), 1000, 60
METERED = {"torch": (300.0, 100), "jax": (180.0, 400)}


def make_profiles(parent: Path) -> Path:
    """Write all profiles; return their folder, in which `reference` and `published` are links to this repository's."""
    folder = parent / "profiles"
    folder.mkdir()
    for name in ("reference", "published"):
        (folder / name).symlink_to(PROFILES / name)
    for name in ("empty", "fleet", "fleet2", "bad", "twice"):
        (folder / name).mkdir()
    for name, built in (
        _of_one_run()
        | _before_and_after()
        | _blocked()
        | _platforms()
        | _joules()
        | _disturbed()
        | _audited()
        | _nodes()
    ).items():
        b.write(folder / f"{name}.json", built)
    _write_meter(folder / "meter.csv")
    _write_bad(folder / "bad", (folder / "session0.json").read_bytes())
    (folder / "twice/session0.json").write_bytes((folder / "session1.json").read_bytes())
    (folder / "fleet/torn.json").write_bytes((folder / "session0.json").read_bytes()[:-300])
    return folder


def _of_one_run() -> dict[str, Profile]:
    """Return profiles whose own cells are compared."""
    backends = {"tensorflow": 4.0, "torch": 5.0, "jax": 2.0}
    losses = Parity(losses=[9.0 / (1 + step) for step in range(20)], weights_sha256="a" * 64, batches_sha256="b" * 64)
    failing = b.group(
        "cnn train",
        b.member("tensorflow", 53.0, "cnn"),
        b.member("torch", 89.2, "cnn", failed_rounds=DEAD),
        b.member("jax", 278.0, "cnn", counters=FAULTS, launch={"parity": losses}),
    )
    odd = [
        b.member("program", ms, workload, precision="own", feed="own", compile_mode="own")
        for workload, ms in (("=cmd|a*b_c", 2.0), ("x" * 70 + "<&>", 3.0), ("Größe 批\u202e", 4.0))
    ]
    programs = [b.member("program", ms, name, precision="own", feed="own", compile_mode="own")
                for name, ms in (("mine", 2.0), ("yours", 3.0))]  # fmt: skip
    first = [b.member("torch", ms, batch=2**number) for number, ms in enumerate((1.0, 1.2, 1.6, 3.1))]
    slower = [b.member("torch", 1.4 * ms, batch=batch) for batch, ms in ((1, 1.0), (16, 7.0), (32, 14.4))]
    sensed = {"sensors": b.sampled(oddity=(2.0, 3.0, "W")), "kernels": ["a::fused_layer"], "peak_memory_b": None}
    devices = [
        b.member(backend, ms / speed, device=device, **STEADY)
        for backend, ms in backends.items()
        for device, speed in (("cpu", 1.0), ("gpu", 20.0))
    ]
    variants = [Variant(name="default"), Variant(name="apart", env={NO_ALL_REDUCE: "1"})]
    scaling = [
        b.member("torch", ms, batch=batch, devices=count, device="gpu", variant=variant)
        for ms, batch, count, variant in (
            (8.0, 64, 1, "default"), (5.0, 64, 2, "default"), (10.0, 128, 2, "default"), (4.0, 64, 2, "apart"),
        )
    ]  # fmt: skip
    sources = {name: ProgramSource(path=f"/{name}.py", function="program", takes_task=False, sha256="a" * 64)
               for name in ("mine", "yours")}  # fmt: skip
    program = b.profile(b.group("train", *programs), compare=["workload"], rounds=4)
    program.suite = replace(program.suite, programs=sources)
    old = [b.member("jax", ms, variant=name, launch={"backend_version": version})
           for name, ms, version in (("old", 2.0, "1"), ("new", 2.4, "2"))]  # fmt: skip
    return {
        "six": b.profile(label="Tuesday"),
        "cells": b.profile(b.group("mlp train", *(b.member(*of) for of in backends.items())), failing),
        "few": b.profile(rounds=3, cycles=4, data="synthetic", interrupted=True, label="*Tuesday* `x`"),
        "odd": b.profile(b.group("train", *odd), compare=["workload"], rounds=4, cycles=4, label="\x1b[2J=1+1"),
        "program": program,
        "bimodal": b.profile(
            b.group("cnn train", b.member("tensorflow", 40.0, "cnn"), b.member("torch", 20.0, "cnn", **MODES)),
            b.group("mlp train", b.member("torch", 2.0, stall=0.4), b.member("jax", 3.0, trend=-0.2)),
        ),
        "sweep": b.profile(b.group("k", *first), b.group("k#2", *slower), compare=["batch"], drift=0.02),
        "single": b.profile(
            b.group("mlp train", b.member("torch", 2.0, launch=sensed, failed_rounds={1: DEAD[1]})),
            b.group("mlp infer", b.member("torch", 1.0, task="infer", launch={"parity": None, "threads": None})),
            rounds=2, cycles=2,
        ),
        "whole": b.profile(b.group("g", b.member("torch", 2.0), b.member("jax", 4.0)), turns="whole"),
        "devices": b.profile(b.group("mlp train", *devices), compare=["backend", "device"], rounds=4),
        "scaling": b.profile(b.group("g", *scaling), variants=variants, compare=["devices", "batch", "variant"]),
        "compiled": b.profile(
            b.group("g", _compiling(10**8, 4.0, "eager"), _compiling(2_100_000_000, 3.0, "compile")),
            b.group("h", _compiling(10**8, 40.0, "eager", "cnn"), _compiling(9_000_000_000, 43.0, "compile", "cnn")),
            compare=["compile_mode"], drift=0.02,
        ),
        "fits": b.profile(
            b.group("g", *(_fitting(backend, scores) for backend, scores in (
                ("tensorflow", [0.9, 0.91, 0.895]), ("torch", [0.901, 0.909, 0.895]), ("jax", [0.8, 0.811, 0.79]),
            ))), b.group("p", _fitting("torch", None, "cnn")), rounds=3,
        ),
        "versions": b.profile(b.group("g", *old), compare=["variant"], rounds=4),
        "ceilings": b.profile(*_operations(), rounds=3, cycles=3, suite="ceilings"),
        "shares": b.profile(
            b.group("mlp infer", *(b.member(name, 2.0, task="infer") for name in ("torch", "jax"))),
            b.group("mlp train", b.member("torch", 0.2)), *_operations(), rounds=3, cycles=3,
        ),
    }  # fmt: skip


def _compiling(compile_ns: int, step_ms: float, mode: str, workload: str = "mlp") -> b.Member:
    phases = [Phase(name="compile", begin_ns=0, duration_ns=compile_ns)]
    return b.member("torch", step_ms, workload, compile_mode=mode, launch={"phases": phases})


def _fitting(backend: str, accuracies: list[float] | None, workload: str = "mlp") -> b.Member:
    """Return a member that fits; without accuracies a part of a fit."""

    def change(launch):
        fields = {"epochs": 1, "updates": 9, "reference_ns": [2e6] * 13, "test_ns": 10**8}
        if accuracies is None:
            launch.fit = Fit(**fields, epoch_updates=90, reason=reason("part_of_a_fit"))
        else:
            right = round(1000 * accuracies[launch.round])
            launch.fit = Fit(**fields, confusion=[[right, 1000 - right], [50, 950]])

    return b.member(backend, 2.0, workload, "fit", feed="host", launch={"turns": "whole"}, change=change)


def _operations() -> list[b.GroupPlan]:
    planted = [("matmul", 10.0, {"n": 1000}), ("triad", 1.2582912, {"mib": 16}), ("triad", 80.530637, {"mib": 256})]
    planted += [("empty", 0.1, {}), ("copy_in", 6.7108864, {})]
    return [
        b.group(f"{name} {parameters}", *(
            b.member(backend, ms, name, task="infer", batch=1, parameters=parameters) for backend in ("torch", "jax")
        ))
        for name, ms, parameters in planted
    ]  # fmt: skip


def _run(name: str, ms: float, seed: int, created: str, **more) -> Profile:
    """Return one short run of one cell."""
    member = b.member("torch", ms, **STEADY | more.pop("member", {}))
    fields = {"rounds": 3, "cycles": 3, "drift": 0.0, "seed": seed, "id": name, "created": created}
    built = b.profile(b.group("mlp train", member), **fields | more)
    # Five minutes later.
    after = replace(built.state.before, taken=(datetime.fromisoformat(created) + timedelta(minutes=5)).isoformat())
    built.state = StateSpan(before=replace(built.state.before, taken=created), after=after)
    return built


def _before_and_after() -> dict[str, Profile]:
    """Return runs that alternate (before, same, slow), and those of single days (session, later)."""
    made = {}
    for side, (name, ms) in enumerate((("before", 2.0), ("same", 2.0), ("slow", 3.0))):
        for number in range(3):
            created = f"2026-11-26T1{number}:{10 * side:02}:00+00:00"
            made[f"{name}{number}"] = _run(f"{name}{number}", ms, 10 * side + number, created)
    kernel = {"identity": b.identity(kernel="6.6.0", packages={"torch": "2.1", "jax": "0.10", "tensorflow": "2.21"})}
    for side, (name, ms, more) in enumerate((("session", 2.0, {}), ("later", 2.3, kernel))):
        for day in range(3):
            label = "" if name == "session" else "after"
            created = f"2026-10-{10 * side + day + 1:02}T10:00:00+00:00"
            built = _run(f"{name}{day}", ms * (1 + 0.01 * day), 40 + 10 * side + day, created, label=label, **more)
            made[f"{name}{day}"] = built
    both = b.group("mlp train", b.member("torch", 2.0, **STEADY), b.member("jax", 1.0, **STEADY))
    made["both"] = b.profile(both, rounds=3, cycles=3, id="both", created="2026-11-26T18:00:00+00:00", suite="own")
    return made


def _blocked() -> dict[str, Profile]:
    """Return runs that must not be compared with `session0`, or have no cell of it."""
    created = "2026-10-02T10:00:00+00:00"
    parity = Parity(losses=[1.0] * 20, weights_sha256="a" * 64, batches_sha256="b" * 64)
    launches = {
        "data": {"data": b.DataUsed(name="mnist", sha256="f" * 64, pool_batches=16)},
        "threads": {"threads": Threads(requested=1, reported=1, reason=None, cpus=[0])},
        "arithmetic": {"parity": parity},
    }
    made = {f"other-{name}": _run(name, 2.5, 7, created, member={"launch": of}) for name, of in launches.items()}
    made["other-batch"] = _run("batch", 2.5, 7, created, member={"batch": 64, "precision": "bfloat16"})
    made["other-net"] = b.profile(b.group("g", b.member("jax", 2.0, "cnn")), rounds=2, id="net")
    return made


def _machine(model: str | None = None, kind: str = "gpu") -> object:
    boards = [
        Accelerator(kind=kind, model=model, memory_b=80 << 30, driver="1", uuid_sha256=place, device_id=place)
        for place in (BUS, "0000:af:00.0")
    ]
    return b.identity(accelerators=boards if model else [], hardware_sha256=f"{model}")


def _platforms() -> dict[str, Profile]:
    """Return the same cells on a CPU, a GPU and a TPU."""

    def platform(name, device, speed, identity, backends, *, day=1, change=None):
        steps_ms = {"tensorflow": 3.0, "torch": 2.0, "jax": 1.0}
        members = [b.member(of, steps_ms[of] / speed, device=device, change=change, sd=0.003) for of in backends]
        built = b.profile(b.group(f"mlp/*/{device}/train", *members), id=name, identity=identity, rounds=4)
        built.created = f"2026-11-0{day}T00:00:00+00:00"
        return built

    def board_joules(launch):
        launch.device_ids = [BUS]
        launch.energy = b.energy(900.0, sensor="nvml.0.energy", **BLOCK | IDLE)

    def package_joules(launch):
        launch.energy = b.energy(400.0, **BLOCK | IDLE)

    gpu, every = _machine("NVIDIA H100 80GB HBM3"), ("tensorflow", "torch", "jax")
    far = platform("far", "tpu", 20.0, _machine("TPU v5e", "tpu"), ("torch", "jax"))
    far.suite.skipped.append(Skipped(backend="tensorflow", reason=reason("not_installed", backend="tensorflow")))
    failing = platform("failing", "gpu", 60.0, _machine("NVIDIA A100"), every)
    for launch in failing.cells[0].launches:
        launch.failure = Failure(phase="build", reason=reason("exception", type="Error", message="no kernel"))
    made = {"far": far, "failing": failing}
    for day in (1, 2, 3):
        made[f"there{day}"] = platform(f"there{day}", "gpu", 30 + day, gpu, every, day=day, change=board_joules)
        pace = 1 + day / 100
        made[f"here{day}"] = platform(f"here{day}", "cpu", pace, _machine(), every, day=day, change=package_joules)
    return made


def _drawing(power_w: float, device: str = "cpu", *, rounds=range(8), **more):
    def change(launch):
        sensor = "nvml.0.energy" if device == "gpu" else "rapl.package-0"
        # Rounds differ, and those of two members not alike: the spread of their ratio is no rounding error.
        drawn_j = 10 * power_w * (1 + 0.002 * (launch.round * round(power_w) % 7))
        launch.energy = b.energy(drawn_j, sensor=sensor, **BLOCK | IDLE | more) if launch.round in rounds else []

    return change


def _joules() -> dict[str, Profile]:
    """Return profiles with energy: with intervals, of one round, of unlike tiers, refused, by a meter."""

    def of_compiling(launch):
        launch.energy = b.energy(600.0, **BLOCK | {"of": "fit"})
        launch.energy += b.energy(75.0, samples=0, **BLOCK | {"of": "compile", "window_ns": b.S, "block_ns": b.S})
        launch.fit = Fit(epochs=3, updates=90, epoch_updates=50, reference_ns=[], test_ns=None)

    def refused(launch):
        launch.energy = b.energy(None, reason=reason("counter_stuck", block_s=12.0))

    def both(backend, other, **more):
        plans = (("torch", 4.0, backend), ("jax", 2.0, other))
        return b.profile(b.group("mlp train", *(b.member(name, ms, change=of) for name, ms, of in plans)), **more)

    modelled = _drawing(45.0, tier="modelled")
    long = b.member("torch", 2.0, device="gpu", sd=0, noise=0, change=_drawing(300.0, "gpu", steps=4762))
    return {
        "joules": both(_drawing(90.0), _drawing(50.0)),
        "joules-one-round": both(_drawing(90.0, rounds=[7]), _drawing(45.0, rounds=[7])),
        "joules-tiers": both(_drawing(90.0), modelled),
        "joules-refused": both(refused, refused, rounds=4),
        "joules-fit": b.profile(b.group("g", b.member("torch", 4.0, task="fit", feed="host", change=of_compiling))),
        "joules-long": b.profile(b.group("g", long), drift=0.0),
        "metered": _metered(),
    }


def _metered() -> Profile:
    def with_block(first_s):
        def change(launch):
            begin_ns = round((500 + first_s + 100 * launch.round) * b.S)
            block = {"window_ns": None, "samples": 6000, "block_ns": METER_BLOCK_S * b.S, "begin_ns": begin_ns}
            launch.energy = b.energy(None, steps=60, reason=reason("counter_stuck", block_s=60.0), **block)
            launch.blocks.begin_ns = [begin_ns + number * b.S for number in range(len(launch.blocks.begin_ns))]

        return change

    members = [b.member(name, 2.0, change=with_block(first_s)) for name, (_, first_s) in METERED.items()]
    built = b.profile(b.group("mlp train", *members), rounds=3, cycles=6)
    ends = [
        replace(
            built.state.before, raw_ns=(500 + second) * b.S, raw_width_ns=200,
            taken=(METER_BEGIN + timedelta(seconds=second)).isoformat(timespec="microseconds"),
        )
        for second in (0, METER_S)
    ]  # fmt: skip
    built.state = StateSpan(before=ends[0], after=ends[1])
    return built


def _write_meter(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "W"])
        for second in range(-10, METER_S + 10):
            watts = 100.0
            for power_w, first_s in METERED.values():
                if any(0 <= second - first_s - 100 * number < METER_BLOCK_S for number in range(3)):
                    watts = round(power_w * (1 + 0.002 * math.sin(40 * second)), 3)
            rows.writerow([(METER_BEGIN + timedelta(seconds=second)).isoformat(), watts])


def _disturbed() -> dict[str, Profile]:
    """Return runs beside other programs: in some cycles, in all, and against a quiet run."""

    def always(launch):
        share = (0.6, 0.3, 0.5, 0.45)[launch.round]
        b.beside_others(share, slow=1 / (1 - share))(launch)

    some = b.beside_others(0.5, lambda number: [(number + step) % 12 for step in range(5)], slow=10.0)
    quiet = b.beside_others(0.5, lambda number: [(number + step) % 12 for step in range(5)])
    return {
        "disturbed": b.profile(b.group("g", b.member("jax", 2.0, change=quiet), b.member("torch", 3.0, change=some))),
        "contended": b.profile(
            b.group("g", b.member("torch", 2.0, change=always), b.member("jax", 9.0, change=always)), rounds=4
        ),
        "contended-run": b.profile(b.group("g", b.member("torch", 2.0, change=always)), rounds=4, id="contended"),
        "quiet-run": b.profile(b.group("g", b.member("torch", 2.0, change=b.beside_others(0))), rounds=4, id="quiet"),
    }


def _audited() -> dict[str, Profile]:
    """Return profiles in which the audit has something to find."""
    bad = b.sampled(**{
        "nvml.0.utilization": (100.0, 100.0, "%"), "nvml.0.tensor_activity": (0.0, 0.0, "%"),
        "nvml.0.fp32_activity": (0.5, 0.5, "%"), "nvml.0.dram_activity": (0.1, 0.1, "%"),
        "nvml.0.sm_activity": (100.0, 100.0, "%"), "nvml.0.power": (390.0, 395.0, "W"),
        "nvml.0.frequency": (1390.0, 1400.0, "MHz"), "nvml.0.throttled": (60.0, 60.0, "%"),
        "nvml.0.throttled.software_power_cap": (60.0, 60.0, "%"), "nvml.0.thermal_violation": (10.0, 10.0, "%"),
        "nvml.0.throttled.hardware_slowdown": (30.0, 30.0, "%"),
    })  # fmt: skip
    reports = [
        SensorReport(name=name, quantity="power", unit="W", scope="GPU 0 board", source="NVML", status="measured",
                     sampled=True, device_id=BUS)
        for name in bad
    ]  # fmt: skip
    board = AcceleratorState(
        **dict.fromkeys(AcceleratorState.__struct_fields__[1:6]) | {"name": "gpu 0", "device_id": BUS},
        clock_max_mhz=1980.0, pcie_width=8, pcie_width_max=16, ecc_uncorrected=3, remapped_rows=2, remap_failed=True,
        mig=False, remap_pending=False,
    )  # fmt: skip
    board = replace(board, power_cap_w=400.0, power_cap_default_w=700.0)
    marks = [reason("board_shared", processes=2), reason("board_throttled", share_pct=80.0, causes="heat")]
    still = _drawing(300.0, "gpu", warming_c_per_s=0.25, idle_after_w=250.0, updates=62, device_id=BUS)
    throttled = {"sensors": bad, "device_ids": [BUS], "marks": marks}
    gpu = b.profile(
        b.group("mlp train", b.member("torch", device="gpu", launch=throttled, change=still),
                b.member("jax", 3.0, device="gpu", launch={"sensors": {}, "device_ids": [BUS]})),
        rounds=4, sensors=reports, identity=_machine("NVIDIA H100 80GB HBM3"),
    )  # fmt: skip
    gpu.state = StateSpan(before=replace(gpu.state.before, accelerators=[board]), after=None)
    other = replace(gpu, id="capped", state=StateSpan(
        before=replace(gpu.state.before, accelerators=[replace(board, power_cap_w=300.0)]), after=None))  # fmt: skip

    counters = {
        "machine.swapped_in_b": 1 << 14, "machine.swapped_out_b": 1 << 14, "process.major_faults": 4,
        "pressure.memory_some_ns": 0.2e6, "pressure.memory_full_ns": 0.1e6, "pressure.cpu_some_ns": 1.6e6,
        "cgroup.throttled_ns": 1e6,
    }  # fmt: skip
    omp = {"environment": {"OMP_NUM_THREADS": "1"}, "threads": Threads(
        requested=2, reported=1, reason=None, cpus=[0, 1], used=1)}  # fmt: skip
    free = {"environment": {"A_MALLOC": "1"}, "threads": Threads(
        requested=2, reported=2, reason=None, cpus=[0, 1], used=5)}  # fmt: skip
    members = [b.member("torch", 2.0, counters=counters, launch=omp, variant="omp1"),
               b.member("jax", 2.0, counters=counters, launch=free, variant="omp1", stall=0.3)]  # fmt: skip
    host = b.profile(
        b.group("mlp train", *members), rounds=4, variants=[Variant(name="omp1", env={"OMP_NUM_THREADS": "1"})]
    )
    cpu = replace(host.identity.cpu, siblings=[[0, 1]], nodes=[[0, 1], [2, 3]])
    host.identity = replace(host.identity, cpu=cpu, container=replace(host.identity.container, cpu_limit=1.5))
    known = {"core_throttled": 5, "package_throttled": 5, "numa_misses": 5, "clock_synchronized": False}
    later = known | {"core_throttled": 9, "numa_misses": 20_005}
    host.state = StateSpan(before=replace(host.state.before, **known), after=replace(host.state.before, **later))

    record = b.profile(b.group("mlp train", *(b.member(of) for of in ("tensorflow", "torch", "jax"))), rounds=4)
    first, second, third = (result.launches for result in record.cells)
    first[1].failure = Failure(phase="steady", reason=reason("output_not_finite"))
    for launch in second:
        launch.failure = Failure(phase="build", reason=reason("out_of_device_memory", type="E", message="m"))
        launch.recompiles = b.Compilations(count=2, graph_breaks=3)
    third[0].parity = replace(third[0].parity, losses=[2.31 / (1 + step) for step in range(20)])
    third[0].marks.append(reason("sampler_failed", exit_code=-9, error=""))
    third[1].recompiles = b.Compilations(count=2, graph_breaks=3)
    bare = b.profile(b.group("mlp train", b.member("torch", change=lambda launch: launch.blocks.counters.clear())))
    return {"gpu-bad": gpu, "gpu-capped": other, "host-bad": host, "record-bad": record, "bare": bare}


def _nodes() -> dict[str, Profile]:
    """Return nodes of a fleet: alike ones, a slow one in two profiles, one whose cell failed; in `fleet2` a suspect."""

    def node(number, slow=1.0, run=0, *, kernel="6.1.0", failed=None, throttled=0.0):
        counters = {"cgroup.throttled_ns": 4e6 * throttled}
        groups = [
            b.group(f"{net} train", b.member("torch", ms * slow, net, sd=0.005, noise=0.005, counters=counters, **more))
            for net, ms, more in (("mlp", 2.0, {}), ("cnn", 30.0, {"failed_rounds": failed or {}}))
        ]
        fields = {"rounds": 4, "cycles": 4, "drift": 0.005, "seed": 100 * number + run, "id": f"{number}/{run}"}
        identity = b.identity(kernel=kernel, hostname_sha256=f"{number:064}")
        created = f"2026-11-{run + 1:02}T00:00:00+00:00"
        return b.profile(*groups, identity=identity, label=f"n{number}", created=created, **fields)

    alike = {f"n{number}": node(number) for number in range(1, 8)}
    slow = {f"n0{again}": node(0, 1.3, run, kernel="6.9.9", throttled=0.4) for run, again in enumerate(("", "+again"))}
    made = {f"fleet/{name}": built for name, built in (alike | slow | {"n9": node(9, failed=DEAD)}).items()}
    return made | {f"fleet2/{name}": built for name, built in (alike | {"n0": slow["n0"]}).items()}


def _write_bad(folder: Path, data: bytes) -> None:
    """Write what is no profile, beside the reason why."""
    schema = json.loads(data)["schema"]
    name, _, version = schema.partition("/")
    major = int(version.partition(".")[0])
    texts = {
        "truncated": data[:-400],
        "damaged": data.replace(b'"median_ns":[', b'"median_ns":["x",', 1),
        "edited": data.replace(b'"round":0', b'"round":9', 1),
        "newer": data.replace(schema.encode(), f"{name}/{major + 1}.0".encode()),
        "older": data.replace(schema.encode(), f"{name}/{major - 1}.3".encode()),
        "other": b'{"schema": "pyperf/1.0"}\n',
        "words": b"step_ns,batch\n1,2\n",
    }
    for file, text in texts.items():
        (folder / f"{file}.json").write_bytes(text)
