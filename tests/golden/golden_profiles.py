"""Writes the profiles of the golden cases: made with planted truths, and links to those of profiles/."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import profile_builder as b
from metered import meter_lines, metered_run
from msgspec.structs import replace
from profile_builder import energy, group, identity, member, profile

from kit.environment import NO_ALL_REDUCE
from kit.profile.cell import Variant
from kit.profile.facts import Accelerator, device_facts
from kit.profile.fields import reason
from kit.profile.instruments import SensorReport
from kit.profile.program_source import ProgramSource
from kit.profile.schema import Failure, Fit, Parity, Profile, Skipped, StateSpan, Threads
from kit.profile.store import write_profile

PROFILES = Path(__file__).parents[2] / "profiles"
BUS = "0000:65:00.0"
BACKENDS = {"tensorflow": 4.0, "torch": 5.0, "jax": 2.0}
OWN = {"precision": "own", "feed": "own", "compile_mode": "own"}
STEADY = {"sd": 0.002, "noise": 0.002}
FAULTS = {"process.minor_faults": 87_341.0, "process.user_ns": 50e6, "process.system_ns": 50e6}
LOSSES = Parity(losses=[9.0 / (1 + step) for step in range(20)], weights_sha256="a" * 64, batches_sha256="b" * 64)
CEILINGS = (b.PRODUCT, *b.TRIADS, b.EMPTY, b.COPY)
OTHER_DATA = b.DataUsed(name="mnist", sha256="f" * 64, pool_batches=16)
ONE_THREAD = Threads(requested=1, reported=1, reason=None, cpus=[0], used=1)
# A long block of 10 s with 10,000 samples.
BLOCK = {"window_ns": 10 * b.S, "block_ns": 10 * b.S, "error_fraction": 0.01, "steps": 100, "updates": 400}
BLOCK |= {"tier": "device_counter", "begin_ns": 5 * b.S}
BLOCK |= {"idle_before_w": 20.0, "idle_after_w": 22.0, "idle_error_fraction": 0.05}


def make_profiles(parent: Path) -> Path:
    """Write all profiles; return their folder, in which `reference` and `published` are links to this repository's."""
    folder = parent / "profiles"
    for name in ("empty", "fleet", "fleet2", "bad", "twice"):
        (folder / name).mkdir(parents=True)
    for name in ("reference", "published"):
        (folder / name).symlink_to(PROFILES / name)
    for made in (_cells, _kinds, _before_and_after, _blocked, _platforms, _joules, _disturbed, _audited, _nodes):
        for name, built in made().items():
            b.write(folder / f"{name}.json", built)
    _write_meters(folder)
    tiny = profile(group("g", member("torch", 50.0)), rounds=1, cycles=2)
    (launch,) = tiny.cells[0].launches
    launch.warmup_steps = 0
    write_profile(folder / "steps.json", tiny, {name: steps * b.MS for name, steps in b.raw_steps(tiny).items()})
    run = (folder / "session0.json").read_bytes()
    (folder / "twice/session0.json").write_bytes((folder / "session1.json").read_bytes())
    (folder / "fleet/torn.json").write_bytes(run[:-300])
    _write_bad(folder / "bad", run)
    return folder


