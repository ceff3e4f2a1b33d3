"""Programs that start processes which begin anew: these find the functions and classes of the program's own file."""

import json
import subprocess
import sys

import pytest
from kit_process import REPOSITORY, kit
from small_suite import measure

from kit.profile.store import read_profile

SPAWNED = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from neighbor import twice


class Box:
    def __init__(self, number):
        self.number = twice(number)


def boxed(number):
    return Box(float(number))


def put(queue, number):
    queue.put(boxed(number))


def pool_of(method):
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method))


def spawn(batch, device):
    pool = pool_of("spawn")
    return lambda: np.float32(pool.submit(boxed, 3).result().number)


def forkserver(batch, device):
    pool = pool_of("forkserver")
    return lambda: np.float32(pool.submit(boxed, 3).result().number)


def process(batch, device):
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    context.Process(target=put, args=(queue, 3)).start()
    number = queue.get().number
    return lambda: np.full((64, 64), number) @ np.ones((64, 64))
"""
LOADER = """
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((4,), float(index**2))


def program(batch, device):
    batches = DataLoader(Squares(), 4, num_workers=1, multiprocessing_context="spawn", persistent_workers=True)
    return {"step": lambda x: x.sum(), "batches": batches}
"""
SUITE = 'name = "spawning"\ntitle = "Spawning"\n[cells]\nbatches = [4]\n'


def write(folder, name, text):
    (folder / name).write_text(text)
    (folder / "neighbor.py").write_text("def twice(number):\n    return 2 * number\n")


def failures(folder, *programs):
    paths = "".join(f'p{number}.path = "{path}"\n' for number, path in enumerate(programs))
    (folder / "suite.toml").write_text(f"{SUITE}[programs]\n{paths}{measure(1, block_s=0.05, energy_s=0)}")
    done = kit(folder, "run", "suite.toml", "--json", "--out", "run.json")
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)["failed"], done.stderr


def test_functions_of_the_file_reach_processes_that_spawn(tmp_path):
    write(tmp_path, "my spawned-file.v2.py", SPAWNED)
    (tmp_path / "package").mkdir()
    write(tmp_path, "package/inner.py", SPAWNED)
    file = "my spawned-file.v2.py"
    failed, printed = failures(tmp_path, f"{file}:spawn", f"{file}:forkserver", "package.inner:process")
    assert failed == {}, printed


@pytest.mark.frameworks
@pytest.mark.slow
def test_a_data_loader_may_spawn_its_workers(tmp_path):
    pytest.importorskip("torch")
    write(tmp_path, "loader.py", LOADER)
    failed, printed = failures(tmp_path, "loader.py")
    assert failed == {}, printed


SCRIPT = """
import kit

class Called:
    def __call__(self, batch, device):
        return spawn(batch, device)

if __name__ == "__main__":
    programs = {"function": spawn, "object": Called()}
    kit.measure(programs, rounds=1, quick=True, batch=4, energy_s=0, out="run.json")
"""


@pytest.mark.slow
def test_functions_of_a_script_that_measures_reach_processes_that_spawn(tmp_path):
    write(tmp_path, "script.py", SPAWNED + SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env={"PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    launches = [launch for result in read_profile(tmp_path / "run.json").cells for launch in result.launches]
    assert [launch.failure for launch in launches] == [None, None]
