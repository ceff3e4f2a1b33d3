"""What other distributions add: the example of docs/extending.md, installed and run, and bad entry points."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit.profile.store import read_profile

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "docs" / "examples" / "steadykit_example"
SUITE = """
name = "example"
title = "Another's network, data and backend"
[cells]
workloads = ["wide"]
backends = ["plain"]
[measure]
rounds = 1
cycles = 2
block_s = 0.05
lead_in_s = 0.005
warmup_s = 0.05
"""


def kit(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "kit", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{folder}", "KIT_DATA": str(folder / "data")},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.fixture(scope="module")
def with_example(tmp_path_factory):
    """A folder that the example is installed into, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    # Setuptools builds beside the sources.
    sources = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("sources") / "example")
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--quiet", "--target", str(folder), str(sources)], check=True, timeout=100)
    (folder / "example.toml").write_text(SUITE)
    return folder


def test_the_example_is_measured_as_the_kits_own_are(with_example):
    done = kit(with_example, "run", "example.toml", "--task", "infer", "--out", "a.json")
    assert done.returncode == 0, done.stderr
    profile = read_profile(with_example / "a.json")
    (launch,) = profile.cells[0].launches
    assert launch.gave_number and launch.data.name == "blobs" and profile.suite.data == {"blobs": "blobs"}
    assert len(launch.parity.losses) == 20
    # What is measured has its version in the profile.
    assert profile.identity.software.packages["steadykit-example"] == "1.0"


def test_what_the_example_cannot_do_is_one_line(with_example):
    done = kit(with_example, "run", "example.toml", "--task", "train", "--json", "--out", "b.json")
    assert done.returncode == 3, done.stderr
    (failure,) = json.loads(done.stdout)["failed"].values()
    assert failure["reason"]["values"]["message"] == "Plain NumPy cannot train; give --task infer"


def distribution(folder, name, group, value):
    """What an installer leaves behind, with one entry point."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nthing = {value}\n")


@pytest.mark.parametrize(
    ("group", "value", "said"),
    [
        ("workloads", "no_such_module:X", "a-dist: entry point thing = no_such_module:X cannot be loaded: ModuleNotF"),
        ("workloads", "things:ABSENT", "cannot be loaded: AttributeError"),
        ("workloads", "things:RAISES", "a-dist: entry point thing = things:RAISES is a str; workloads are Workload or"),
        ("workloads", "kit.workloads.networks.mlp:MLP", "steadykit and a-dist both have a workload 'mlp'; rename or"),
        ("datasets", "kit.workloads.datasets.mnist:MNIST", "steadykit and a-dist both have a dataset 'mnist'"),
        ("backends", "things", "a-dist: entry point thing = things cannot be loaded: ModuleNotFoundError"),
        ("backends", "kit.backends.jax", "steadykit and a-dist both have a backend 'jax'"),
    ],
)
def test_an_entry_point_that_is_wrong_is_one_line_naming_its_distribution(tmp_path, group, value, said):
    (tmp_path / "things.py").write_text("RAISES = 'no workload'")
    distribution(tmp_path, "a-dist", f"steadykit.{group}", value)
    done = kit(tmp_path, "suites")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("kit: ") and said in line


def test_two_distributions_that_add_the_same_are_both_named(tmp_path):
    for name in ("a-dist", "b-dist"):
        distribution(tmp_path, name, "steadykit.workloads", "things:WIDE")
    shutil.copy(EXAMPLE / "steadykit_example" / "wide.py", tmp_path / "things.py")
    done = kit(tmp_path, "suites")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert "-dist and " in line and "a-dist" in line and "b-dist" in line and "'wide'" in line
