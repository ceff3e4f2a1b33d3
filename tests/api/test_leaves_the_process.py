"""What the command line switches, the Python interface leaves as it was."""

import contextlib
import gc
import locale
import logging
import os
import signal
import sys
import threading
import warnings
from pathlib import Path

import pytest
from kit_process import REPOSITORY

import kit

REFERENCE = REPOSITORY / "profiles/reference"
QUICK = REFERENCE / "cpu-xeon-2-vcpu-quick.json"


def surroundings():
    """Everything that belongs to whoever imports kit."""
    from matplotlib import get_backend, rcParams

    mask = os.umask(0)
    os.umask(mask)
    return {
        "collector": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "locale": locale.setlocale(locale.LC_ALL),
        "environment": dict(os.environ),
        "folder": Path.cwd(),
        "path": [*sys.path],
        "warnings": [*warnings.filters],
        "plots": (get_backend(), dict(rcParams)),
        "mask": mask,
        "logging": (logging.getLogger().level, [*logging.getLogger().handlers]),
        "hooks": (sys.excepthook, threading.excepthook, sys.getrecursionlimit()),
        "cpus": os.sched_getaffinity(0),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
    }


def measured():
    def program(batch, device):
        return lambda: sum(range(2000))

    return kit.measure({"a": program, "b": program}, rounds=1, quick=True, energy_s=0, threads=1)


CALLS = {
    "load": lambda: kit.load(QUICK),
    "load many": lambda: kit.load(REFERENCE),
    "columns": lambda: kit.load(QUICK).to_columns("blocks"),
    "frame": lambda: kit.load(QUICK).to_dataframe("steps"),
    "compare": lambda: kit.load(QUICK).compare(),
    "compare many": lambda: kit.load(REFERENCE).compare(filter="workload=mlp"),
    "compared": lambda: kit.load(QUICK).compare().to_dataframe(),
    "shown": lambda: (str(kit.load(QUICK).compare()), kit.load(QUICK).compare()._repr_html_()),
    "plot": lambda: kit.load(QUICK).compare().plot()._repr_png_(),
    "measure": measured,
    "load nothing": lambda: kit.load("gone.json"),
    "compare nothing": lambda: kit.load(QUICK).compare(metric="none"),
    "plot nothing": lambda: kit.load(QUICK).compare().plot("none"),
    "measure nothing": lambda: kit.measure({}),
}


# A run takes seconds: once is enough.
CASES = [(name, collects) for name in CALLS for collects in (True, False) if collects or name != "measure"]


@pytest.mark.parametrize(("name", "collects"), CASES)
def test_what_was_there_is_there_after_each_call(tmp_path, monkeypatch, name, collects):
    monkeypatch.chdir(tmp_path)
    (gc.enable if collects else gc.disable)()
    gc.unfreeze()  # what the command freezes before its process ends, in tests that call it in this one
    try:
        before = surroundings()
        with contextlib.suppress(kit.KitError):
            CALLS[name]()
        after = surroundings()
        assert [key for key in before if before[key] != after[key]] == []
    finally:
        gc.enable()