def _cells() -> dict[str, Profile]:
    """Return profiles of frameworks: plain, failed, of few rounds, with odd names, with two modes, in a sweep."""
    failing = group(
        "cnn train",
        member("tensorflow", 53.0, "cnn"),
        member("torch", 89.2, "cnn", failed_rounds=b.DEAD),
        member("jax", 278.0, "cnn", counters=FAULTS, launch={"parity": LOSSES}),
    )
    names = ("=cmd|a*b_c", "x" * 70 + "<&>", "Größe 批\u202e")
    programs = profile(
        group("train", *(member("program", ms, name, **OWN) for name, ms in (("mine", 2.0), ("yours", 3.0)))),
        compare=["workload"],
        rounds=4,
    )
    source = ProgramSource(path="/mine.py", function="program", takes_task=False, sha256="a" * 64)
    programs.suite = replace(programs.suite, programs={"mine": source, "yours": source})
    sensed = {"sensors": b.sampled(oddity=(2.0, 3.0, "W")), "kernels": ["a::fused_layer"], "peak_memory_b": None}
    sweep = [member("torch", ms, batch=2**number) for number, ms in enumerate((1.0, 1.2, 1.6, 3.1))]
    later = [member("torch", 1.4 * ms, batch=batch) for batch, ms in ((1, 1.0), (16, 7.0), (32, 14.4))]
    return {
        "six": profile(label="Tuesday"),
        "cells": profile(group("mlp train", *(member(*item) for item in BACKENDS.items())), failing),
        "few": profile(rounds=3, cycles=4, data="synthetic", interrupted=True, label="*Tuesday* `x`"),
        "odd": profile(
            group("train", *(member("program", 2.0 + index, name, **OWN) for index, name in enumerate(names))),
            compare=["workload"],
            rounds=4,
            label="\x1b[2J=1+1",
        ),
        "program": programs,
        "bimodal": profile(
            group("cnn train", member("tensorflow", 40.0), member("torch", 20.0, slow=1.9, slow_rounds=(1, 4, 6))),
            group("mlp train", member("torch", 2.0, "rnn", stall=0.4), member("jax", 3.0, "rnn", trend=-0.2)),
        ),
        "sweep": profile(group("k", *sweep), group("k#2", *later), compare=["batch"], drift=0.02),
        "single": profile(
            group(
                "mlp train",
                member("torch", 2.0, launch=sensed, failed_rounds={1: reason("warp_core", needed_b=1 << 30)}),
            ),
            group("mlp infer", member("torch", 1.0, task="infer", launch={"parity": None, "threads": None})),
            rounds=2,
            cycles=2,
        ),
        "whole": profile(group("g", member("torch", 2.0), member("jax", 4.0)), turns="sequential"),
        # With this seed an interval leaves out 1, and its adjusted p is above 0.05.
        "close": profile(
            group("g", member("tensorflow", 4.0), member("torch", 4.12, sd=0.03), member("jax", 4.0, sd=0.05)), seed=5
        ),
        "none": profile(cells=[], groups=[], rounds=1),
    }


def _kinds() -> dict[str, Profile]:
    """Return profiles of what suites compare besides frameworks: devices, scaling, modes, variants, fits, ceilings."""
    apart = Variant(name="apart", env={NO_ALL_REDUCE: "1"})
    scaled = ((8.0, 64, 1, "default"), (5.0, 64, 2, "default"), (10.0, 128, 2, "default"), (4.0, 64, 2, "apart"))
    versions = [
        member("jax", ms, variant=name, launch={"backend_version": version})
        for name, ms, version in (("old", 2.0, "1"), ("new", 2.4, "2"))
    ]
    images = [Variant(name=name, image=f"kit:{name}", image_digest=f"sha256:{'a' * 64}") for name in ("old", "new")]
    delays = [
        member("jax", 2.0 + delay_ms, variant=f"delay{delay_ms}", counters={"injected_ns": delay_ms * b.MS}, **STEADY)
        for delay_ms in (0.01, 0.1, 0.4)
    ]
    # In seconds and milliseconds: pays, never pays, is not resolved, pays and is the baseline.
    modes = [((0.1, 4.0), (2.1, 3.0)), ((0.1, 4.0), (9.0, 4.3)), ((0.1, 4.0), (9.0, 3.99)), ((2.1, 3.0), (0.1, 4.0))]
    compiled = [
        group(f"{index}", *(
            member("torch", ms, f"net{index}", compile_mode=mode, launch=b.compiling(compile_s))
            for mode, (compile_s, ms) in zip(("eager", "compile"), pair, strict=True)
        ))
        for index, pair in enumerate(modes)
    ]  # fmt: skip
    scores = {"tensorflow": [0.9, 0.91, 0.895], "torch": [0.901, 0.909, 0.895], "jax": [0.8, 0.811, 0.79]}
    mean_squared_errors = {"torch": [0.021, 0.022, 0.0205], "jax": [0.0212, 0.0221, 0.0206]}
    fits = [_fitting(name, accuracies) for name, accuracies in scores.items()]
    gpu_fits = [_fitting("torch", scores["torch"], device="gpu"), _fitting("jax", None, device="gpu")]
    short = member("torch", 0.01, task="infer", batch=1, launch={"certificate": b.certificate()})
    networks = group("mlp infer", *(member(name, 2.0, task="infer") for name in ("torch", "jax")))
    return {
        "devices": profile(
            group("mlp train", *(
                member(backend, ms / speed, device=device, **STEADY)
                for backend, ms in BACKENDS.items() for device, speed in (("cpu", 1.0), ("gpu", 20.0))
            )),
            compare=["backend", "device"], rounds=4,
        ),
        **{
            f"scaling-{device}": profile(
                group("g", *(
                    member("torch", ms, batch=batch, devices=count, device=device, variant=variant)
                    for ms, batch, count, variant in scaled
                )),
                variants=[Variant(name="default"), apart], compare=["devices", "batch", "variant"],
            )
            for device in ("cpu", "gpu")
        },
        "versions": profile(group("g", *versions), compare=["variant"], rounds=4, variants=images),
        "injected": profile(group("g", member("jax", 2.0, **STEADY), *delays), compare=["variant"], suite="selftest"),
        "compiled": profile(*compiled, compare=["compile_mode"], drift=0.02),
        "fits": profile(group("g", *fits), group("p", _fitting("torch", None, workload="cnn")), group("q", *(
            _fitting(backend, errors, workload="autoencoder") for backend, errors in mean_squared_errors.items()
        )), rounds=3),
        "fits-gpu": profile(group("g", *gpu_fits), rounds=3, data="synthetic", id="fits-gpu"),
        "ceilings": profile(*b.operations(*CEILINGS), rounds=3, cycles=3, suite="ceilings"),
        "shares": profile(
            networks, group("mlp train", member("torch", 0.2)), group("short", short), *b.operations(*CEILINGS),
            rounds=3, cycles=3,
        ),
    }  # fmt: skip


