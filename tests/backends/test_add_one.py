"""To add one is to write one: what docs/extending.md says of networks, a new layer, a data set, and a backend."""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kit.profile.store import read_profile

REPOSITORY = Path(__file__).parents[2]
EXTENDING = REPOSITORY / "docs" / "extending.md"

BACKEND = """
import numpy as np
from kit.backends.plain.about import ENTRY

class Program:
    def __init__(self, workload, weights):
        self._workload, self._weights = workload, weights

    def put(self, batch):
        return batch

    def step(self, batch):
        x = batch.inputs
        for placed in self._workload.placed_layers():
            own = {name: self._weights[f"{placed.name}.{name}"] for name in placed.weights}
            match type(placed.layer).__name__:
                case "Dense":
                    x = x @ own["kernel"] + own["bias"]
                case "Elman":
                    h = 0 * x[:, 0] @ own["kernel"]
                    for t in range(x.shape[1]):
                        h = np.tanh(x[:, t] @ own["kernel"] + h @ own["recurrent_kernel"] + own["bias"])
                    x = h
                case _:
                    raise ENTRY.untranslated(placed.layer)
        return x

class Backend:
    def build(self, workload, cell, weights, seed):
        return Program(workload, weights)

BACKEND = Backend()
"""

RUN = """
import json, os, sys
from kit import backends
from kit.workloads import datasets, networks
for package in (backends, datasets, networks):
    package.__path__.append(f"{sys.argv[1]}/{package.__name__.rsplit('.')[-1]}")

import numpy as np
from kit.backends.catalog import FRAMEWORKS, load
from kit.profile.cell import Cell
from kit.workloads.catalog import DATASETS, WORKLOADS
from kit.workloads.data.batches import batch_pool
from kit.workloads.data.choice import dataset, ensure
from kit.workloads.weights import initial_weights

workload = WORKLOADS["elman"]
cell = Cell(workload="elman", backend="plain", device="cpu", task="infer", batch=4, precision="float32",
            compile_mode="eager", feed="device")
weights = initial_weights(workload, 0)
answers = {}
for choice in ("auto", "synthetic"):
    data = dataset(ensure(choice, workload.data).name, workload.data)
    batch, *_ = batch_pool(workload, data, data.load("train"), cell.batch, seed=0)
    program = load("plain").build(workload, cell, weights, 0)
    answers[choice] = {"data": data.name, "logits": program.step(program.put(batch)).tolist(),
                       "inputs": batch.inputs.tolist()}
print(json.dumps({"answers": answers, "backends": FRAMEWORKS, "quiet": os.environ.get("PLAIN_QUIET"),
                  "weights": {name: array.tolist() for name, array in weights.items()},
                  "sets": sorted(DATASETS), "networks": sorted(WORKLOADS)}))
"""


def logits(inputs, weights):
    """By hand, from the named weights."""
    x, h = np.array(inputs), np.zeros((4, 5))
    w = {name: np.array(array) for name, array in weights.items()}
    for t in range(4):
        h = np.tanh(x[:, t] @ w["elman_0.kernel"] + h @ w["elman_0.recurrent_kernel"] + w["elman_0.bias"])
    return h @ w["dense_1.kernel"] + w["dense_1.bias"]


def test_a_file_each_is_all_it_takes(tmp_path):
    written = re.findall(r"```python\n# kit/(?:workloads/)?(\S+)\n(.*?)```", EXTENDING.read_text(), re.DOTALL)
    added = {name: text for name, text in written if name.startswith(("datasets/", "networks/", "backends/"))}
    assert len(added) == 4
    added |= {"backends/plain/__init__.py": "", "backends/plain/backend.py": BACKEND}
    for name, text in added.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "data" / "signals").mkdir(parents=True)
    for split, rows in (("train", 20), ("test", 10)):
        content = (np.arange(rows * 13, dtype="<f4") % 2).tobytes()
        (tmp_path / "data" / "signals" / f"{split}.gz").write_bytes(gzip.compress(content))
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)],
        env=os.environ | {"KIT_DATA": str(tmp_path / "data"), "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["backends"] == ["tensorflow", "torch", "jax", "plain"] and said["quiet"] == "1"
    assert "signals" in said["sets"] and "elman" in said["networks"]
    for choice, name in (("auto", "signals"), ("synthetic", "synthetic")):
        answer = said["answers"][choice]
        assert answer["data"] == name
        np.testing.assert_allclose(answer["logits"], logits(answer["inputs"], said["weights"]), atol=1e-5)
    assert set(np.unique(said["answers"]["auto"]["inputs"])) == {0.0, 1.0}


BLOCK = re.compile(r"```python\n# (kit/[^\s,]+)(?:, )?([^\n]*)\n(.*?)```", re.DOTALL)


def put(tree, path, where, text):
    """Put a block of the page where it says."""
    file = tree / path
    if not where:
        file.write_text(text)
    elif where == "among the imports":
        file.write_text(file.read_text().replace("\nfrom kit.", f"\n{text}from kit.", 1))
    else:
        assert where == "a case of _translate"
        file.write_text(file.read_text().replace("        case _:\n", f"{text}        case _:\n", 1))


@pytest.mark.slow
@pytest.mark.frameworks
def test_the_networks_of_the_page_are_measured_by_its_commands(tmp_path):
    pytest.importorskip("torch")
    shutil.copytree(REPOSITORY / "kit", tmp_path / "kit", ignore=shutil.ignore_patterns("__pycache__"))
    page = EXTENDING.read_text()
    for path, where, text in BLOCK.findall(page):
        if path.startswith(("kit/workloads/", "kit/backends/torch/")):
            put(tmp_path, path, where, text)
    commands = [
        shlex.split(line) for line in re.findall(r"^    kit (run --workload (?:wide|elman) .*torch.*)$", page, re.M)
    ]
    assert len(commands) == 2
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "kit", *command, "--task", "train"],
            cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        (cell,) = read_profile(tmp_path / command[-1]).cells
        assert cell.launches[0].gave_number
