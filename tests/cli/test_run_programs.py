"""`kit run --program`: real members run users' files, the tutorials' models among them, and two are an A/B test."""

import json
import os
import subprocess
import sys

import pytest
from kit_process import REPOSITORY, kit
from msgspec import convert
from small_suite import measure

from kit.profile.fields import Reason
from kit.profile.program_source import file_sha256
from kit.profile.store import read_profile
from kit.report.reasons_in_words import sentence

EXAMPLES = REPOSITORY / "docs" / "examples"
# Seconds long; its own programs are one that works and one for each fault that only running shows.
SHORT = """
name = "short"
title = "Short"
[cells]
batches = [16]
[programs]
{programs}
"""
MODELS = """
import numpy as np

def works(batch, device):
    weights = [np.ones((64, 64))] * 4
    return {"step": lambda weight: np.ones((batch, 64)) @ weight, "batches": weights}

def raises(batch, device):
    print("no weights here")
    def step():
        return np.ones((batch, 3)) @ np.ones((4, 3))
    return step

def nothing(batch, device):
    return lambda: None

def shrinks(batch, device):
    sizes = [batch] * 2
    return lambda: np.ones((sizes.pop() if sizes else 1, 1000))

def counts(batch, device):
    return works(batch, device) | {"tokens": 64}

def counts_more(batch, device):
    return works(batch, device) | {"tokens": 256}

def miscounts(batch, device):
    return works(batch, device) | {"tokens": 0.5}

def exits(batch, device):
    import sys
    return lambda: sys.exit(0)

def interrupts(batch, device):
    raise KeyboardInterrupt

def ends_at_once(batch, device):
    import os
    return lambda: os._exit(7)

def diverges(batch, device):
    return lambda: np.full((batch, 1000), np.inf)

def masked(batch, device):
    return {"step": lambda: np.full((batch, 1000), -np.inf), "finite": False}
"""


def short_suite(folder, rounds, *paths):
    programs = "\n".join(f'p{number}.path = "{path}"' for number, path in enumerate(paths))
    (folder / "short.toml").write_text(
        SHORT.format(programs=programs) + measure(rounds, block_s=0.05, share='["task"]')
    )
    return "short.toml"


