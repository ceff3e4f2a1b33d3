"""Readers that go away, and terminals: what is said may be lost, what is done is not."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from profile_builder import build_profile, six_cells

from kit.profile.store import read_profile, write_profile

KIT = [sys.executable, "-m", "kit"]
TINY = (
    'name = "tiny"\ntitle = "Seconds long"\n[cells]\nworkloads = ["mlp"]\nbackends = ["torch"]\ntasks = ["infer"]\n'
    "batches = [16]\n[measure]\nlaunches = 2\nwarmup_s = 0.05\nwarmup_steps_min = 3\nsteady_s = 0.1\nsteps_min = 30\n"
    "steps_max = 200\n"
)


@pytest.fixture
def slower(tmp_path):
    """Two profiles, of which the second is slower."""
    medians = {"tensorflow": 4.4, "torch": 2.3, "jax": 2.3}
    for name, fields in (("a", {}), ("b", {"medians_ms": medians})):
        write_profile(tmp_path / f"{name}.json", build_profile(six_cells(**fields), id=name))
    return ["compare", "a.json", "b.json", "--fail-if-slower", "3"]


@pytest.mark.parametrize("form", ["text", "json", "csv", "junit", "markdown"])
def test_a_gate_holds_though_nobody_reads_its_table(slower, tmp_path, form):
    reading, writing = os.pipe()
    os.close(reading)
    answer = subprocess.run(
        [*KIT, *slower, "--format", form], stdout=writing, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
    )
    os.close(writing)
    assert answer.returncode == 1
    assert answer.stderr.startswith("kit: slower by more than 3 %: ")


def test_a_full_disk_under_the_table_is_told(slower, tmp_path):
    with Path("/dev/full").open("wb") as full:
        answer = subprocess.run(
            [*KIT, *slower], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].startswith("kit: ")
    assert "Traceback" not in answer.stderr


def run_into(stderr, tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    return subprocess.Popen(
        [*KIT, "run", "tiny.toml", "--data", "synthetic", "--out", "run.json"],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        cwd=tmp_path,
    )


@pytest.mark.frameworks
@pytest.mark.parametrize("what", ["a pipe without a reader", "a full disk", "a terminal that is closed"])
def test_a_run_measures_on_when_nobody_hears_it(what, tmp_path):
    if what == "a terminal that is closed":
        controller, stderr = pty.openpty()
    elif what == "a full disk":
        controller, stderr = None, os.open("/dev/full", os.O_WRONLY)
    else:
        controller, stderr = os.pipe()
    process = run_into(stderr, tmp_path)
    os.close(stderr)
    if controller is not None:
        os.close(controller)
    assert process.wait(120) == 0
    (cell,) = read_profile(tmp_path / "run.json").cells
    assert len(cell.launches) == 2


@pytest.mark.parametrize("closed", [[1], [2], [0, 1, 2]])
def test_closed_streams_are_nowhere_and_the_exit_code_stays(slower, tmp_path, closed):
    answer = subprocess.run(closing(closed, slower), capture_output=True, text=True, cwd=tmp_path, check=False)
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert (answer.stdout == "") == (1 in closed)


@pytest.mark.frameworks
def test_no_file_of_a_run_gets_the_number_of_a_closed_stream(tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    command = closing([0, 1, 2], ["run", "tiny.toml", "--data", "synthetic", "--out", "run.json"])
    assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0
    (cell,) = read_profile(tmp_path / "run.json").cells
    assert len(cell.launches) == 2


def closing(descriptors, arguments):
    """The command, begun without these descriptors."""
    return ["sh", "-c", f'exec "$@" {" ".join(f"{one}>&-" for one in descriptors)}', "sh", *KIT, *arguments]
