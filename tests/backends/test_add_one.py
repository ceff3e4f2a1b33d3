"""The steps of docs/reference/add-ons.md work: a network, a new layer, a data set and a backend."""

import gzip
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
from kit.workloads.parity_proof import PARITY_STEPS

REPOSITORY = Path(__file__).parents[2]
PLAIN = REPOSITORY / "tests" / "faults" / "planted" / "backends" / "plain" / "backend.py"
EXTENDING = REPOSITORY / "docs/reference/add-ons.md"

BLOCK = re.compile(r"```python\n# (kit/[^\s,]+)(?:, )?([^\n]*)\n(.*?)```", re.DOTALL)


def put(tree, path, where, text):
    """Put a block of the page where it says."""
    file = tree / path
    if not where:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    elif where == "an entry of NETWORKS":
        file.write_text(file.read_text().rstrip().removesuffix("]") + text + "]\n")
    elif where == "at its end":
        file.write_text(file.read_text() + "\n\n" + text)
    elif where == "in the place of GAUGES":
        return  # tests/sensors/test_linux.py
    elif where == "among the imports":
        file.write_text(file.read_text().replace("\nfrom kit.", f"\n{text}from kit.", 1))
    else:
        assert where == "a case of _translate"
        file.write_text(file.read_text().replace("        case _:\n", f"{text}        case _:\n", 1))


@pytest.fixture
def measured(tmp_path):
    """Run a command of a kit that has all that the page adds, and the page's data set: its launch."""
    shutil.copytree(REPOSITORY / "kit", tmp_path / "kit")
    for path, where, text in BLOCK.findall(EXTENDING.read_text()):
        put(tmp_path, path, where, text)
    put(tmp_path, "kit/backends/plain/__init__.py", "", "")
    # The page leaves open what a backend computes.
    put(tmp_path, "kit/backends/plain/backend.py", "", PLAIN.read_text().replace('"mlp"', '"elman"'))
    (tmp_path / "data" / "signals").mkdir(parents=True)
    for split, rows in (("train", 20), ("test", 10)):
        content = (np.arange(rows * 13, dtype="<f4") % 2).tobytes()
        (tmp_path / "data" / "signals" / f"{split}.gz").write_bytes(gzip.compress(content))

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-m", "kit", *words],
            cwd=tmp_path,
            env=os.environ | {"KIT_DATA": str(tmp_path / "data"), "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (result,) = read_profile(tmp_path / words[-1]).cells
        return result.launches[0]

    return run


def test_a_file_each_is_all_it_takes(measured):
    words = ("--backend", "plain", "--workload", "elman", "--batch", "4", "--task", "infer", "--rounds", "1")
    launch = measured("run", "--quick", *words, "--out", "run.json")
    assert launch.gave_number
    assert (launch.data.name, len(launch.parity.losses)) == ("signals", PARITY_STEPS)


@pytest.mark.slow
@pytest.mark.frameworks
def test_the_networks_of_the_page_are_measured_by_its_commands(measured):
    pytest.importorskip("torch")
    page = re.findall(r"^    kit (run --workload (?:wide|elman) .*torch.*)$", EXTENDING.read_text(), re.MULTILINE)
    assert len(page) == 2
    for command in page:
        # What is printed last is the profile.
        *words, out = shlex.split(command)
        assert measured(*words[:1], "--task", "train", *words[1:], out).gave_number
