"""Many profiles from one that was really recorded: six of its cells with ten launches each, and plausible scatter.

Every profile has its own id, time and medians, and a digest that holds; they come from a few hosts and two kernels, and
now and then a launch fails, finds no steady state or is throttled. They are as large as real ones: 190 kB.
"""

from __future__ import annotations

import math
import os
import random
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from pathlib import Path

import msgspec

from kit.profile.canonical import canonical_json, profile_digest
from kit.profile.launch import Failure
from kit.profile.schema import CellResult, Profile
from kit.profile.store import read_profile
from kit.stats.cell_summary import summarize_cell

RECORDED = Path(__file__).parents[1] / "profile" / "recorded" / "schema-1.0.json"
LAUNCHES = 10
HOSTS = 40
# Between hosts, between runs on one host, between launches of a run: standard deviations of ln step time.
HOST_SIGMA, RUN_SIGMA, LAUNCH_SIGMA = 0.02, 0.005, 0.01
FAILED, UNSTEADY, THROTTLED = 0.002, 0.02, 0.02
PARTS = os.cpu_count() or 1


def write_many(folder: Path, count: int) -> None:
    """Write `count` profiles, `00000.json` and so on, into `folder`."""
    with ProcessPoolExecutor(PARTS) as pool:
        list(pool.map(_write_part, [folder] * PARTS, [range(part, count, PARTS) for part in range(PARTS)]))


def _write_part(folder: Path, numbers: range) -> None:
    recorded = msgspec.to_builtins(read_profile(RECORDED))
    recorded["cells"] = [result for result in recorded["cells"] if result["cell"]["task"] == "train"]
    recorded["sidecar"] = None
    for number in numbers:
        plain = msgspec.to_builtins(_varied(msgspec.convert(recorded, Profile), number))
        plain["digest"] = profile_digest(plain)
        # As `write_profile` does, without waiting for the disk.
        (folder / f"{number:05}.json").write_bytes(canonical_json(plain) + b"\n")


def _varied(profile: Profile, number: int) -> Profile:
    generator = random.Random(number)
    host = number % HOSTS
    host_effect = random.Random(-1 - host).gauss(0, HOST_SIGMA)
    replace = msgspec.structs.replace
    software = replace(profile.identity.software, kernel=f"6.{host % 2}.0")
    hostname_sha256 = f"{host:064x}"
    # Stands for the hash over all of it, which differs between hosts like it.
    profile.identity = replace(
        profile.identity, hostname_sha256=hostname_sha256, sha256=hostname_sha256[::-1], software=software
    )
    profile.id = f"00000000-0000-4000-8000-{number:012}"
    profile.created = f"2026-11-{1 + number % 30:02}T{number // 30 % 24:02}:00:00+00:00"
    before = replace(profile.state.before, load_1min=generator.random(), context_switches=generator.randrange(10**9))
    profile.state = replace(profile.state, before=before)
    profile.suite = replace(profile.suite, launches=LAUNCHES)
    for result in profile.cells:
        _vary_cell(result, host_effect + generator.gauss(0, RUN_SIGMA), generator)
    return profile


def _vary_cell(result: CellResult, effect: float, generator: random.Random) -> None:
    replace = msgspec.structs.replace
    recorded = list(zip(result.launches, result.launch_summaries, strict=True))
    centre_ns = result.summary.step_ns.value * math.exp(effect)
    result.launches, result.launch_summaries, result.failures = [], [], []
    for round in range(LAUNCHES):
        launch, summary = recorded[min(round, 1 + round % 2)]
        launch = deepcopy(launch)
        launch.round = round
        for phase in range(len(launch.phases)):
            duration_ns = int(launch.phases[phase].duration_ns * math.exp(generator.gauss(0, 0.05)))
            launch.phases[phase] = replace(launch.phases[phase], duration_ns=duration_ns)
        throttled_ns = generator.randrange(10**9) if generator.random() < THROTTLED else 0
        cpu_pct = generator.uniform(150, 199)
        launch.utilization = replace(launch.utilization, process_cpu_pct=cpu_pct, throttled_ns=throttled_ns)
        launch.peak_memory_b = int(launch.peak_memory_b * generator.uniform(0.99, 1.01))
        result.launches.append(launch)
        if generator.random() < FAILED:
            launch.failure = Failure(phase="steady", reason="killed by signal 9", stderr_tail="Killed", exit_code=-9)
            result.failures.append(launch.failure)
            continue
        median_ns = int(centre_ns * math.exp(generator.gauss(0, LAUNCH_SIGMA)))
        unsteady = generator.random() < UNSTEADY
        result.launch_summaries.append(
            replace(
                summary,
                round=round,
                verdict="no_steady_state" if unsteady else "warmup",
                warmup_steps=None if unsteady else 20,
                steady_steps=0 if unsteady else 300,
                median_ns=None if unsteady else median_ns,
                p95_ns=None if unsteady else int(1.1 * median_ns),
                autocorrelation=None if unsteady else generator.uniform(-0.1, 0.4),
            )
        )
    result.summary = summarize_cell(result.cell, result.launches, result.launch_summaries)
    result.status = "failed" if result.failures else "ok"
