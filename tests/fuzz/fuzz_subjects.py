"""What is fuzzed: profiles of a CPU, of a GPU, with ranks and fits, out of a document; suite files, and journals of
interrupted runs. Each writes a changed copy into a folder, sealed, so that a reader has only its content to refuse.
"""

from __future__ import annotations

import hashlib
import json
import random
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import profile_builder as b
from fuzz_mutations import MARK, changed, encoded, shapes_of

from kit.profile.facts import Accelerator
from kit.profile.fields import reason
from kit.profile.instruments import Calibration, SensorResponse
from kit.profile.program_source import ProgramSource
from kit.profile.schema import Compilations, DeviceEvents, Failure, Fit, Profile, Rank, Skipped, StateSpan
from kit.profile.store import labeled_steps, launch_id, pack_steps, read_profile, read_steps
from kit.profile.unfinished import SavedLaunch
from kit.runner.prepare import plan_run
from kit.suites.plan import plan_of
from kit.suites.run_request import RunRequest

PROFILES = Path(__file__).parents[2] / "profiles"
SUITES = Path(__file__).parents[2] / "kit" / "suites"
CELLS_KEPT, LAUNCHES_KEPT = 2, 2  # of a reference profile: of each group, and of each cell
JOURNAL, RESUMED = "run.json", "out/j.json"


class Subject(NamedTuple):
    """What is fuzzed: `write` puts a changed copy into a folder and says what it changed; commands then read it."""

    write: Callable[[Path, random.Random], list[str]]
    write_whole: Callable[[Path], None]
    kind: str = "profile"  # of commands that read it


def sealed(text: str) -> bytes:
    """Return a profile's JSON with the digest that its reader computes; where the digest is gone, as it is."""
    begin = text.rfind('"digest":"')
    end = text.find('",', begin) + 2
    if begin < 0 or end < begin:
        return text.encode()
    digest = hashlib.sha256((text[:begin] + text[end:]).encode()).hexdigest()
    return f'{text[:begin]}"digest":"{digest}",{text[end:]}\n'.encode()


def _plain(built: Profile) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(built))
    return plain | {"digest": "0"}


def _cut(name: str) -> tuple[Profile, dict[str, np.ndarray]]:
    """Return a reference profile of its first two groups, a few cells and launches of each, and their raw steps."""
    path = PROFILES / "reference" / f"{name}.json"
    whole = read_profile(path)
    all_steps = read_steps(path, whole)
    kept = {key for group in whole.groups[:2] for key in group.cells[:CELLS_KEPT]}
    whole.groups = [
        msgspec.structs.replace(group, cells=[key for key in group.cells if key in kept]) for group in whole.groups[:2]
    ]
    whole.groups = [
        msgspec.structs.replace(group, baseline=group.baseline if group.baseline in kept else group.cells[0])
        for group in whole.groups
    ]
    whole.cells = [result for result in whole.cells if result.key in kept]
    for result in whole.cells:
        result.launches = result.launches[-LAUNCHES_KEPT:]
    names = {launch_id(launch) for result in whole.cells for launch in result.launches}
    return whole, {launch: steps for launch, steps in all_steps.items() if launch in names}


