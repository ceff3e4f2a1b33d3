"""A worker of two ranks: they end together, and the launch says which of them failed."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner
from fault_runs import PYTHONPATH
from namespaces import needs_namespaces, refusing, unprivileged

from kit.cli import app
from kit.profile.store import read_profile
from kit.report.reasons_in_words import sentence

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: each rank needs one of its own")
# By the batch of a cell that trains: what befalls rank 1, the code of the failure and some of its values.
FAULTS = {
    # Ranks are asked for a block's lead-in and its timed steps: the third request is of the second block.
    16: ({"at": "block", "nth": 2, "do": "kill"}, "signal", {"signal": "SIGKILL", "rank": 1}),
    32: ({"at": "warmup", "do": "no_memory"}, "exception", {"rank": 1}),
    64: ({"at": "import", "do": "kill"}, "signal", {"rank": 1}),
}


def test_ranks_divide_cpus_and_batches_and_the_launch_says_how(place):
    answer = place.run("--devices", "2")
    assert answer.code == 0, answer.stderr
    place.check_whole()
    cpus = sorted(os.sched_getaffinity(0))
    for result in read_profile(place.path).cells:
        assert result.cell.devices == 2
        for launch in result.launches:
            assert [rank.threads for rank in launch.ranks] == [len(cpus) // 2] * 2
            assert sorted(cpu for rank in launch.ranks for cpu in rank.cpus) == cpus == launch.threads.cpus


def failures(place, planted, **environment):
    """By batch, how training failed in round 0; inference is whole, and no process is left."""
    faults = [{"cell": f"/train/b{batch}/", "rank": 1, **fault} for batch, (fault, *_) in planted.items()]
    answer = place.run("--devices", "2", "--batch", ",".join(map(str, planted)), faults=faults, **environment)
    assert answer.code == 3, answer.stderr
    launches = place.launches()
    assert [name for name, launch in launches.items() if launch.failure is not None] == [
        ("train", batch, 0) for batch in planted
    ]
    assert {("infer", batch, number) for batch in planted for number in range(2)} <= set(launches)
    assert place.left() == []
    return {batch: launches["train", batch, 0].failure.reason for batch in planted}


@pytest.mark.slow
@pytest.mark.parametrize("batches", [(16, 32), (64,)])
def test_a_rank_that_is_killed_or_gets_no_memory_is_named(place, batches):
    planted = {batch: FAULTS[batch] for batch in batches}
    reasons = failures(place, planted)
    for batch, (_, code, values) in planted.items():
        assert reasons[batch].code == code
        assert values.items() <= reasons[batch].values.items()
    if 32 in batches:
        assert "MemoryError" in reasons[32].values["type"]
        assert len(place.launches()["train", 16, 0].blocks.cycle) == 1


@pytest.mark.slow
def test_a_rank_that_hangs_is_ended_at_the_limit(place):
    reasons = failures(place, {16: ({"at": "build", "do": "hang"},)}, KIT_PHASE_LIMIT_S="8")
    assert reasons[16].code == "phase_timeout"


@pytest.mark.parametrize(
    ("under", "code"),
    [
        (lambda: needs_namespaces() or [], "ranks_private"),
        (unprivileged, "ranks_private"),
        (refusing, "ranks_exposed"),
        (lambda: refusing(without_network=True), "ranks_without_network"),
    ],
    ids=["usual", "unprivileged", "refused", "refused, no network"],
)
def test_who_reaches_the_ranks_is_in_the_profile_and_said_before_they_start_if_others_do(place, under, code):
    answer = place.run("--devices", "2", "--task", "train", "--rounds", "1", under=under())
    assert answer.code == 0, answer.stderr
    launches = [*place.launches().values()]
    assert {launch.who_reaches.code for launch in launches} == {code}
    assert place.left() == []
    lines = [line for line in answer.messages if "ranks" in line]
    assert len(lines) == (code == "ranks_exposed")
    if lines:
        assert answer.stderr.index(lines[0]) < answer.stderr.index("round 1")
        values = launches[0].who_reaches.values
        assert (values["call"], values["error"]) == ("unshare", "ENOSPC")
    shown = " ".join(CliRunner().invoke(app, ["show", str(place.path)]).output.split())
    assert sentence(launches[0].who_reaches) in shown


def test_one_process_says_nothing_of_ranks(place):
    answer = place.run("--dry-run", "--devices", "1", under=refusing())
    assert answer.code == 0, answer.stderr
    assert "ranks" not in answer.stderr


def test_a_dry_run_says_it_too(place):
    answer = place.run("--dry-run", "--devices", "2", under=refusing())
    assert answer.code == 0, answer.stderr
    assert len([line for line in answer.messages if "ranks" in line]) == 1


def test_several_hosts_are_said_too(place):
    """One machine stands in for two hosts."""
    slurm = place.folder / "slurm"
    slurm.mkdir()
    for name, does in {
        "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
        "scontrol": "echo n1; echo n2",
    }.items():
        (slurm / name).write_text(f"#!/bin/sh\n{does}\n")
        (slurm / name).chmod(0o755)
    job = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURMD_NODENAME": "n1", "PATH": f"{slurm}{os.pathsep}{os.environ['PATH']}"}
    answer = place.run("--devices", "2", "--hosts", "2", "--task", "train", "--rounds", "1", **job)
    assert answer.code == 0, answer.stderr
    assert {launch.who_reaches.code for launch in place.launches().values()} == {"ranks_exposed_on_hosts"}
    assert len([line for line in answer.messages if "ranks" in line]) == 1


LATER_REFUSED = """
from pathlib import Path
from kit.errors import KitError
from kit.runner.worker_processes import network_of_ranks, who_reaches
assert who_reaches("torch", 1).code == "ranks_private"
Path("/proc/sys/user/max_net_namespaces").write_text("0")
try:
    network_of_ranks()
except KitError as error:
    print(error)
"""


def test_ranks_do_not_start_in_the_open_after_the_user_was_told_that_nobody_reaches_them():
    needs_namespaces()
    refusing()
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", LATER_REFUSED]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": PYTHONPATH}, check=False
    )
    assert done.stdout.count("\n") == 1 and "raise user.max_net_namespaces" in done.stdout, done.stderr
