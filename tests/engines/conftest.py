"""A planted program in the worker's place: it records a launch at once, and then ends as it is told to."""

import sys

import pytest

from kit.suites.plan import plan_cells
from kit.suites.suite import Axes

WORKER = """#!{python}
import os, signal, sys, tempfile, time
from pathlib import Path
from kit.profile.launch import Launch, Threads
import msgspec
if "--record" not in sys.argv:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
folder = Path(sys.argv[sys.argv.index("--record") + 1]).parent
variables = [os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]
asked = msgspec.json.decode((folder / "request.json").read_bytes())
launch = Launch(cell_key={key!r}, round=asked["round"], started="2026-01-01T00:00:00Z", python="3", backend_version="1")
launch.step_ns = [5, 6, 7]
launch.threads = Threads(requested=asked["threads"], reported=None, reported_reason=None, cpus=asked["cpus"])
launch.warnings = [tempfile.mkdtemp(), *map(str, variables)]
(folder / "launch.json").write_bytes(msgspec.json.encode(launch))
(folder / "trail").write_text("import\\nparity\\n")
{ending}
"""


@pytest.fixture(scope="session")
def torch_cell():
    (cell,) = plan_cells(Axes(backends=["torch"], workloads=["mlp"], tasks=["infer"], batches=[16]))
    return cell


@pytest.fixture
def plant(torch_cell, tmp_path, monkeypatch):
    def write(ending):
        python = tmp_path / "worker"
        python.write_text(WORKER.format(python=sys.executable, key=torch_cell.key, ending=ending))
        python.chmod(0o755)
        monkeypatch.setenv("KIT_PYTHON_TORCH", str(python))

    return write
