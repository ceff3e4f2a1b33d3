"""A suite's file and the folder of a run may be others': what they make a run start is named before it starts."""

import hashlib
import json
import os
import shlex
import sys
import tempfile

import msgspec
import pytest
from kit_process import kit
from profile_builder import identity, profile, run_plan
from refusals import refused
from small_suite import MEASURE
from small_suite import SUITE as SMALL

from kit.profile.consistency import steps_of
from kit.profile.unfinished import PLAN, folder_of
from kit.runner.worker_spec import compile_cache_folder, make_compile_cache

MODEL = """
from pathlib import Path
Path("ran").touch()
def program(batch, device):
    return lambda: sum(range(2000))
"""
OTHER = MODEL.replace('"ran"', '"other ran"')
SUITE = f"""
name = "theirs"
title = "theirs"
[programs]
model = {{ path = "model.py" }}
[variants.stranger]
python = "PYTHON"
[variants.plain]
env = {{ A = "1" }}
{MEASURE}"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "other.py").write_text(OTHER)
    stranger = tmp_path / "python"
    stranger.write_text(f'#!/bin/sh\ntouch {shlex.quote(str(tmp_path / "python ran"))}\nexec {sys.executable} "$@"\n')
    stranger.chmod(0o700)
    (tmp_path / "theirs.toml").write_text(SUITE.replace("PYTHON", str(stranger)))
    return tmp_path


def ran(folder):
    return {path.name for path in folder.glob("*ran")}


def test_a_dry_run_starts_nothing_that_a_suite_names_and_a_run_says_what_it_starts(folder):
    dry = kit(folder, "run", "theirs.toml", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert ran(folder) == set()
    for line in ("runs model.py as program model", f"variant stranger with python {folder / 'python'}", "A=1"):
        assert line in dry.stderr
    done = kit(folder, "run", "theirs.toml", "--out", "run.json")
    assert done.returncode == 0, done.stderr
    assert "runs model.py as program model" in done.stderr.partition("round 1")[0]
    assert ran(folder) == {"ran", "python ran"}


def test_an_unfinished_run_runs_only_what_its_command_names(folder):
    (folder / "small.toml").write_text(SMALL.replace("rounds = 1", "rounds = 2"))
    done = kit(folder, "run", "small.toml", "--program", "model.py", "--budget", "0.01", "--out", "run.json")
    assert done.returncode == 0, done.stderr
    resume = shlex.split(done.stderr.rpartition("Resume: `")[2].partition("`")[0])
    assert resume[:4] == ["kit", "run", "--program", "model.py"]
    (folder / "ran").unlink()
    # Not named.
    bare = kit(folder, "run", "--resume", "--out", "run.json")
    assert bare.returncode == 2 and "program model" in bare.stderr and "--program model.py" in bare.stderr
    # Edited: to another program, and to a variant that loads what it likes.
    plan_file = folder_of(folder / "run.json") / PLAN
    plan = json.loads(plan_file.read_bytes())
    for edit in (
        {"programs": {"model": plan["suite"]["programs"]["model"] | {"path": str(folder / "other.py")}}},
        {"variants": [{"name": "default", "env": {"A": "1"}}]},
        {"variants": [{"name": "default", "python": str(folder / "python")}]},
    ):
        plan_file.write_text(json.dumps(plan | {"suite": plan["suite"] | edit}))
        refused = kit(folder, *resume[1:])
        assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.stderr
    assert ran(folder) == set()
    assert oct(folder_of(folder / "run.json").stat().st_mode)[-3:] == "700"
    # As it was.
    plan_file.write_text(json.dumps(plan))
    done = kit(folder, *resume[1:-2])
    assert done.returncode == 0, done.stderr
    assert ran(folder) == {"ran"}
    assert not folder_of(folder / "run.json").exists()


def test_a_profile_that_is_replaced_takes_no_other_file_with_it(folder):
    from kit.profile.schema import Sidecar
    from kit.profile.store import read_profile, write_profile

    named = {"victim.npz": hashlib.sha256(b"mine").hexdigest(), "run.json.00000000.steps.npz": "0" * 64}
    for name, sha256 in named.items():
        (folder / name).write_bytes(b"mine")
        foreign = profile(rounds=1, cycles=2)
        steps = sum(steps_of(launch) for result in foreign.cells for launch in result.launches)
        foreign.sidecar = Sidecar(file=name, sha256=sha256, steps=steps)
        write_profile(folder / "run.json", foreign)
        assert read_profile(folder / "run.json").sidecar.file == name
        write_profile(folder / "run.json", profile(rounds=2, cycles=2))
        assert (folder / name).read_bytes() == b"mine"


@pytest.mark.parametrize("host", ["../../x", "/tmp", "..", "a/b"])
def test_no_fact_of_a_profile_leads_an_export_out_of_its_folder(folder, host):
    from kit.profile.store import write_profile

    foreign = profile(rounds=2, cycles=2)
    foreign.identity = identity(hostname_sha256=host)
    write_profile(folder / "run.json", foreign)
    before = set(folder.rglob("*"))
    done = kit(folder, "export", "asv", "run.json", "--commit", "0123456789" * 4, "--out", "a/b/c")
    assert done.returncode == 0, done.stderr
    new = set(folder.rglob("*")) - before - {folder / "a", folder / "a/b"}
    assert new and all(path.is_relative_to(folder / "a/b/c") for path in new)
    assert not os.path.lexists(folder.parent / "x")


def test_a_program_that_is_no_file_is_not_waited_for(folder):
    (folder / "model.py").unlink()
    os.mkfifo(folder / "model.py")
    dry = kit(folder, "run", "theirs.toml", "--dry-run", timeout_s=60)
    assert dry.returncode == 2 and "is no file of Python" in dry.stderr


@pytest.mark.parametrize("plan_id", ["../../x", "a/b", "x" * 300])
def test_the_folder_of_compilations_stays_among_temporary_files_and_is_the_users_alone(folder, monkeypatch, plan_id):
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    plan = msgspec.structs.replace(run_plan(profile(rounds=1, cycles=2)), id=plan_id)
    made = compile_cache_folder(plan)
    make_compile_cache(plan)
    assert made.parent == folder and made.stat().st_mode & 0o777 == 0o700
    made.chmod(0o777)
    assert "not this user's alone" in refused(make_compile_cache, plan)
    made.rmdir()
    made.symlink_to(folder)
    assert "not this user's alone" in refused(make_compile_cache, plan)
