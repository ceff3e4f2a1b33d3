import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory):
    """Folder with a libnvidia-ml.so.1 that has one board of known power."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml_stand_in.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-Wno-stringop-truncation"]
    subprocess.run([*command, "-o", str(folder / "libnvidia-ml.so.1"), str(source)], check=True)
    return folder


@pytest.fixture
def in_nvml_process(nvml_folder):
    """Run Python code where the loader finds the stand-in; its standard output."""

    def run(code, wrong=""):
        environment = os.environ | {"LD_LIBRARY_PATH": str(nvml_folder), "NVML_STAND_IN": wrong}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
