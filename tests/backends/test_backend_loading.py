"""Names to backends, without any framework in this process."""

import subprocess
import sys

import pytest

from kit.backends.catalog import CATALOG
from kit.backends.errors import BackendError
from kit.backends.load import load


def test_unknown_name_gives_the_choices():
    with pytest.raises(BackendError, match="'caffe'; choose from: tensorflow, torch, jax"):
        load("caffe")


def said_by_a_fresh_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("name", CATALOG)
def test_a_framework_that_is_not_there(name):
    said = said_by_a_fresh_process(
        "import sys\n"
        f"sys.modules[{CATALOG[name].module!r}] = None\n"  # what Python keeps for a module that cannot be found
        "from kit.backends.errors import BackendError\n"
        "from kit.backends.load import load\n"
        "try:\n"
        f"    load({name!r})\n"
        "except BackendError as error:\n"
        "    print(error)"
    )
    assert CATALOG[name].title in said
    assert said.endswith("install it or leave it out")
    assert "\n" not in said


def test_the_contract_imports_no_framework():
    imported = said_by_a_fresh_process(
        "import sys, kit.backends.load, kit.backends.protocol, kit.backends.support\n"
        "print([name for name in ('tensorflow', 'keras', 'torch', 'jax', 'flax', 'optax') if name in sys.modules])"
    )
    assert imported == "[]"