def _fitting(backend: str, accuracies: list[float] | None, **more) -> b.Member:
    """Return a member that fits, of an autoencoder with errors; without accuracies a part of a fit."""

    def change(launch):
        fields = {"epochs": 1, "updates": 9, "reference_ns": [2e6] * 13, "test_ns": 10**8}
        if accuracies is None:
            launch.fit = Fit(**fields, epoch_updates=90, reason=reason("part_of_a_fit"))
        elif more.get("workload") == "autoencoder":
            launch.fit = Fit(**fields, mean_squared_error=accuracies[launch.round])
        else:
            right = round(1000 * accuracies[launch.round])
            launch.fit = Fit(**fields, confusion=[[right, 1000 - right], [50, 950]])

    return member(backend, 2.0, task="fit", feed="host", launch={"turns": "sequential"}, change=change, **more)


def _run(name: str, ms: float, seed: int, created: str, *, member_fields=None, **more) -> Profile:
    """Return a run of five minutes of one cell."""
    fields = {"rounds": 3, "cycles": 3, "drift": 0.0, "seed": seed, "id": name, "created": created} | more
    built = profile(group("mlp train", member("torch", ms, **STEADY | (member_fields or {}))), **fields)
    end = (datetime.fromisoformat(created) + timedelta(minutes=5)).isoformat()
    before = built.state.before
    built.state = StateSpan(before=replace(before, taken=created), after=replace(before, taken=end))
    return built