def test_a_program_is_measured_and_a_bad_one_is_one_line(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    names = ("works", "raises", "nothing", "shrinks", "exits", "interrupts", "ends_at_once", "diverges", "masked")
    suite = short_suite(tmp_path, 1, *(f"models.py:{name}" for name in names))
    done = kit(tmp_path, "run", suite, "--json", "--out", "run.json")
    assert done.returncode == 3, done.stderr
    failed = {names[int(key[1])]: failure for key, failure in json.loads(done.stdout)["failed"].items()}
    assert {name: (failure["phase"], failure["reason"]["code"]) for name, failure in failed.items()} == {
        "raises": ("first_step", "program_raised"),
        "nothing": ("first_step", "refused"),
        "shrinks": ("warmup", "refused"),
        "exits": ("first_step", "program_raised"),
        "interrupts": ("build", "program_raised"),
        "ends_at_once": ("first_step", "exit_code"),
        "diverges": ("steady", "program_output_not_finite"),
    }
    words = {name: sentence(convert(failure["reason"], Reason)) for name, failure in failed.items()}
    for name, begin, line in (
        ("exits", "SystemExit: 0 (", "    return lambda: sys.exit(0)"),
        ("interrupts", "KeyboardInterrupt: no message (", "    raise KeyboardInterrupt"),
    ):
        at = failed[name]["reason"]["values"]["line"]
        assert words[name].startswith(begin) and MODELS.splitlines()[at - 1] == line
    assert words["ends_at_once"].startswith("ended with exit code 7 (")
    raised = failed["raises"]["reason"]["values"]
    assert (raised["type"], raised["file"]) == ("ValueError", str(tmp_path / "models.py"))
    assert MODELS.splitlines()[raised["line"] - 1] == "        return np.ones((batch, 3)) @ np.ones((4, 3))"
    profile = read_profile(tmp_path / "run.json")
    source = profile.suite.programs["p0"]
    assert (source.path, source.sha256) == (str(tmp_path / "models.py"), file_sha256(tmp_path / "models.py"))
    launch = next(result for result in profile.cells if result.cell.workload == "p0").launches[0]
    assert launch.gave_number and launch.backend_version.startswith("numpy ")
    compared = kit(tmp_path, "compare", "run.json", "--all-cycles").stdout
    assert "p8 returns was not checked for infinities and NaN" in " ".join(compared.split())
    audited = json.loads(kit(tmp_path, "audit", "run.json", "--rule", "loss-not-finite", "--format", "json").stdout)
    assert "output_need_not_be_finite" in json.dumps(audited)
    # There is none of these, and nothing stands for them.
    assert (launch.data, launch.parity, launch.fit, profile.suite.data) == (None, None, None, {})


def test_what_a_step_handles_gives_tokens_a_second(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    suite = short_suite(tmp_path, 2, "models.py:counts", "models.py:counts_more", "models.py:works")
    done = kit(tmp_path, "run", suite, "--out", "run.json")
    assert done.returncode == 0, done.stderr
    document = json.loads(kit(tmp_path, "compare", "run.json", "--metric", "token", "--json").stdout)
    numbers = {row["member"]: row["numbers"] for row in document["groups"][0]["rows"]}
    for name, tokens in (("p0", 64), ("p1", 256)):
        assert numbers[name]["tokens_per_s"] == pytest.approx(tokens * 1e9 / numbers[name]["step_ns"])
    assert "tokens_per_s" not in numbers["p2"]
    versus = {row["member"]: row["versus"] for row in document["groups"][0]["rows"]}
    # The same step with four times the tokens; beside other programs steps differ.
    assert versus["p1"]["ratio"] == pytest.approx(0.25, rel=0.4)
    suite = short_suite(tmp_path, 1, "models.py:miscounts")
    refused = kit(tmp_path, "run", suite, "--json", "--out", "miscounts.json")
    (failure,) = json.loads(refused.stdout)["failed"].values()
    assert (refused.returncode, failure["phase"], failure["reason"]["code"]) == (3, "build", "refused")


COMPILES = """
def program(batch, device):
    import jax
    import jax.numpy as jnp
    weights = jnp.ones((64, 64)) / 64

    @jax.jit
    def step(x):
        for number in range(80):
            x = jax.nn.relu(x @ weights) + number
        return x

    return lambda: step(weights)
"""


@pytest.mark.slow
def test_later_rounds_reuse_what_the_first_compiled(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "compiles.py").write_text(COMPILES)
    (tmp_path / "tmp").mkdir()
    suite, shares = short_suite(tmp_path, 2, "compiles.py"), {}
    for name, options in (("anew", ()), ("reused", ("--reuse-compiled",))):
        done = kit(tmp_path, "run", suite, *options, "--out", f"{name}.json", TMPDIR=str(tmp_path / "tmp"))
        assert done.returncode == 0, done.stderr
        launches = read_profile(tmp_path / f"{name}.json").cells[0].launches
        compiled = [phase.duration_ns for launch in launches for phase in launch.phases if phase.name == "first_step"]
        # On a busy machine there are more rounds.
        assert {launch.reused_compilation for launch in launches if launch.round} == {name == "reused"}
        assert not launches[0].reused_compilation
        shares[name] = max(compiled[1:]) / compiled[0]
    assert shares["reused"] < 0.5 * shares["anew"], shares
    # The table's compilation is that of the first round, and no cache is left.
    document = json.loads(kit(tmp_path, "compare", "reused.json", "--json").stdout)
    assert document["groups"][0]["rows"][0]["numbers"]["compile_ns"] == compiled[0]
    assert "reuse_compiled" in [note["what"]["code"] for note in document["notes"]]
    assert list((tmp_path / "tmp").iterdir()) == []
    # Networks of the kit, too, which otherwise never start from what was compiled earlier.
    words = ("--quick", "--backend", "jax", "--workload", "mlp", "--task", "infer", "--rounds", "2", "--no-energy")
    done = kit(tmp_path, "run", *words, "--data", "synthetic", "--reuse-compiled", "--out", "network.json")
    assert done.returncode == 0, done.stderr
    launches = read_profile(tmp_path / "network.json").cells[0].launches
    compiled = [phase.duration_ns for launch in launches for phase in launch.phases if phase.name == "compile"]
    assert max(compiled[1:]) < 0.5 * compiled[0], compiled
    image = kit(tmp_path, "run", suite, "--reuse-compiled", "--variant", "a:image=steadykit:cpu", "--dry-run")
    assert image.returncode == 2, image.stderr


def test_a_run_ends_with_its_table_on_a_terminal(tmp_path):
    (tmp_path / "models.py").write_text(MODELS)
    suite = short_suite(tmp_path, 1, "models.py:works", "models.py:raises")
    reader, terminal = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "kit", "run", suite, "--out", "my run.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_COLOR": "1"},
        stdout=terminal,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=200,
    )
    os.close(terminal)
    # What was printed waits in the terminal, fewer bytes than it holds.
    shown = os.read(reader, 4096).decode().splitlines()
    os.close(reader)
    assert done.returncode == 3, done.stderr
    assert shown[0].startswith("short: 2 programs on cpu")
    assert any(line.startswith("  p1") and "failed" in line for line in shown)
    assert shown[-1] == "all columns: kit compare 'my run.json' --wide"
    assert "programs on cpu" not in done.stderr and "train" not in "".join(shown)
    (failed, *printed) = done.stderr.partition("kit: failed: ")[2].splitlines()
    assert failed.startswith("p1 (") and printed == ["  no weights here"]