def ranks_and_fits() -> Profile:
    """Return a profile with what the others lack: ranks, fits, programs, variants, failures, responses of sensors."""
    ranks = [Rank(host_sha256="c" * 64, cpus=[number], threads=1) for number in (0, 1)]
    both = {"tier": "device_counter", "method": "counter_between_updates", "error_fraction": 0.01, "steps": 100}
    idle = {"idle_before_w": 20.0, "idle_after_w": 22.0, "idle_error_fraction": 0.05, "begin_ns": 5 * b.S}
    together = {
        "ranks": ranks, "tokens": 128, "settings": {"matmul": "highest"}, "device_ids": ["0000:65:00.0"],
        "environment": {"OMP_NUM_THREADS": "1"}, "kernels": ["a::layer"], "device_memory_fraction": 0.75,
        "peak_device_memory_b": 1 << 30, "empty_wait_ns": 1000, "certificate": b.certificate(),
        "device_events": DeviceEvents(steps=10, host_ns=2e6, device_ns=1.9e6), "notes": [reason("sampler_failed")],
        "calibration_start": Calibration(ticks_per_s=2e9, span_ns=10**9, uncertainty_ppm=0.1, brackets=10),
        "recompiles": Compilations(count=1, graph_breaks=2), "energy": b.energy(900.0, **both, **idle, updates=40),
        "sensors": b.sampled(oddity=(2.0, 3.0, "W")), "sensor_reasons": {"rapl": reason("rapl_missing")},
    }  # fmt: skip

    def fit(score: float) -> Callable[[Any], None]:
        def change(launch: Any) -> None:
            right = round(1000 * score) + launch.round
            launch.fit = Fit(
                epochs=2, updates=18, epoch_updates=9, reference_ns=[2e6] * 4, test_ns=10**8,
                confusion=[[right, 1000 - right], [50, 950]],
            )  # fmt: skip

        return change

    source = ProgramSource(path="/mine.py", function="program", takes_task=False, sha256="a" * 64)
    variant = b.Variant(name="omp1", env={"OMP_NUM_THREADS": "1"}, python="/usr/bin/python3")
    fits = {"task": "fit", "feed": "host", "launch": {"turns": "sequential"}}
    own_axes = {"precision": "own", "feed": "own", "compile_mode": "own", "variant": "omp1"}
    dead = {1: reason("exception", type="ValueError", message="no kernel")}
    board = Accelerator(name="gpu 0", model="Example GPU", memory_b=80 << 30, driver="1", uuid_sha256="e" * 64)
    built = b.profile(
        b.group("mlp train", b.member("torch", 2.0, devices=2, launch=together), b.member("jax", 3.0, devices=2)),
        b.group("mlp fit", b.member("torch", 2.0, change=fit(0.9), **fits), b.member("jax", 2.5, change=fit(0.8), **fits)),
        b.group("train", b.member("program", 2.0, "mine", failed_rounds=dead, **own_axes), b.member("program", 3.0, "yours", **own_axes)),
        rounds=3, cycles=3, variants=[variant], label="Tuesday",
        identity=b.identity(accelerators=[board]),
        responses=[
            SensorResponse(
                sensor="nvml.0.power", device_id="0000:65:00.0", cell="matmul", read_ns=10**6, lag_ns=10**8,
                loads=[(0, 10**9)], at_ns=[0, 10**8], values=[90.0, None],
            )
        ],
    )  # fmt: skip
    skipped = [Skipped(backend="tensorflow", reason=reason("not_installed", backend="tensorflow"))]
    built.suite = msgspec.structs.replace(
        built.suite, programs={"mine": source, "yours": source}, skipped=skipped, data_reason=reason("no_network"),
        precision_pct=2.0,
    )  # fmt: skip
    built.state = StateSpan(before=built.state.before, after=b.changed(built.state.before, {"steal_ns": 10**9}))
    (failed,) = [launch for result in built.cells for launch in result.launches if launch.failure is not None][:1]
    failed.failure = Failure(phase="build", reason=dead[1], stderr_tail="Traceback\n  no kernel\n")
    return built