def _before_and_after() -> dict[str, Profile]:
    """Return runs that alternate (before, same, slow), those of single days (session, later), and odd ones."""
    made = {}
    for side, (name, ms) in enumerate((("before", 2.0), ("same", 2.0), ("slow", 3.0))):
        for number in range(3):
            created = f"2026-11-26T1{number}:{10 * side:02}:00+00:00"
            made[f"{name}{number}"] = _run(f"{name}{number}", ms, 10 * side + number, created)
    updated = identity(kernel="6.6.0", packages={"torch": "2.1", "jax": "0.10", "numpy": "2.0"})
    for name, ms, first_day, more in (("session", 2.0, 1, {}), ("later", 2.3, 11, {"identity": updated})):
        for day in range(3):
            created, label = f"2026-10-{first_day + day:02}T10:00:00+00:00", "after" if more else ""
            run = _run(f"{name}{day}", ms * (1 + 0.01 * day), first_day + day, created, label=label, **more)
            made[f"{name}{day}"] = run
    both = group("mlp train", member("torch", 2.0, **STEADY), member("jax", 1.0, **STEADY))
    made["both"] = profile(both, rounds=3, cycles=3, id="both", created="2026-11-26T18:00:00+00:00", suite="own")
    odd = (("overlap", "2026-11-26T10:02:00Z", "fma", 0), ("elsewhere", b.CREATED, "amx", 60))
    for name, created, flag, steal_s in odd:
        host = {"hostname_sha256": "e" * 64} if name == "elsewhere" else {}
        machine = identity(**host, facts={"cpu.flags": f"avx2 {flag}"})
        made[name] = _run(name, 2.1, 31 + steal_s, created, identity=machine)
        before, after = made[name].state.before, made[name].state.after
        made[name].state = StateSpan(
            before=b.changed(before, {"steal_ns": 0}), after=b.changed(after, {"steal_ns": steal_s * b.S})
        )
    return made


def _blocked() -> dict[str, Profile]:
    """Return runs that must not be compared with `session0`, or have no cell of it."""
    launches = {"data": {"data": OTHER_DATA}, "threads": {"threads": ONE_THREAD}, "losses": {"parity": LOSSES}}
    fields = {name: {"launch": launch} for name, launch in launches.items()}
    fields["batch"] = {"batch": 64, "precision": "bfloat16"}
    created = "2026-10-02T10:00:00+00:00"
    made = {f"other-{name}": _run(name, 2.5, 7, created, member_fields=changes) for name, changes in fields.items()}
    return made | {"other-net": profile(group("g", member("jax", 2.0, "cnn")), rounds=2, id="net")}


def _machine(model: str | None = None, kind: str = "gpu"):
    boards = [
        Accelerator(
            name=f"{kind} {index}", model=model or "", memory_b=80 << 30, driver="1", uuid_sha256=bus, device_id=bus
        )
        for index, bus in enumerate((BUS, "0000:af:00.0"))
    ]
    return identity(accelerators=boards if model else [], hardware_sha256=f"{model}")


def _platforms() -> dict[str, Profile]:
    """Return the same cells on a CPU (here), two GPUs (there, failing) and a TPU (far)."""

    def platform(name, device, speed, machine, backends=tuple(BACKENDS), **more):
        members = [member(backend, BACKENDS[backend] / speed, device=device, sd=0.003, **more) for backend in backends]
        built = profile(group(f"mlp/*/{device}/train", *members), id=name, identity=machine, rounds=4)
        known = {"gpu.0.device_id": BUS} if device == "gpu" else {}
        built.state = StateSpan(before=b.changed(built.state.before, known), after=None)
        built.created = f"2026-11-0{name[-1] if name[-1].isdigit() else 9}T00:00:00+00:00"
        return built

    def board_joules(launch):
        launch.device_ids = [BUS]
        # The board keeps its clock: steps of the long block are as long as the others.
        step_ns = sum(launch.blocks.duration_ns) / sum(launch.blocks.steps)
        launch.energy = energy(900.0, sensor="nvml.0.energy", **BLOCK | {"steps": round(10 * b.S / step_ns)})

    joules = {"launch": {"energy": energy(400.0, **BLOCK)}}
    gpu = _machine("NVIDIA H100 80GB HBM3")
    far = platform("far", "tpu", 20.0, _machine("TPU v5e", "tpu"), ("torch", "jax"))
    far.suite.skipped.append(Skipped(backend="tensorflow", reason=reason("not_installed", backend="tensorflow")))
    failing = platform("failing", "gpu", 60.0, _machine("NVIDIA A100"))
    for launch in failing.cells[0].launches:
        launch.failure = Failure(phase="build", reason=reason("exception", type="Error", message="no kernel"))
    made = {"far": far, "failing": failing}
    for day in (1, 2, 3):
        made[f"there{day}"] = platform(f"there{day}", "gpu", 30 + day, gpu, change=board_joules)
        made[f"here{day}"] = platform(f"here{day}", "cpu", 1 + day / 100, _machine(), **joules)
    return made


