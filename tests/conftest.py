"""Fixtures for every test. Nothing in the tests reaches a network beyond this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from planted_processor import PROCESSORS, plant_processor, planted_name, reach_every_process

# Where it is set, each process that a test starts would compile the kit anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
STANDINS = Path(__file__).parent / "standins"
# Their files share what is dear: what the frameworks did, an image, two Slurm nodes.
ONE_WORKER = ("backends", "docker", "fleet")
# What takes longest begins first, so that it does not run alone at the end.
FIRST = ("docker", "fuzz", "fleet", "backends", "devices", "docs", "faults", "worker")


@pytest.fixture(autouse=True, scope="session")
def usual_signals() -> None:
    """Let signals end this process and those it starts, as at a terminal: nohup and `&` have them ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def planted_processor(tmp_path_factory):
    """Let no test depend on this machine's processor or its counters of energy: KIT_TEST_PROCESSOR names another."""
    folder = tmp_path_factory.mktemp("processor")
    planted = plant_processor(folder, planted_name())
    with pytest.MonkeyPatch.context() as patch:
        # No test leaves a salt in its user's home.
        more = {"KIT_POWERCAP_ROOT": os.fspath(folder / "powercap"), "XDG_STATE_HOME": os.fspath(folder / "state")}
        for name, value in {**planted, **more}.items():
            patch.setenv(name, value)
        reach_every_process(patch)
        yield


@pytest.fixture
def run_as(tmp_path, monkeypatch):
    """Plant another processor for one test, here and in the processes that it starts: `run_as("amd")`."""

    def plant(name):
        for variable, value in plant_processor(tmp_path / "processor", name).items():
            monkeypatch.setenv(variable, value)
        return PROCESSORS[name]

    return plant


def pytest_collection_modifyitems(items):
    folders = {item: item.nodeid.split("/")[1] for item in items}
    items.sort(key=lambda item: FIRST.index(folders[item]) if folders[item] in FIRST else len(FIRST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give the tests of a file, or of one of these folders, to one worker."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            folder = nodeid.split("/")[1]
            return folder if folder in ONE_WORKER else super()._split_scope(nodeid)

    config.option.loadscopereorder = False
    return ByFile(config, log)


def compiled(folder, *flags):
    """Build the stand-ins into a folder."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wno-stringop-truncation", *flags]
    for source, library in (("nvml.c", "libnvidia-ml.so.1"), ("cuda.c", "libcuda.so.1")):
        subprocess.run([*command, "-o", str(folder / library), str(STANDINS / source)], check=True)
    return folder


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory):
    """Folder with a libnvidia-ml.so.1 that has boards of known power, and a libcuda.so.1 of the same boards."""
    return compiled(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_nvml_folder(tmp_path_factory):
    """The same of a driver that lacks the functions that came last."""
    return compiled(tmp_path_factory.mktemp("old_nvml"), "-DOLD_DRIVER")


@pytest.fixture(scope="session")
def in_nvml_process(nvml_folder):
    """Run Python code where the loader finds the stand-ins; its standard output."""

    def run(code, wrong="", folder=nvml_folder, **settings):
        environment = os.environ | {"LD_LIBRARY_PATH": str(folder), "NVML_STAND_IN": wrong} | settings
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