@cache
def base(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the JSON of a subject's profile and its raw steps."""
    if name == "published":
        return json.loads((PROFILES / "published" / "frameworks-cnn.json").read_text("utf-8")), {}
    if name == "ranks":
        built, steps = ranks_and_fits(), {}
    else:
        built, steps = _cut({"cpu": "cpu-xeon-2-vcpu-quick", "gpu": "gpu-h100-quick"}[name])
    steps = steps if name == "cpu" else {}
    built.sidecar = pack_steps(Path("a.json"), steps)[0] if steps else None
    return _plain(built), steps


def write_base(name: str, folder: Path) -> None:
    """Write the subject's profile as it is as `a.json`, and a later run of the same as `b.json`."""
    document, steps = base(name)
    if steps:
        sidecar, data = pack_steps(Path("a.json"), steps)
        (folder / sidecar.file).write_bytes(data)
    for file, label in (("a.json", document.get("label", "")), ("b.json", "b")):
        text = encoded(document | {"id": file, "label": label}, str(folder.parent))
        (folder / file).write_bytes(sealed(text))


def profile_subject(name: str) -> Subject:
    """Return the subject of a profile, whose leaves and subtrees are changed."""
    document, _ = base(name)
    shapes = shapes_of({field: value for field, value in document.items() if field not in ("digest", "schema")})

    def write(folder: Path, rng: random.Random) -> list[str]:
        different, lines = changed(document, shapes, rng)
        text = encoded(different, str(folder.parent))
        (folder / "a.json").write_bytes(sealed(text))
        return lines

    return Subject(write, lambda folder: write_base(name, folder))


def _changed_bytes(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    at, length = rng.randrange(len(data)), rng.choice((1, 1, 4, 100))
    way = rng.choice(("cut", "flipped", "doubled", "taken out"))
    made = {
        "cut": data[:at],
        "flipped": data[:at] + bytes(byte ^ rng.randrange(1, 256) for byte in data[at : at + length]) + data[at + length :],
        "doubled": data[: at + length] + data[at:],
        "taken out": data[:at] + data[at + length :],
    }  # fmt: skip
    return made[way], f"{length} bytes from {at} {way}"


OWN_SUITE = """
name = "own"
title = "Own"
compare = ["variant"]
baseline = "a"
[cells]
backends = ["torch"]
devices = ["cpu"]
tasks = ["train", "infer"]
workloads = ["dblstm"]
batches = [32, 64]
parameters = {units = [32, 64]}
threads = [1]
[measure]
rounds = 3
cycles = 2
block_s = 0.1
epochs = 1
share = ["task"]
[quick]
rounds = 1
[variants.a]
[variants.b]
slowdown_pct = 5.0
env = {A_NAME = "a value"}
[variants.c]
env = {OTHER = "1"}
python = "./zqx-python"
[table]
rows = ["batch"]
figures = ["step_ns"]
"""
WITH_PROGRAMS = """
name = "programs"
title = "Programs"
[cells]
tasks = ["infer"]
[programs.mine]
path = "program.py:program"
[programs.yours]
path = "program.py:other"
"""
PROGRAM = "def program():\n    return lambda: None\n\n\nother = program\n"


def _toml(value: Any) -> str:
    """Return a value as TOML writes it, tables in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(str(name))} = {_toml(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def suite_subject() -> Subject:
    """Return the subject of suite files: the built-in ones, one with variants, one with programs."""
    texts = [OWN_SUITE, WITH_PROGRAMS, *(path.read_text("utf-8") for path in sorted(SUITES.glob("*.toml")))]
    tables = [tomllib.loads(text) for text in texts]

    def write(folder: Path, rng: random.Random) -> list[str]:
        number = rng.choice((0, 0, 0, 1, 1, rng.randrange(len(tables))))
        if rng.random() < 0.1:
            data, line = _changed_bytes(texts[number].encode(), rng)
            made = [line]
        else:
            different, made = changed(tables[number], shapes_of(tables[number]), rng)
            rows = (f"{_toml(name)} = {_toml(value)}\n" for name, value in different.items())
            data = "".join(rows).replace("{ROOT}", str(folder.parent)).encode("utf-8", "replace")
        (folder / "own.toml").write_bytes(data)
        return [f"suite {number}", *made]

    def whole(folder: Path) -> None:
        # What a suite file names is not to run before its user has seen it.
        (folder / f"{MARK}-python").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        (folder / f"{MARK}-python").chmod(0o755)
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        (folder / "own.toml").write_text(OWN_SUITE, encoding="utf-8")

    return Subject(write, whole, "suite")


@cache
def _journal() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the plan of a run that could go on here, and its launches, all of which are there."""
    request = RunRequest(
        suite="quick", backends=("torch",), workloads=("mlp",), tasks=("infer",), rounds=2, data="synthetic",
        energy_s=0.0, batches=(64, 128),
    )  # fmt: skip
    plan = plan_run(plan_of(request, lambda _: None), lambda _: None)
    members = [b.member(cell=cell, step_ms=2.0) for cell in plan.cells]
    built = b.profile(b.group(plan.groups[0].key, *members), rounds=2, cycles=3)
    saved = []
    for launch in (launch for result in built.cells for launch in result.launches):
        steps = np.full(sum(launch.blocks.raw_steps()), 2 * b.MS, np.int64)
        assert [*labeled_steps(launch, steps)]
        saved.append(json.loads(msgspec.json.encode(SavedLaunch(launch=launch, step_ns=steps[:1].tobytes()))))
        saved[-1]["step_ns"] = json.loads(msgspec.json.encode(steps.tobytes()))
    return json.loads(msgspec.json.encode(plan)), saved


def journal_subject() -> Subject:
    """Return the subject of a run's folder in which every launch is there: resuming it starts none, and writes it."""

    def write_parts(folder: Path, plan: Any, launches: Sequence[Any]) -> None:
        journal = folder / f"{RESUMED}.rounds"
        journal.mkdir(parents=True, exist_ok=True)
        (journal / JOURNAL).write_text(encoded(plan, str(folder.parent)), encoding="utf-8")
        for number, launch in enumerate(launches):
            round_number = number % 2
            (journal / f"r{round_number:04}-{number:012x}.json").write_text(
                encoded(launch, str(folder.parent)), encoding="utf-8"
            )

    def write(folder: Path, rng: random.Random) -> list[str]:
        plan, launches = _journal()
        launches, at = list(launches), rng.randrange(len(launches))
        if rng.random() < 0.5:
            plan, lines = changed(plan, shapes_of(plan), rng)
        else:
            launches[at], lines = changed(launches[at], shapes_of(launches[at]), rng)
            lines.insert(0, f"launch {at}")
        write_parts(folder, plan, launches)
        return lines

    return Subject(write, lambda folder: write_parts(folder, *_journal()), "journal")


SUBJECTS: dict[str, Callable[[], Subject]] = {
    **{name: (lambda name=name: profile_subject(name)) for name in ("cpu", "gpu", "ranks", "published")},
    "suite": suite_subject,
    "journal": journal_subject,
}
