"""One batch over two real Slurm nodes; a node that dies in mid-run is named, and a new allocation resumes the run."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fleet_runs import PYTHONPATH, start_lost_nodes, state_of, waited
from kit_process import invoke
from refusals import refusal

from kit.profile.store import read_profile

RUN = ("run", "--quick", "--workload", "mlp", "--task", "train", "--data", "synthetic", "--backend")
OVER = ("--devices", "2", "--hosts", "2", "--out", "two.json")
ENDS_S = 150


@pytest.fixture
def job(slurm, tmp_path):
    """Begin `kit …` in a job of both nodes that Slurm does not end with one of them: `job(*words) -> Popen`."""
    jobs = []

    def submit(*words):
        script = tmp_path / "job.sh"
        line = " ".join([sys.executable, "-m", "kit", *words])
        script.write_text(f"#!/bin/sh\nPYTHONPATH={PYTHONPATH} exec {line}\n")
        asked = ["sbatch", "--wait", "--nodes=2", "--exclusive", "--no-kill", "--no-requeue", "--output=job.out"]
        jobs.append(subprocess.Popen([*asked, script.name], cwd=tmp_path, stdout=subprocess.DEVNULL))
        return jobs[-1]

    yield submit
    subprocess.run(["scancel", "--full", "--user", "root"], check=False)
    for submitted in jobs:
        submitted.wait(60)


def output(folder):
    path = folder / "job.out"
    return path.read_text(errors="replace") if path.exists() else ""


@pytest.mark.slow
def test_two_nodes_compute_what_one_device_does_and_the_profile_says_where(job, tmp_path):
    assert job(*RUN, "torch", *OVER, "--devices", "1", "--rounds", "1").wait(ENDS_S) == 0, output(tmp_path)
    profile = read_profile(tmp_path / "two.json")
    alone, shared = (result.launches[0] for result in sorted(profile.cells, key=lambda result: result.cell.devices))
    assert shared.parity.losses == pytest.approx(alone.parity.losses, rel=1e-5)
    assert (profile.suite.hosts, len(alone.ranks), len(shared.ranks)) == (2, 0, 2)
    assert {launch.turns for launch in (alone, shared)} == {"blocks"}
    if len(os.sched_getaffinity(0)) > 1:
        assert not {*shared.ranks[0].cpus} & {*shared.ranks[1].cpus}, "each node has its own"


@pytest.mark.slow
def test_a_node_that_dies_is_named_and_another_allocation_resumes(job, tmp_path):
    running = job(*RUN, "plain", *OVER, "--rounds", "2")
    assert waited(lambda: "round 1 of 2 done" in output(tmp_path), ENDS_S), output(tmp_path)
    assert waited(ranks_on_n2)
    try:
        lose(*ranks_on_n2())
        assert running.wait(ENDS_S) == 3, output(tmp_path)
    finally:
        start_lost_nodes()
    assert "lost with host n2" in output(tmp_path) and "--resume" in output(tmp_path)
    failures = failures_of(tmp_path / "two.json")
    assert failures[0] is None
    assert {(failure.reason.values["rank"], failure.reason.values["host"]) for failure in failures[1:]} == {(1, "n2")}
    assert waited(lambda: state_of("n1") == state_of("n2") == "idle")
    assert job("run", "--resume", "--out", "two.json").wait(ENDS_S) == 0, output(tmp_path)
    # Rounds that others disturbed are measured again.
    resumed = failures_of(tmp_path / "two.json")
    assert set(resumed) == {None} and len(resumed) >= 2
    assert ranks_on_n2() == []


def failures_of(path):
    (cell,) = read_profile(path).cells
    return [launch.failure for launch in cell.launches]


def ranks_on_n2():
    """Return the workers that steps of n2 have started: the job's own script and its worker run on n1."""
    workers = [process for process in psutil.process_iter(["cmdline"]) if is_module(process, "kit.worker")]
    ranks = [worker for worker in workers if not any(is_module(parent, "kit") for parent in worker.parents())]
    return [rank for rank in ranks if any(parent.name().startswith("slurmstepd") for parent in rank.parents())]


def is_module(process, name):
    """Whether it is `python -m NAME …`, or what `module_command` makes of that."""
    try:
        words = process.cmdline()
        return words[1:3] == ["-m", name] or words[4:5] == [name]
    except psutil.Error:
        return False


def lose(*ranks):
    """Kill all of n2's own: its daemon, its steps' daemons and the ranks."""
    steps = [step for rank in ranks for step in rank.parents() if step.name().startswith("slurmstepd")]
    os.kill(int(Path("/run/slurmd.n2.pid").read_text()), signal.SIGKILL)
    for process in (*steps, *ranks):
        with suppress(psutil.NoSuchProcess):  # a rank ends with its step
            process.kill()


def test_more_hosts_than_an_allocation_has_are_one_line(monkeypatch):
    if not any(Path(folder, "scontrol").exists() for folder in os.environ["PATH"].split(os.pathsep)):
        pytest.skip("no Slurm: its scontrol lists an allocation's hosts")
    for name in ("SLURM_JOB_NODELIST", "SLURMD_NODENAME"):
        monkeypatch.setenv(name, "n1")
    words = [*RUN, "torch", "--devices", "2", "--hosts", "2"]
    assert "give fewer, or allocate more" in refusal(invoke(*words))