def _drawing(power_w: float, sensor: str = "rapl.package-0", *, rounds=range(8), **more):
    def change(launch):
        # Rounds differ, and those of two members not alike: the spread of their ratio is no rounding error.
        drawn_j = 10 * power_w * (1 + 0.002 * (launch.round * round(power_w) % 7))
        launch.energy = energy(drawn_j, sensor=sensor, **BLOCK | more) if launch.round in rounds else []

    return change


def _joules() -> dict[str, Profile]:
    """Return profiles with energy: with intervals, of one round, of unlike tiers, refused, of a fit, by a meter."""

    def of_fit(launch):
        launch.energy = energy(600.0, **BLOCK | {"kind": "fit"})
        launch.energy += energy(75.0, samples=0, **BLOCK | {"kind": "compile", "window_ns": b.S, "block_ns": b.S})
        launch.fit = Fit(epochs=3, updates=90, epoch_updates=50, reference_ns=[], test_ns=None)

    def with_package(launch):
        _drawing(300.0, "nvml.0.energy", steps=4762)(launch)
        launch.energy += energy(400.0, **BLOCK) + energy(9000.0, sensor="rapl.psys", **BLOCK)

    def on_board(change_pct, clock_mhz):
        """Return a change: on a board, a long block with steps that are longer by a percentage than 2 ms."""

        def change(launch):
            _drawing(300.0, "nvml.0.energy", steps=round(5000 / (1 + change_pct / 100)))(launch)
            launch.sensors = b.sampled(**{"nvml.0.frequency": (clock_mhz, 1980.0, "MHz")} if clock_mhz else {})

        return {"device": "gpu", "change": change, **STEADY}

    def both(torch, jax, **more):
        return profile(group("mlp train", member("torch", 4.0, **torch), member("jax", 2.0, **jax)), **more)

    refused = {"launch": {"energy": energy(None, reason=reason("counter_reset"))}}
    long = member("torch", 2.0, device="gpu", sd=0, noise=0, change=with_package)
    return {
        "joules": both({"change": _drawing(90.0)}, {"change": _drawing(50.0)}),
        "joules-one-round": both(*({"change": _drawing(watts, rounds=[7])} for watts in (90.0, 45.0))),
        "joules-tiers": both({"change": _drawing(90.0)}, {"change": _drawing(45.0, tier="modelled")}),
        "joules-refused": both(refused, refused, rounds=4),
        "joules-fit": profile(group("g", member("torch", 4.0, task="fit", feed="host", change=of_fit))),
        "joules-long": profile(group("g", long), drift=0.0),
        "throttled": profile(
            group(
                "mlp train",
                *(
                    member(name, 2.0, **on_board(*planted))
                    for name, planted in (("torch", (15, 1410.0)), ("jax", (1, 1980.0)), ("tensorflow", (0, None)))
                ),
            ),
            drift=0.0,
        ),
        "not-throttled": profile(group("mlp train", member("torch", 2.0, **on_board(1, 1980.0))), drift=0.0),
        "metered": metered_run(),
    }


def _write_meters(folder: Path) -> None:
    """Write watts, the same as joules that add up, and a file with an impossible reading."""
    bad = [*islice(meter_lines(), 5), "2026-03-29T00:31:00Z,-3"]
    files = {"meter": meter_lines(), "meter-joules": meter_lines("time,energy_j"), "meter-bad": bad}
    for name, lines in files.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _disturbed() -> dict[str, Profile]:
    """Return runs beside other programs, in some cycles and in all, and a quiet one."""

    def always(launch):
        share = (0.6, 0.3, 0.5, 0.45)[launch.round]
        b.beside_others(share, slow=1 / (1 - share))(launch)

    def some(slow):
        return b.beside_others(0.5, lambda number: [(number + step) % 12 for step in range(5)], slow=slow)

    return {
        "disturbed": profile(group("g", member("jax", 2.0, change=some(1)), member("torch", 3.0, change=some(10.0)))),
        "contended": profile(
            group("g", member("torch", 2.0, change=always), member("jax", 9.0, change=always)), rounds=4, id="contended"
        ),
        "quiet-run": profile(group("g", member("torch", 2.0, change=b.beside_others(0))), rounds=4, id="quiet"),
    }


