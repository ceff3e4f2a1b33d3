"""A running Slurm, and ReFrame; or what is missing."""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec

import pytest
from fleet_runs import SUITE


@pytest.fixture(scope="session")
def reframe():
    if find_spec("reframe") is None:
        pytest.skip("ReFrame is not installed: pip install 'steadykit[fleet]'")


@pytest.fixture(scope="session")
def slurm(reframe):
    """The names of Slurm's two nodes."""
    if shutil.which("sinfo") is None:
        pytest.skip("no Slurm: tests/fleet/slurm_two_nodes.sh starts one, as root")
    done = subprocess.run(
        ["sinfo", "-h", "-N", "-p", "all", "-o", "%N"], capture_output=True, text=True, timeout=20, check=False
    )
    if done.returncode or done.stdout.split() != ["n1", "n2"]:
        pytest.skip(f"no Slurm with the nodes n1 and n2 answers: {done.stderr.strip() or done.stdout.strip()}")
    settings = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True, timeout=20, check=False)
    if os.getuid() or not re.search(r"^ClusterName\s*= trial$", settings.stdout, re.MULTILINE):
        pytest.skip("nodes are drained and killed: of tests/fleet/slurm_two_nodes.sh alone, as root")
    return done.stdout.split()


@pytest.fixture
def place(tmp_path):
    """A folder with the suite `tiny.toml`."""
    (tmp_path / "tiny.toml").write_text(SUITE)
    return tmp_path
