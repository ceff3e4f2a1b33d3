"""Numbers that no machine has, and parts that contradict each other: one line that says where, and nothing printed."""

import os
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from profile_builder import MS, S, cell, energy, group, member, profile, reason, sampled
from refusals import refused

from kit.cli import app
from kit.compare.log_formats import MeterFileError
from kit.compare.meter_logs import read_meter
from kit.profile import consistency
from kit.profile.schema import Fit, Published
from kit.profile.store import canonical_json, profile_digest, read_profile

REPOSITORY = Path(__file__).parents[2]
FIT = Fit(epochs=1, updates=30, epoch_updates=30, reference_ns=[1.0 * MS], test_ns=5 * MS, confusion=[[3, 1], [0, 4]])
MEASURED = {
    "sensors": sampled(**{"nvml.0.utilization": (90.0, 99.0, "%"), "power": (90.0, 120.0, "W")}),
    "energy": energy(12.0, window_ns=S, error_fraction=0.01),
    "notes": [reason("contended", share_pct=3.0)],
    "fit": FIT,
    "device_memory_fraction": 0.5,
}


def built():
    """A profile with a number of each kind."""
    made = profile(group("mlp train", member("torch", launch=MEASURED), member("jax")), rounds=2, cycles=3)
    made.cells[0].published = [Published(figure="accuracy", value=0.9)]
    made.cells[0].p50_ns, made.cells[0].all_cycles_ns = made.cells[0].p95_ns // 2, [1, 2, 3]
    return made


def sealed(path, plain):
    path.write_bytes(canonical_json(plain | {"digest": profile_digest(plain)}))
    return path


def holder_of(plain, where):
    *way, last = [int(part) if part.isdigit() else part for part in where.split("/")]
    for part in way:
        plain = plain[part]
    return plain, last


