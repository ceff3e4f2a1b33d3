import subprocess
import sys

import numpy
import pytest
from planted_files import plant

from kit.fingerprint.fingerprint import BAKED, kit_revision, relevant_environment, set_by, software


def other_python(tmp_path, versions):
    """An interpreter that has other distributions: this one, with a folder of metadata before its own."""
    for name, version in versions.items():
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        plant(tmp_path / "site", {f"{name}-{version}.dist-info/METADATA": metadata})
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/site" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_disagreeing_interpreters_show_both_versions_of_what_was_asked_for(tmp_path):
    python = other_python(tmp_path, {"numpy": "0.0.1", "framework": "9.9.9"})
    facts = software({}, [python], packages=["framework", "no-such-distribution"])
    assert facts["software.package.numpy"] == f"0.0.1 / {numpy.__version__}"
    assert facts["software.package.framework"] == "9.9.9"
    assert "software.package.no-such-distribution" not in facts
    assert "software.package.framework" not in software({}, [python])


def test_an_interpreter_that_cannot_be_asked_is_a_reason():
    reasons = {}
    here = software(reasons, ["/nowhere/python"])
    assert "software.package.numpy" in here
    assert reasons["software.package /nowhere/python"].code == "interpreter_not_asked"


@pytest.mark.parametrize(
    "name",
    ["OMP_NUM_THREADS", "KMP_AFFINITY", "MKL_CBWR", "OPENBLAS_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "MALLOC_ARENA_MAX",
     "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "PYTHONOPTIMIZE", "TF_ENABLE_ONEDNN_OPTS"],
)  # fmt: skip
def test_what_changes_numbers_is_recorded(name, monkeypatch):
    monkeypatch.setenv(name, "planted")
    assert software({}, prefixes=["TF_"])[f"environment.{name}"] == "planted"


@pytest.mark.parametrize(
    "name", ["HOME", "PATH", "TF_TOKEN_app", "TF_VAR_db", "TF_HTTP_PASSWORD", "TORCH_HUB_TOKEN", "TORCH_INDEX"]
)
def test_nothing_else_is_and_no_credential(name):
    assert relevant_environment({name: "x"}, ["TF_", "TORCH"]) == {}


IMAGE = "PATH=/bin\0OMP_NUM_THREADS=1\0"
STARTED = f"{IMAGE}KMP_AFFINITY=none\0"


@pytest.mark.parametrize(
    ("variables", "engine", "who"),
    [
        ({"OMP_NUM_THREADS": "1"}, "docker", "image"),
        ({"OMP_NUM_THREADS": "4"}, "docker", "user"),  # changed by a shell in the container
        ({"KMP_AFFINITY": "none"}, "docker", "container"),
        ({"OMP_NUM_THREADS": "1"}, None, "user"),  # a host's first process does not count
        ({"OMP_NUM_THREADS": "1", "TORCHELASTIC_RUN_ID": "none"}, None, "torchrun"),
        ({"OMP_NUM_THREADS": "2", "RAY_RAYLET_PID": "9"}, None, "Ray"),
        ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "9"}, None, "Slurm"),
        ({"OMP_NUM_THREADS": "2", "SLURM_JOB_ID": "9"}, None, "user"),
    ],
)
def test_who_set_it(tmp_path, variables, engine, who):
    plant(tmp_path, {BAKED: IMAGE, "proc/1/environ": STARTED})
    name = next(iter(variables))
    assert set_by([name], variables, engine, tmp_path) == {name: who}
    nothing_readable = set_by(["OMP_NUM_THREADS"], {"OMP_NUM_THREADS": "1"}, "docker", tmp_path / "nowhere")
    assert nothing_readable == {"OMP_NUM_THREADS": "user"}


def git(tree, *words):
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_revision_of_the_source_tree(tmp_path, monkeypatch):
    monkeypatch.delenv("KIT_REVISION", raising=False)
    assert kit_revision(tmp_path) is None
    git(tmp_path, "init")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--no-verify", "-m", "one")
    assert kit_revision(tmp_path) == git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "file").write_text("two")
    assert kit_revision(tmp_path) == git(tmp_path, "rev-parse", "HEAD") + "-dirty"
    (tmp_path / "site-packages").mkdir()  # a kit installed within another project's tree is not of its revision
    assert kit_revision(tmp_path / "site-packages") is None
    monkeypatch.setenv("KIT_REVISION", "of the image")
    assert kit_revision(tmp_path) == "of the image"
