"""Causes that a Linux machine can really be given: what the audit says with each, and without it.

    python tests/bench/bench_plants.py [--plant quota ...] [--rounds 3]

Each plant is one short run of a NumPy program (or of what the plant needs) under the cause, and `kit audit` of its
profile; the rules that found something are printed with the gravest line, beside those of the same run without the
cause. A plant that this machine cannot be given says what is missing. Quotas and memory limits need root and a
writable cgroup tree (version 1 or 2).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kit.audit.finding import Audit
from kit.report.audit_report import evidence

CGROUPS = Path("/sys/fs/cgroup")
SUITE = """
name = "plant"
title = "A planted cause"
[programs.{program}]
path = "{program}.py"
[measure]
rounds = {rounds}
cycles = 6
block_s = 0.15
warmup_s = 0.3
"""
PROGRAMS = {
    "usual": """
        import numpy as np
        a = np.random.rand(700, 700).astype("float32")
        def program(batch, device):
            return lambda: a @ a
        """,
    "sleeps": """
        import time
        import numpy as np
        a = np.random.rand(300, 300).astype("float32")
        def batches():
            while True:
                time.sleep(0.01)
                yield a
        def program(batch, device):
            return {"step": lambda x: x @ x, "batches": batches()}
        """,
    "nothing": """
        def program(batch, device):
            return lambda: 0.0
        """,
    "hungry": """
        import numpy as np
        a = np.random.rand(700, 700).astype("float32")
        held = np.ones(1 << 27, "uint8")
        def program(batch, device):
            def step():
                held[:: 4096] += 1
                return a @ a
            return step
        """,
}


class CannotPlantError(Exception):
    """What this machine lacks for a plant."""


@contextlib.contextmanager
def cgroup(controller: str, limits: Mapping[str, object]) -> Iterator[list[str]]:
    """A group with these limits (file of version 1 -> value); yields what a command is started under."""
    folder = CGROUPS / controller / f"kit-plant-{os.getpid()}"
    try:
        folder.mkdir()
        for name, value in limits.items():
            (folder / name).write_text(str(value))
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise CannotPlantError(f"no writable {controller} group of version 1: {error.strerror}") from None
    try:
        yield ["sh", "-c", f'echo $$ > {folder}/cgroup.procs; exec "$@"', "plant"]
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()


@contextlib.contextmanager
def nothing() -> Iterator[list[str]]:
    yield []


@contextlib.contextmanager
def busy_neighbour() -> Iterator[list[str]]:
    """A loop for each CPU."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        yield []
    finally:
        for loop in loops:
            loop.kill()


@contextlib.contextmanager
def half_of_the_cpus() -> Iterator[list[str]]:
    cpus = sorted(os.sched_getaffinity(0))
    yield ["taskset", "-c", ",".join(map(str, cpus[: max(1, len(cpus) // 2)]))]


@contextlib.contextmanager
def siblings() -> Iterator[list[str]]:
    """Both hardware threads of one core."""
    for file in sorted(Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")):
        if any(separator in (threads := file.read_text().strip()) for separator in ",-"):
            yield ["taskset", "-c", threads]
            return
    raise CannotPlantError("no two CPUs here are shown to share a core")


# name: the cause, the program, more options of `kit run`.
PLANTS = {
    "quota": (lambda: cgroup("cpu", {"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": 60_000}), "usual", ()),
    "cpuset": (half_of_the_cpus, "usual", ("--threads", "2")),
    "neighbour": (busy_neighbour, "usual", ()),
    "memory limit": (lambda: cgroup("memory", {"memory.limit_in_bytes": 190 << 20}), "hungry", ()),
    "sleeping input": (nothing, "sleeps", ()),
    "computes nothing": (nothing, "nothing", ()),
    "siblings": (siblings, "usual", ()),
}


def audited(folder: Path, program: str, rounds: int, under: list[str], options: tuple[str, ...]) -> Audit:
    """Return the audit of one run of the program."""
    (folder / f"{program}.py").write_text(textwrap.dedent(PROGRAMS[program]))
    (folder / "plant.toml").write_text(SUITE.format(program=program, rounds=rounds))
    kit = [sys.executable, "-m", "kit"]
    run = [*under, *kit, "run", "plant.toml", "--out", "plant.json", "--force", *options]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotPlantError(f"kit run ended with {done.returncode}: {done.stderr.strip().splitlines()[-1]}")
    shown = subprocess.run([*kit, "audit", "plant.json", "--json"], cwd=folder, capture_output=True, check=False)
    return msgspec.json.decode(shown.stdout, type=Audit)


def lines_of(audit: Audit, program: str) -> dict[str, str]:
    """Return the gravest line of each rule that found something."""
    lines: dict[str, str] = {}
    for finding in audit.findings:
        lines.setdefault(finding.rule, f"{finding.severity}: {evidence(finding, program)}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plant", choices=list(PLANTS), action="append")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        without = lines_of(audited(folder, "usual", arguments.rounds, [], ()), "usual")
        for plant in arguments.plant or PLANTS:
            cause, program, options = PLANTS[plant]
            try:
                with cause() as under:
                    lines = lines_of(audited(folder, program, arguments.rounds, under, options), program)
            except CannotPlantError as why:
                rows.append((plant, "", f"could not be planted: {why}", ""))
                continue
            for rule, line in lines.items() or {"": "nothing"}.items():
                rows.append((plant, rule, line, without.get(rule, "silent")))
    for plant, rule, line, silent in rows:
        print(f"{plant}: {rule}\n    {line}\n    without: {silent}")


if __name__ == "__main__":
    main()
