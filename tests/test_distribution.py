"""What other distributions add: the example of docs/reference/add-ons.md, installed and run, and bad entry points."""

import os
import shutil
import subprocess
import sys

import pytest
from kit_process import REPOSITORY, kit
from small_suite import measure

from kit.profile.store import read_profile
from kit.workloads.parity_proof import PARITY_STEPS

EXAMPLE = REPOSITORY / "docs" / "examples" / "steadykit_example"


def with_distributions(folder, *words):
    """The kit where those of a folder are installed."""
    return kit(folder, *words, PYTHONPATH=f"{REPOSITORY}{os.pathsep}{folder}", KIT_DATA=str(folder / "data"))


SUITE = """
name = "example"
title = "Another's network, data and backend"
[cells]
workloads = ["wide"]
backends = ["plain"]
""" + measure(block_s=0.05)


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
    done = with_distributions(with_example, "run", "example.toml", "--task", "infer", "--out", "a.json")
    assert done.returncode == 0, done.stderr
    profile = read_profile(with_example / "a.json")
    (launch,) = profile.cells[0].launches
    assert launch.gave_number and launch.data.name == "blobs" and profile.suite.data == {"blobs": "blobs"}
    assert len(launch.parity.losses) == PARITY_STEPS
    # What is measured has its version in the profile.
    assert profile.identity.text("software.package.steadykit-example") == "1.0"


def distribution(folder, name, group, value):
    """What an installer leaves behind, with one entry point."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nthing = {value}\n")


@pytest.mark.parametrize(
    ("group", "value", "expected"),
    [
        ("workloads", "no_such_module:X", "a-dist: entry point thing = no_such_module:X cannot be loaded: ModuleNotF"),
        ("workloads", "things:RAISES", "a-dist: entry point thing = things:RAISES is a str; workloads are Workload or"),
        ("workloads", "kit.workloads.networks:CNN", "steadykit and a-dist both have a workload 'cnn'; rename or"),
        ("backends", "kit.backends.jax", "steadykit and a-dist both have a backend 'jax'"),
    ],
)
def test_an_entry_point_that_is_wrong_is_one_line_naming_its_distribution(tmp_path, group, value, expected):
    (tmp_path / "things.py").write_text("RAISES = 'no workload'")
    distribution(tmp_path, "a-dist", f"steadykit.{group}", value)
    done = with_distributions(tmp_path, "suites")
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert line.startswith("kit: ") and expected in line