@pytest.mark.frameworks
@pytest.mark.slow
def test_two_tutorials_are_an_a_b_test(tmp_path):
    pytest.importorskip("torch"), pytest.importorskip("jax")
    suite = short_suite(tmp_path, 1, "models.py")
    programs = [f"--program={EXAMPLES / name}_tutorial.py" for name in ("torch", "jax")]
    done = kit(tmp_path, "run", suite, *programs, "--batch", "8", "--out", "run.json")
    assert done.returncode == 0, done.stderr
    profile = read_profile(tmp_path / "run.json")
    (group,) = profile.groups
    assert group.cells == [f"{name}_tutorial/program/cpu/train/b8/own/own/own/x1" for name in ("torch", "jax")]
    versions = [result.launches[0].backend_version.split()[0] for result in profile.cells]
    assert versions == ["torch", "jax"]
    assert profile.cells[0].launches[0].threads.reported == len(os.sched_getaffinity(0))
    compared = kit(tmp_path, "compare", "run.json", "--format", "json")
    assert compared.returncode == 0, compared.stderr
    (rows,) = [group["rows"] for group in json.loads(compared.stdout)["groups"]]
    assert [row["name"] for row in rows if row["versus"] is not None] == ["jax_tutorial"]


@pytest.mark.frameworks
@pytest.mark.slow
def test_the_tensorflow_tutorial_runs_in_both_tasks(tmp_path):
    pytest.importorskip("tensorflow")
    suite = short_suite(tmp_path, 1, EXAMPLES / "tensorflow_tutorial.py")
    done = kit(tmp_path, "run", suite, "--out", "run.json")
    assert done.returncode == 0, done.stderr
    cells = read_profile(tmp_path / "run.json").cells
    assert [result.cell.task for result in cells] == ["train", "infer"]
    assert {result.launches[0].backend_version.split()[0] for result in cells} == {"tensorflow"}
    assert len({result.launches[0].process for result in cells}) == 1
