"""Names to backends, without any framework in this process."""

import sys

import pytest

from kit.backends.catalog import BackendError, load


def test_unknown_name_gives_the_choices():
    with pytest.raises(BackendError, match="'caffe'; choose from tensorflow, torch, jax"):
        load("caffe")


def test_a_framework_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python keeps for a module that cannot be found
    with pytest.raises(BackendError, match=r"PyTorch.* install it or leave it out$"):
        load("torch")
