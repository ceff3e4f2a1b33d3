"""`kit fleet` on this machine alone: a job over its time limit, one that fails, and what is no use to begin with."""

import contextlib
import os
import signal
import subprocess
import sys

import profile_builder as b
import psutil
import pytest
from fleet_runs import PYTHONPATH, command, fleet, suite, waited
from kit_process import invoke
from refusals import refusal

from kit.fleet.nodes import nodes_of
from kit.fleet.reframe_run import FleetPlan, nodes_left
from kit.profile.unfinished import folder_of


@pytest.mark.slow
def test_a_job_over_its_time_limit_is_named_and_resumed(reframe, place):
    (place / "hangs").touch()
    words = suite("--rounds", "1", "--scheduler", "local", "--nodes", "here", "--out", "out")
    started = command(place, f"[ -e {place}/hangs ] && exec sleep 60")
    done = fleet(place, *words, *started, "--time-limit", "1")
    assert done.returncode == 3, done.stderr
    assert "here" in done.stdout and "time limit" in done.stdout
    (place / "hangs").unlink()
    done = fleet(place, *words, *started, "--resume")
    assert done.returncode == 0, done.stderr
    assert "1 of 1 nodes measured" in done.stderr
    assert (place / "out/here.json").exists()
    done = fleet(place, *words, *started, "--resume", "--batch", "64")
    assert done.returncode == 2 and "began with" in done.stderr, "another suite's numbers are none of this one"


def test_a_node_whose_kit_fails_says_why_in_its_own_words(reframe, place):
    words = suite("--scheduler", "local", "--nodes", "here", "--out", "out", "--retries", "1")
    first = f"[ -e {place}/again ] || {{ touch {place}/again; echo 'kit: the first try' >&2; exit 2; }}"
    started = command(place, first, "echo 'kit: /data: no room left' >&2", "exit 2")
    done = fleet(place, *words, *started)
    assert done.returncode == 3
    assert "/data: no room left" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_of_the_command_alone_takes_its_jobs_back(reframe, place, number):
    words = suite("--scheduler", "local", "--nodes", "here", "--out", "out")
    started = command(place, f"echo $$ > {place}/pid; exec sleep 600")
    process = subprocess.Popen(
        [sys.executable, "-m", "kit", "fleet", *words, *started],
        cwd=place, env=os.environ | {"PYTHONPATH": PYTHONPATH}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert waited((place / "pid").exists)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume continues" in stderr
    assert waited(lambda: not psutil.pid_exists(int((place / "pid").read_text())))


def test_other_characters_of_a_shell_are_a_part_of_the_name(reframe, place):
    words = suite("--rounds", "1", "--scheduler", "local", "--nodes", "here", "--out", "x;y&(z)*#")
    done = fleet(place, *words, "--command", f"{sys.executable} -m kit")
    assert done.returncode == 0, done.stderr
    assert (place / "x;y&(z)*#" / "here.json").is_file()


def test_a_profile_beside_an_unfinished_run_is_measured_further(tmp_path):
    started = {"run_in": "/", "command": ["kit"], "words": [], "scheduler": "ssh"}
    plan = FleetPlan(nodes=["n0", "n1"], folder=str(tmp_path), **started)
    for node in plan.nodes:
        plan.profile(node).touch()
    folder_of(plan.profile("n1")).mkdir()
    assert nodes_left(plan, resume=True) == ["n1"]


def test_slurms_own_partition_is_chosen_and_what_it_says_of_its_nodes_is_kept(tmp_path, monkeypatch):
    answers = r"a|a\nb|b*\n", r"n1|idle~|none\nn2|drained*|bad disk\n"
    (tmp_path / "sinfo").write_text("#!/bin/sh\n[ $# = 3 ] && printf '{}' || printf '{}'\n".format(*answers))
    (tmp_path / "sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    partition, nodes = nodes_of("slurm", None, None)
    assert partition == "b"
    assert [(node.name, node.is_usable, node.why) for node in nodes] == [("n1", True, ""), ("n2", False, "bad disk")]


def test_without_reframe_one_line_says_what_to_install(place):
    code = "import sys; sys.modules['reframe'] = None; from kit.cli import main; main()"
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    done = subprocess.run(
        [sys.executable, "-c", code, "fleet", *suite()],
        cwd=place, env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "steadykit[fleet]" in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture
def measured(place, monkeypatch):
    """A stand-in for ReFrame that writes profiles: `measured(slow) -> (exit code, files)`; the plans are in `plans`."""
    plans = []

    def begin(slow, *words, nodes=8):
        """`slow`: of n0 by how much in each measurement of it, 0 where that gives no profile."""

        def measure(plan, *_):
            plans.append((plan.is_again, plan.nodes))
            factors = {node: slow[plan.is_again] if node == "n0" else 1.0 for node in plan.nodes}
            for node, factor in factors.items():
                member = b.member("torch", 2.0 * factor, sd=0.005, noise=0.005)
                number = int(node[1:]) + 100 * plan.is_again
                fields = {"rounds": 4, "drift": 0.005, "seed": number, "label": node, "id": str(number)}
                identity = b.identity(hostname_sha256=node)
                if factor:
                    b.write(plan.profile(node), b.profile(b.group("mlp train", member), identity=identity, **fields))
            return {node: b.reason("node_time_limit") for node, factor in factors.items() if not factor}

        monkeypatch.setattr("kit.fleet.reframe_run.measure", measure)
        (place / "out").mkdir(exist_ok=True)
        names = ",".join(f"n{node}" for node in range(nodes))
        given = ["fleet", "quick", "--scheduler", "ssh", "--nodes", names, "--out", "out", *words]
        with contextlib.chdir(place):
            done = invoke(*given)
        assert done.exception is None, done.exception
        return done.return_value, {path.name: path.read_bytes() for path in (place / "out").glob("*.json")}

    begin.plans = plans
    return begin


@pytest.mark.parametrize(("second", "code"), [(1.3, 1), (1.0, 0), (0.0, 5)])
def test_a_slower_node_is_measured_once_more_beside_its_first_profile(reframe, measured, second, code):
    assert measured((1.3, second))[0] == code
    assert measured.plans == [(False, [f"n{node}" for node in range(8)]), (True, ["n0"])]


def test_resume_measures_a_suspect_that_has_no_second_profile(reframe, measured):
    _, before = measured((1.3, 0.0))
    assert "n0.json" in before and "n0+again.json" not in before
    code, after = measured((1.3, 1.3), "--resume")
    assert code == 1 and measured.plans[-1] == (True, ["n0"])
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"n0+again.json"}
    planned = len(measured.plans)
    assert measured((1.3, 1.3), "--resume") == (1, after)
    assert len(measured.plans) == planned


def test_a_plan_of_another_version_is_one_line(reframe, measured, place, monkeypatch):
    measured((1.0, 1.0), nodes=2)
    monkeypatch.chdir(place)
    (place / "out/.fleet").mkdir()
    (place / "out/.fleet/plan.json").write_text('{"nodes": ["n0"], "arguments": ["quick"]}')
    words = ["fleet", "quick", "--scheduler", "ssh", "--nodes", "n0,n1", "--out", "out", "--resume"]
    assert "another version of the kit" in refusal(invoke(*words))


def test_no_node_is_measured_twice_where_none_is_slower(reframe, measured):
    assert measured((1.0, 1.0))[0] == 0
    assert len(measured.plans) == 1
