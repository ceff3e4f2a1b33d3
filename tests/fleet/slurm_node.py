"""A node of tests/fleet/slurm_two_nodes.sh: its state, and its daemon begun anew."""

import subprocess
import time
from pathlib import Path


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