def _audited() -> dict[str, Profile]:
    """Return profiles in which the audit finds much: of boards, of the host, of the record; and one of no counters."""
    percent = {
        "utilization": 100.0, "tensor_activity": 0.0, "fp32_activity": 0.5, "dram_activity": 0.1, "sm_activity": 100.0,
        "throttled": 60.0, "throttled.software_power_cap": 60.0, "throttled.hardware_slowdown": 30.0,
        "thermal_violation": 10.0,
    }  # fmt: skip
    gauges = {f"nvml.0.{name}": (value, value, "%") for name, value in percent.items()}
    gauges |= {"nvml.0.power": (390.0, 395.0, "W"), "nvml.0.frequency": (1390.0, 1400.0, "MHz")}
    idle = gauges | {"nvml.0.frequency": (1100.0, 1200.0, "MHz"), "nvml.0.utilization": (0.0, 0.0, "%")}
    about = {"scope": "GPU 0 board", "source": "NVML", "status": "measured", "sampled": True, "device_id": BUS}
    reports = [SensorReport(name=name, quantity="", unit=unit, **about) for name, (_, _, unit) in gauges.items()]
    notes = [reason("device_shared", processes=2), reason("device_throttled", share_pct=80.0, causes="heat")]
    device = {"device": "gpu", "precision": "default"}

    def warming(launch):
        _drawing(300.0, "nvml.0.energy", warming_c_per_s=0.25, idle_after_w=250.0, updates=62, device_id=BUS)(launch)
        power = BLOCK | {"tier": "integrated_power", "device_id": BUS}
        launch.energy += energy(3300.0, sensor="nvml.0.power", **power)

    def boards(cap_w):
        torch = {"sensors": b.sampled(**gauges), "notes": notes, "settings": {"float32_matmul_precision": "highest"}}
        jax = {"sensors": b.sampled(**idle), "settings": {"jax_default_matmul_precision": "None"}}
        members = [
            member("torch", launch=torch | {"device_ids": [BUS]}, change=warming, **device),
            member("jax", 3.0, launch=jax | {"device_ids": [BUS]}, **device),
        ]
        built = profile(
            group("g", *members), rounds=4, sensors=reports, identity=_machine("NVIDIA H100"), id=f"{cap_w}"
        )
        board = Accelerator(
            name="gpu 0", device_id=BUS, power_cap_w=cap_w, power_cap_default_w=700.0,
            temperature_c=50.0, clock_max_mhz=1980.0, pcie_width=8, pcie_width_max=16,
            ecc_uncorrected=3, remapped_rows=2, remap_failed=True, remap_pending=False, mig=True,
        )  # fmt: skip
        built.state = StateSpan(before=b.changed(built.state.before, device_facts([board])), after=None)
        return built

    counters = {
        "machine.swapped_in_b": 1 << 14, "machine.swapped_out_b": 1 << 14, "process.major_faults": 4,
        "pressure.memory_some_ns": 0.2e6, "pressure.memory_full_ns": 0.1e6, "pressure.cpu_some_ns": 1.6e6,
        "cgroup.throttled_ns": 1e6, "machine.busy_ns": 3.85e6, "machine.steal_ns": 0,
    }  # fmt: skip
    bound = {"environment": {"OMP_NUM_THREADS": "1"}, "threads": replace(ONE_THREAD, requested=2)}
    free = {"environment": {"A_MALLOC": "1"}, "threads": replace(ONE_THREAD, requested=2, reported=2, used=5)}
    parts = {"energy": energy(900.0, **BLOCK) + energy(800.0, sensor="rapl.psys", **BLOCK)}
    host = profile(
        group(
            "mlp train",
            member("torch", 2.0, counters=counters, launch=bound | parts, variant="omp1"),
            member("jax", 2.0, counters=counters, launch=free, variant="omp1", stall=0.3),
        ),
        group("mlp infer", member("torch", task="infer", launch={"threads": ONE_THREAD}), member("jax", task="infer")),
        rounds=4,
        variants=[Variant(name="omp1", env={"OMP_NUM_THREADS": "1"})],
    )
    cpus = {"cpu.core.0": "0-1", "cpu.node.0": "0-1", "cpu.node.1": "2-3", "container.cpu_limit": 1.5}
    host.identity = b.changed(host.identity, cpus)
    known = {"core_throttled": 5, "package_throttled": 5, "numa_misses": 5, "clock_synchronized": False}
    after = b.changed(host.state.before, known | {"core_throttled": 9, "numa_misses": 20_005})
    host.state = StateSpan(before=b.changed(host.state.before, known), after=after)

    record = profile(group("mlp train", *(member(backend) for backend in BACKENDS)), rounds=4)
    first, second, third = (result.launches for result in record.cells)
    first[1].failure = Failure(phase="steady", reason=reason("output_not_finite"))
    for launch in second:
        launch.failure = Failure(phase="build", reason=reason("out_of_device_memory", type="E", message="m"))
    third[0].parity = replace(third[0].parity, losses=[2.31 / (1 + step) for step in range(20)])
    third[0].notes.append(reason("sampler_failed", exit_code=-9, error=""))
    third[1].recompiles = b.Compilations(count=2, graph_breaks=3)
    bare = profile(group("mlp train", member("torch", change=lambda launch: launch.blocks.counters.clear())))
    return {"gpu-bad": boards(400.0), "gpu-capped": boards(300.0), "host-bad": host, "record-bad": record, "bare": bare}


