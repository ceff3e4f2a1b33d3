"""`kit fleet` with a backend that is quick to start, and the nodes of tests/fleet/slurm_two_nodes.sh."""

import os
import subprocess
import sys
import time
from pathlib import Path

from kit_process import REPOSITORY, kit
from small_suite import measure

PYTHONPATH = f"{REPOSITORY / 'tests/faults/planted'}{os.pathsep}{REPOSITORY}"
# Three nodes' measurements one after the other, on a quarter of a CPU of a busy machine.
ENDS_S = 900
SUITE = """
name = "tiny"
title = "Seconds long"
compare = ["batch"]
[cells]
workloads = ["mlp"]
backends = ["plain"]
tasks = ["train"]
batches = [64, 256]
""" + measure(3, 3, 0.1)


def fleet(folder, *words, **environment):
    """Run `kit fleet` of the suite."""
    variables = {"FAULTS_FOLDER": os.fspath(folder), "PYTHONPATH": PYTHONPATH} | environment
    done = kit(folder, "fleet", *words, timeout_s=ENDS_S, **variables)
    assert "Traceback" not in done.stderr
    return done


def suite(*words):
    """Return the words that measure the suite with data that need no fetching."""
    return "tiny.toml", "--data", "synthetic", "--no-energy", *words


def command(folder, *lines):
    """Write what starts the kit on a node, with these lines of shell before."""
    script = folder / "kit-on-node"
    script.write_text("\n".join(["#!/bin/sh", *lines, f'exec {sys.executable} -m kit "$@"\n']))
    script.chmod(0o755)
    return "--command", script


def state_of(node):
    command = ["sinfo", "-h", "-n", node, "-o", "%T"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def start_lost_nodes():
    subprocess.run([Path(__file__).with_name("slurm_two_nodes.sh")], check=True)


def waited(until, limit_s=60):
    end = time.monotonic() + limit_s
    while not until() and time.monotonic() < end:
        time.sleep(0.3)
    return until()
