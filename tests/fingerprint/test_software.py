import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from kit.fingerprint import software as software_module
from kit.fingerprint.software import packages, software


def test_installed_versions_and_absent_ones():
    assert packages(["numpy", "no-such-distribution"]) == {"numpy": numpy.__version__}


def other_python(tmp_path, versions):
    """An interpreter that has other distributions: this one, with a folder of metadata before its own."""
    site = tmp_path / "site"
    for name, version in versions.items():
        folder = site / f"{name}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{site}" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_another_interpreter_is_asked(tmp_path):
    python = other_python(tmp_path, {"torch": "9.9.9"})
    assert packages(["torch", "no-such-distribution"], python) == {"torch": "9.9.9"}


def test_disagreeing_interpreters_show_both_versions(tmp_path):
    python = other_python(tmp_path, {"numpy": "0.0.1"})
    found = software([python], {})
    assert found.packages["numpy"] == f"0.0.1 / {numpy.__version__}"


def test_an_interpreter_that_cannot_be_asked_is_a_reason():
    reasons = {}
    found = software(["/nowhere/python"], reasons)
    assert "numpy" in found.packages
    assert "could not be asked" in reasons["software.packages /nowhere/python"]


def test_no_framework_is_imported():
    code = (
        "import sys\nfrom kit.fingerprint.identity import identity\nidentity()\n"
        "print(*{'torch', 'tensorflow', 'jax', 'numpy', 'keras'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.skipif(not Path("/etc/os-release").exists(), reason="no os-release here")
def test_operating_system_names_itself():
    assert software_module.operating_system() in Path("/etc/os-release").read_text()
    assert software([], {}).kernel == os.uname().release
