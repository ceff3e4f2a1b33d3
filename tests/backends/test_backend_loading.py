"""What is known about a backend without its framework: its name, and the variables that decide its speed."""

import sys

import pytest

from kit.backends.backend_catalog import CATALOG, BackendError, load
from kit.backends.entry import decided_by_environment


def test_unknown_name_gives_the_choices():
    with pytest.raises(BackendError, match="'caffe'; choose from tensorflow, torch, jax"):
        load("caffe")


def test_a_framework_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python keeps for a module that cannot be found
    with pytest.raises(BackendError, match=r"PyTorch.* install it or leave it out$"):
        load("torch")


def test_a_label_of_nvidias_images_is_no_setting_of_nccl():
    variables = {"NCCL_VERSION": "2.28.3-1", "NCCL_ALGO": "Ring"}
    assert decided_by_environment(CATALOG["torch"], variables, threads_set=True) == {"NCCL_ALGO": "Ring"}