def _nodes() -> dict[str, Profile]:
    """Return nodes of a fleet: alike ones, a slow one in two profiles, odd ones; in `fleet2` a suspect."""

    def node(number, slow=1.0, run=0, *, kernel="6.1.0", throttled=0.0, failed=None, **more):
        plain = STEADY | {"counters": {"cgroup.throttled_ns": 4e6 * throttled}}
        groups = [
            group("mlp train", member("torch", 2.0 * slow, **plain)),
            group("cnn train", member("torch", 30.0 * slow, "cnn", failed_rounds=failed or {}, **plain)),
        ]
        fields = {"rounds": 4, "cycles": 4, "drift": 0.005, "seed": 100 * number + run, "id": f"{number}/{run}"}
        fields |= {"label": f"n{number}", "created": f"2026-11-{run + 1:02}T00:00:00+00:00"}
        return profile(*groups, identity=identity(kernel=kernel, hostname_sha256=f"{number:064}"), **fields | more)

    alike = {f"n{number}": node(number) for number in range(1, 8)}
    slow = [node(0, 1.6, run, kernel="6.9.9", throttled=0.4) for run in (0, 1)]
    odd = {"copy": alike["n1"], "n8": node(8, interrupted=True), "n9": node(9, failed=b.DEAD)}
    fleets = {"fleet": alike | odd | {"n0": slow[0], "n0+again": slow[1]}, "fleet2": alike | {"n0": slow[0]}}
    return {f"{fleet}/{name}": built for fleet, nodes in fleets.items() for name, built in nodes.items()}


def _write_bad(folder: Path, run: bytes) -> None:
    """Write what is no profile of this kit, each under the name of what is wrong."""
    schema = json.loads(run)["schema"]
    name, _, version = schema.partition("/")
    newer, older = (f"{name}/{int(version.partition('.')[0]) + step}.0" for step in (1, -1))
    texts = {
        "truncated": run[:-400],
        "damaged": run.replace(b'"median_ns":[', b'"median_ns":["x",', 1),
        "edited": run.replace(b'"round":0', b'"round":9', 1),
        "newer": run.replace(schema.encode(), newer.encode()),
        "older": run.replace(schema.encode(), older.encode()),
        "other": b'{"schema": "pyperf/1.0"}\n',
        "words": b"step_ns,batch\n1,2\n",
    }
    for file, text in texts.items():
        (folder / f"{file}.json").write_bytes(text)