LAUNCH = "cells/0/launches/0"
BLOCKS = f"{LAUNCH}/blocks"
# Where -> values that cannot be there.
IMPOSSIBLE = {
    "created": ["", "spring", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"],
    "state/before/taken": ["yesterday"],
    "state/after/raw_ns": [-1, 2**63 - 1],
    "state/after/facts/load_pct": [-1.0, 1e300],
    "state/after/facts/cpu.temperature_c": [-300.0, 1e6],
    "identity/facts/memory_b": [-1],
    "identity/facts/gpu.0.power_cap_w": [-5.0, 1e12],
    "identity/facts/gpu.0.memory_b": [-5],
    "clock/resolution_ns": [-1, 0],
    "clock/shortest_step_ns": [-1, 2**63 - 1],
    "clock/null_interval/count": [0, -1],
    "clock/null_interval/p99_ns": [-1.0, 5.0, 1e300],
    "clock/drift_ppm": [-1.0],
    "suite/rounds": [-5, 2**40],
    "suite/hosts": [0, 2**53],
    "suite/plan/warmup_s": [-1.0, 1e300],
    "suite/plan/warmup_steps": [-1],
    "groups/0/cells": [[], ["no/such/cell"]],
    "groups/0/baseline": ["no/such/cell"],
    "groups/0/key": ["another"],
    "cells/0/key": ["another"],
    "cells/0/cell/batch": [-128, 0, 64, 2**62],
    "cells/0/cell/device_count": [-1, 0, 2],
    "cells/0/cell/threads": [0, -3],
    "cells/0/cell/variant": ["../../x", "a b", "x" * 5000, ""],
    "cells/0/cell/workload": ["../mlp", "a\nb", "x" * 5000, ""],
    "cells/0/cell/parameters/layers": [-1, 10**10],
    "cells/0/p95_ns": [-1, 0, 2**63 - 1, 1],
    "cells/0/p99_ns": [1],
    "cells/0/all_cycles_ns": [[1], [3, 2, 1]],
    "cells/0/published/0/value": [-1.0, 1.25],
    f"{LAUNCH}/round": [-5, 1, 2**40],
    f"{LAUNCH}/started": ["no date"],
    f"{LAUNCH}/cell_key": ["another"],
    f"{LAUNCH}/group": ["another"],
    f"{LAUNCH}/p99_ns": [-1, 1],
    f"{LAUNCH}/warmup_steps": [-1],
    f"{LAUNCH}/peak_memory_b": [-1, 2**62],
    f"{LAUNCH}/device_memory_fraction": [-0.1, 1.5],
    f"{LAUNCH}/threads/requested": [0, -2],
    f"{LAUNCH}/threads/cpus/0": [-1, 10**9],
    f"{LAUNCH}/phases/0/begin_ns": [-1, 2**63 - 1],
    f"{LAUNCH}/phases/0/duration_ns": [-1, 2**63 - 1],
    f"{LAUNCH}/notes/0/values/share_pct": [-1.0, 9e18],
    f"{LAUNCH}/sensors/nvml.0.utilization/mean": [-1.0, 9e18, 125.0],
    f"{LAUNCH}/sensors/power/max": [-1.0, 1e300],
    f"{LAUNCH}/energy/0/joules_j": [-1.0, 1e12],
    f"{LAUNCH}/energy/0/block_ns": [-1, 2**62],
    f"{LAUNCH}/energy/0/samples": [-1],
    f"{LAUNCH}/energy/0/error_fraction": [-0.1, 1e7],
    f"{LAUNCH}/energy/0/idle_before_w": [-1.0, 1e9],
    f"{LAUNCH}/fit/epochs": [0, -1],
    f"{LAUNCH}/fit/updates": [0, 31],
    f"{LAUNCH}/fit/test_ns": [0, -1],
    f"{LAUNCH}/fit/reference_ns": [[0.0], [-1.0], [1e300]],
    f"{LAUNCH}/fit/confusion": [[], [[0, 0], [0, 0]], [[1, 2]], [[-1, 2], [0, 0]]],
    f"{LAUNCH}/fit/mean_squared_error": [-1.0],
    f"{BLOCKS}/begin_ns/0": [-1, 2**62],
    f"{BLOCKS}/begin_ns/1": [0],
    f"{BLOCKS}/span_ns/0": [0, -1, 1, 292 * 366 * 86_400 * S, S * 10**5],
    f"{BLOCKS}/duration_ns/0": [0, -1, 2**62, 10**4 * S],
    f"{BLOCKS}/steps/0": [0, -1, 2**63 - 1, 2**53, 10**12],
    f"{BLOCKS}/lead_in/0": [-1, 2**53],
    f"{BLOCKS}/median_ns/0": [0, -1, 10**4 * S],
    f"{BLOCKS}/cycle/0": [-1],
    f"{BLOCKS}/counters/process.cpu_ns/0": [-1, 2**63 - 1],
    f"{BLOCKS}/counters/process.minor_faults/0": [-1],
}


@pytest.mark.parametrize(
    ("where", "value"), [(where, value) for where, values in IMPOSSIBLE.items() for value in values]
)
def test_what_cannot_be_is_one_line_that_says_where(tmp_path, where, value):
    plain = msgspec.to_builtins(built())
    holder, last = holder_of(plain, where)
    holder[last] = value
    path = sealed(tmp_path / "run.json", plain)
    line = refused(read_profile, path)
    assert len(line) < 1000
    assert "is not a valid profile" in line
    ended = CliRunner().invoke(app, ["compare", str(path)])
    assert (ended.exit_code != 0, ended.stdout) == (True, "")


def test_a_profile_with_a_number_of_each_kind_is_read(tmp_path):
    assert read_profile(sealed(tmp_path / "run.json", msgspec.to_builtins(built())))


def test_no_launch_of_a_fine_profile_is_looked_at_by_itself(monkeypatch):
    monkeypatch.setattr(consistency, "_find_in_cells", pytest.fail)
    references = [*(REPOSITORY / "profiles/reference").glob("*.json")]
    assert len(references) > 5
    for path in references:
        read_profile(path)


def test_a_launch_is_there_once(tmp_path):
    made = built()
    made.cells[0].launches.append(made.cells[0].launches[0])
    assert "launches[2].round" in refused(read_profile, sealed(tmp_path / "run.json", msgspec.to_builtins(made)))


def test_a_network_of_a_billion_layers_is_not_built(tmp_path):
    """Whatever a profile says of a network, a comparison takes no more memory and time than of another one."""
    deep = cell("torch", "dblstm", parameters={"layers": 10**9, "units": 64})
    path = sealed(
        tmp_path / "run.json", msgspec.to_builtins(profile(group("g", member(cell=deep)), rounds=2, cycles=2))
    )
    ended = CliRunner().invoke(app, ["compare", str(path)], catch_exceptions=False)
    assert ended.exit_code == 0


def test_a_suite_that_a_published_profile_names_is_no_file(tmp_path):
    (tmp_path / "canary.toml").write_text("title = 3")
    made = built()
    made.measured, made.source = False, "a document"
    made.suite = msgspec.structs.replace(made.suite, name=str(tmp_path / "canary.toml"))
    path = sealed(tmp_path / "run.json", msgspec.to_builtins(made))
    ended = CliRunner().invoke(app, ["compare", str(path)])
    assert ended.exit_code != 0
    assert "canary" not in str(ended.exception) + ended.output


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    for name in ("pipe.json", "zero.json"):
        assert "no regular file" in refused(read_profile, tmp_path / name)
        with pytest.raises(MeterFileError, match="no regular file"):
            read_meter(tmp_path / name)
    ended = CliRunner().invoke(app, ["compare", str(tmp_path)])
    assert (ended.exit_code != 0, ended.stdout) == (True, "")
