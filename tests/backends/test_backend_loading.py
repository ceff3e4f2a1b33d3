"""Names to backends, without any framework in this process."""

import subprocess
import sys

import pytest

from kit.backends.catalog import BackendError, load


def test_unknown_name_gives_the_choices():
    with pytest.raises(BackendError, match="'caffe'; choose from: tensorflow, torch, jax"):
        load("caffe")


def said_by_a_fresh_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_a_framework_that_is_not_there():
    said = said_by_a_fresh_process(
        "import sys\n"
        "sys.modules['torch'] = None\n"  # what Python keeps for a module that cannot be found
        "from kit.backends.catalog import BackendError, load\n"
        "try:\n"
        "    load('torch')\n"
        "except BackendError as error:\n"
        "    print(error)"
    )
    assert "PyTorch" in said and said.endswith("install it or leave it out") and "\n" not in said


def test_the_contract_imports_no_framework():
    imported = said_by_a_fresh_process(
        "import sys, kit.backends.catalog, kit.backends.protocol\n"
        "print([name for name in ('tensorflow', 'keras', 'torch', 'jax', 'flax', 'optax') if name in sys.modules])"
    )
    assert imported == "[]"
