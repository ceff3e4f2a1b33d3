"""`kit run` with real ceilings: what computes nothing is found, whoever claims it; what computes is not."""

import json
import os
import shutil

import pytest
from kit_process import REPOSITORY, copy_kit, kit
from small_suite import measure

from kit.profile.store import read_profile

pytestmark = pytest.mark.frameworks
MEASURE = measure(block_s=0.05)
PROGRAMS = """
name = "programs"
title = "Programs beside a dispatch"
[programs]
nothing.path = "models.py:nothing"
works.path = "models.py:works"
[[cells]]
workloads = ["nothing", "works"]
backends = ["program"]
precisions = ["own"]
compile_modes = ["own"]
feeds = ["own"]
tasks = ["train"]
batches = [64]
[[cells]]
workloads = ["empty"]
backends = ["jax"]
tasks = ["infer"]
batches = [1]
"""
# A microsecond goes by in Python, less than half of what JAX takes to start an operation, and none is started.
MODELS = """
import numpy as np

def nothing(batch, device):
    loss = np.float32(0.5)
    def step():
        for _ in range(160):
            pass
        return loss
    return step

def works(batch, device):
    x, w = np.ones((batch, 512), np.float32), np.ones((512, 512), np.float32)
    return lambda: x @ w
"""
BACKENDS = """
name = "backends"
title = "A network beside the products of another framework"
[[cells]]
workloads = ["mlp"]
backends = ["plain", "torch"]
tasks = ["train"]
batches = [1024]
[[cells]]
workloads = ["matmul"]
backends = ["torch"]
parameters = { n = [512] }
"""


def audited(folder, *rules, **environment):
    words = [word for rule in rules for word in ("--rule", rule)]
    findings = json.loads(kit(folder, "audit", "run.json", *words, "--json", **environment).stdout)["findings"]
    return [(finding["code"], finding["severity"], finding["cell_key"].split("/")[:2]) for finding in findings]


def test_a_program_that_computes_nothing_is_found_and_one_that_works_is_not(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "suite.toml").write_text(PROGRAMS + MEASURE)
    (tmp_path / "models.py").write_text(MODELS)
    done = kit(tmp_path, "run", "suite.toml", "--out", "run.json")
    assert done.returncode == 0, done.stderr
    assert [result.cell.workload for result in read_profile(tmp_path / "run.json").cells] == [
        "nothing",
        "works",
        "empty",
    ]
    assert audited(tmp_path, "above-ceiling") == [("shorter_than_dispatch", "warning", ["nothing", "program"])]


@pytest.mark.slow
def test_a_backend_that_claims_a_network_and_computes_next_to_nothing_is_found(tmp_path):
    pytest.importorskip("torch")
    copy_kit(tmp_path)
    shutil.copytree(REPOSITORY / "tests/faults/planted/backends/plain", tmp_path / "kit/backends/plain")
    here = {"PYTHONPATH": os.fspath(tmp_path)}
    (tmp_path / "suite.toml").write_text(BACKENDS + MEASURE)
    done = kit(tmp_path, "run", "suite.toml", "--data", "synthetic", "--out", "run.json", **here)
    assert done.returncode == 0, done.stderr
    findings = audited(tmp_path, "above-ceiling", **here)
    assert [finding for finding in findings if finding[1] == "bad"] == [("above_ceiling", "bad", ["mlp", "plain"])]
    # It has no operations: there is nothing to add, and that is said.
    refused = kit(tmp_path, "run", "--backend", "plain", "--ceilings", "--dry-run", **here)
    assert refused.returncode == 2 and "plain has no operations" in refused.stderr
