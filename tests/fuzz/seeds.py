"""Files to begin with: profiles built for the tests, the real one of schema 1.0, a journal and an archive of steps."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fuzz.mutations import sealed
from profile_builder import (
    build_blank_launch,
    build_cell,
    build_failed,
    build_header,
    build_launch,
    build_profile,
    build_result,
    build_run_plan,
)

from kit.profile.journal import Journal, journal_path
from kit.profile.schema import HostBand, ObserverOverhead, Skipped
from kit.profile.step_archive import pack

RECORDED = Path(__file__).parents[1] / "profile" / "recorded" / "schema-1.0.json"
MS = 1_000_000


def recorded(cells: int = 2, launches: int = 2) -> dict[str, Any]:
    """The real profile with its first cells only, and the first launches of each."""
    plain: dict[str, Any] = msgspec.json.decode(RECORDED.read_bytes())
    plain["cells"] = plain["cells"][:cells]
    for cell in plain["cells"]:
        cell["launches"] = cell["launches"][:launches]
        cell["launch_summaries"] = cell["launch_summaries"][:launches]
    return plain


def built() -> dict[str, Any]:
    """Three backends, five launches a cell; one launch without a steady state, one that failed, and a failed cell."""
    medians = [[2.0, 2.01, 1.99, 2.02, None], [1.0, 1.01, 1.02, 1.0, 1.01]]
    results = [
        build_result(build_cell(backend), [None if m is None else m * MS for m in row], step_ns=[3 * MS, 2 * MS])
        for backend, row in zip(("tensorflow", "torch"), medians, strict=True)
    ]
    results.append(build_failed(build_cell("jax")))
    results[0].launches.append(build_blank_launch(results[0].key, 5, failure="killed by signal 9"))
    results[0].failures.append(results[0].launches[-1].failure)
    profile = build_profile(results)
    key, hardware = results[0].key, profile.identity.hardware_sha256
    profile.suite = msgspec.structs.replace(
        profile.suite, precision_pct=1.0, skipped=[Skipped(backend="x", reason="y")]
    )
    profile.host_band = HostBand(band=0.02, taken=profile.created, cell_key=key, launches=34, hardware_sha256=hardware)
    overhead = {"ratio": 1.001, "low": 0.999, "high": 1.003, "mean_ratio": 1.002, "mean_low": 0.999, "mean_high": 1.005}
    profile.observer = ObserverOverhead(cell_key=key, pairs=20, **overhead)
    plain: dict[str, Any] = msgspec.to_builtins(profile)
    return plain


def small() -> dict[str, Any]:
    """One cell, two launches."""
    plain: dict[str, Any] = msgspec.to_builtins(build_profile([build_result(build_cell(), [MS, 1.1 * MS])]))
    return plain


def journal() -> bytes:
    """A header and two launches."""
    profile, cell = build_profile([build_result(build_cell(), [MS])]), build_cell()
    header = build_header(profile, build_run_plan([cell], launches=2))
    with tempfile.TemporaryDirectory() as folder:
        path = journal_path(Path(folder) / "run.json")
        kept = Journal.create(path, header)
        kept.add(build_launch(cell, 0))
        kept.add(build_launch(cell, 1, step_ns=[2, 1, 1]))
        kept.close()
        return path.read_bytes()


def archive() -> bytes:
    """Two launches' steps."""
    generator = np.random.default_rng(0)
    return pack({f"cell0.launch{launch}": generator.integers(10**6, 2 * 10**6, 500) for launch in range(2)})


def profiles() -> list[dict[str, Any]]:
    """To mutate: small enough to be quick."""
    return [recorded(), built(), small(), recorded(1, 1)]


def seeds() -> dict[str, bytes]:
    """Name -> file."""
    files = {f"profile-{number}.json": sealed(plain) for number, plain in enumerate(profiles())}
    return files | {"run.json.journal": journal(), "steps.npz": archive()}
