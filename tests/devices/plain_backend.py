"""A copy of the kit with a backend that runs on any kind of device: NumPy computes, as if it were there.

In the copy, blocks for energy last seconds, and joules may have a larger error.
"""

import shutil

import pytest
from kit_process import REPOSITORY, copy_kit
from small_suite import measure

from kit.audit.results import GAPS

# A suite of it, seconds long.
SUITE = """
name = "small"
title = "Seconds long"
compare = ["batch"]
[cells]
workloads = ["mlp"]
backends = ["plain"]
devices = ["gpu"]
tasks = ["train"]
batches = [4, 8]
""" + measure()
# Real sensors need blocks of ten seconds, and three seconds of idle before and after them.
SHORTENED = {
    "stats/window_energy.py": (
        ("UPDATES_PLANNED = 100", "UPDATES_PLANNED = 10"),
        ("WINDOW_MIN_NS = 10_000_000_000", "WINDOW_MIN_NS = 1_000_000_000"),
        ("UPDATES_MIN = 50", "UPDATES_MIN = 5"),
        ("ERROR_SHARE_MAX = 0.05", "ERROR_SHARE_MAX = 0.4"),
        ("COVERAGE_MIN = 0.9", "COVERAGE_MIN = 0.6"),
        ("PART_UPDATES_MIN = 10", "PART_UPDATES_MIN = 3"),
        ("IDLE_ERROR_SHARE_MAX = 0.2", "IDLE_ERROR_SHARE_MAX = 0.8"),
    ),
    "sensors/nvml.py": (("LAG_MAX_NS = 1_500_000_000", "LAG_MAX_NS = 100_000_000"),),
    "audit/energy.py": (("UPDATES_NEEDED = 100", "UPDATES_NEEDED = 10"),),
    "runner/response.py": (("LOADS, LOAD_S, IDLE_S = 3, 4.0, 3.0", "LOADS, LOAD_S, IDLE_S = 3, 2.6, 1.7"),),
    "suites/first-hour.toml": (
        ("width = [1024], depth = [8]", "width = [64], depth = [1]"),
        ('precisions = ["bfloat16"]', 'precisions = ["float32"]'),
        ("rounds = 3", "rounds = 1"),
        ("cycles = 6", "cycles = 4\nblock_s = 0.1"),
        ("warmup_s = 0.5", "warmup_s = 0.1"),
        (
            'workloads = ["mlp", "cnn", "cnn_sgd", "cnn_small", "rnn", "lstm", "dblstm", "transformer", "autoencoder"]',
            'workloads = ["autoencoder"]',
        ),
    ),
    "runner/warm_up_and_blocks.py": (("IDLE_UPDATES = 3_000_000_000, 20", "IDLE_UPDATES = 500_000_000, 5"),),
}
# A step that tells the stand-in, by the file that NVML_LOAD names, when a GPU is loaded, and sleeps meanwhile.
OPERATIONS = """
import os
import time
from pathlib import Path

import numpy as np
from kit.backends.plain.backend import OnDevice, Program

APART_NS = 50_000_000


class Operation(Program):
    def __init__(self, cell):
        path = os.environ.get("NVML_LOAD")
        self._loads = None if path is None else np.memmap(path, np.int64, "r+", shape=(4096, 2))

    def step(self, batch):
        begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        time.sleep(0.002)
        if self._loads is not None:
            self._tell(begin_ns, time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
        return OnDevice(np.float32(1))

    def _tell(self, begin_ns, end_ns):
        count = self._loads[0, 0]
        if count and begin_ns - self._loads[count, 1] < APART_NS:
            self._loads[count, 1] = end_ns
        else:
            self._loads[count + 1] = begin_ns, end_ns
            self._loads[0, 0] = count + 1


def build(cell):
    return Operation(cell)
"""
PLAIN = REPOSITORY / "tests/faults/planted/backends/plain"
# The devices of its entry, what a step returns, and a share of memory, PLAIN_NEEDS_SHARE, below which it is too small.
EDITS = (
    ('kind == "cpu"', 'kind in ("cpu", "KIND")'),
    (
        "        logits = self._logits(batch)\n        return",
        """        time.sleep(float(os.environ.get("PLAIN_STEP_S", "0")))
        logits = self._logits(batch)
        return""",
    ),
    ("return logits.mean() if", "return OnDevice(logits.mean()) if"),
    ('        if workload.name != "mlp":\n            raise ENTRY.untranslated(last.layer)\n', ""),
    (
        "    def compilations(self):\n",
        """    def settings(self):
        return {"targets": os.environ.get("PLAIN_TARGETS", "KIND:0")}

    def device_event(self):
        return Event()

    def compilations(self):
""",
    ),
    ("import numpy", "import os\nimport time\n\nimport numpy"),
    (
        "    def build(self, workload, cell, weights, seed):\n",
        """    share = 1.0

    def share_gpu_memory(self, share):
        self.share = share

    def build(self, workload, cell, weights, seed):
        if self.share < float(os.environ.get("PLAIN_NEEDS_SHARE", "0")):
            raise OutOfMemoryError("out of memory")
""",
    ),
    (
        "BACKEND = ",
        """class OutOfMemoryError(RuntimeError):
    pass


class Event:
    def __init__(self):
        self.at_s = time.perf_counter()

    def elapsed_time(self, later):
        return 1e3 * (later.at_s - self.at_s) * float(os.environ.get("PLAIN_DEVICE_PACE", "1"))


class OnDevice:
    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype)


BACKEND = """,
    ),
)


def copied_kit(folder, kind):
    """Copy the kit into the folder, with the backend `plain` and its entry for devices of a kind."""
    copy_kit(folder)
    shutil.copytree(PLAIN, folder / "kit/backends/plain")
    for name, edits in SHORTENED.items():
        edit(folder / "kit" / name, edits)
    backend = folder / "kit/backends/plain/backend.py"
    edit(backend, [(old, new.replace("KIND", kind)) for old, new in EDITS])
    (folder / "kit/backends/plain/operations.py").write_text(OPERATIONS)


def assert_idle(energy, watts, planted_w, rel):
    """Beside a busy neighbor the sampler may read too little in half a second of idle: then the kit refuses it."""
    if watts is None:
        assert energy.idle_reason.code in GAPS, energy
    else:
        assert watts == pytest.approx(planted_w, rel=rel), energy


def edit(path, edits):
    text = path.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
