"""What is known about a backend without its framework: its name, and the variables that decide its speed."""

import re
import sys

import pytest
from kit_process import REPOSITORY
from packaging.version import Version

from kit.backends.backend_catalog import CATALOG, FRAMEWORKS, BackendError, load
from kit.backends.entry import read_from_environment


def test_unknown_name_gives_the_choices():
    with pytest.raises(BackendError, match="'caffe'; choose from tensorflow, torch, jax"):
        load("caffe")


def test_a_framework_that_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python keeps for a module that cannot be found
    with pytest.raises(BackendError, match=r"PyTorch.* install it or leave it out$"):
        load("torch")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_newest_release_that_is_locked_is_the_one_that_was_tested(name):
    lock = (REPOSITORY / f"images/cpu/{name}.txt").read_text()
    newest = max(map(Version, re.findall(rf"^{name}==(\S+)", lock, re.MULTILINE)))
    assert CATALOG[name].tested_to == f"{newest.major}.{newest.minor}"


@pytest.mark.parametrize(
    ("version", "is_newer"),
    [
        ("2.15.7+cu132", False),
        ("2.9.0a0+145a3a7.nv25.10", False),
        ("our-own", False),
        ("2.16.0.dev20261101", True),
        ("3.0", True),
    ],
)
def test_a_release_that_was_not_tested_is_known(version, is_newer):
    entry = CATALOG["torch"]._replace(tested_to="2.15")
    assert (entry.newer_than_tested(version) is not None) == is_newer
    assert entry._replace(tested_to="").newer_than_tested(version) is None


def test_a_label_of_nvidias_images_is_no_setting_of_nccl():
    variables = {"NCCL_VERSION": "2.28.3-1", "NCCL_ALGO": "Ring"}
    assert read_from_environment(CATALOG["torch"], variables, threads_set=True) == {"NCCL_ALGO": "Ring"}


@pytest.mark.parametrize(
    ("name", "readers"),
    [
        ("JAX_DISABLE_MOST_OPTIMIZATIONS", "jax program"),
        ("JAX_NUM_CPU_DEVICES", "jax program"),
        ("XLA_PYTHON_CLIENT_PREALLOCATE", "jax program"),
        ("XLA_FLAGS", "tensorflow jax program"),
        ("TF_SET_ONEDNN_FPMATH_MODE", "tensorflow program"),
        ("KERAS_HOME", "tensorflow program"),
        ("TORCHDYNAMO_VERBOSE", "torch program"),
        ("TORCH_COMPILE_DISABLE", "torch program"),
        ("GOMP_CPU_AFFINITY", "torch program"),
        ("NVIDIA_TF32_OVERRIDE", "tensorflow torch jax program"),
        ("CUDA_LAUNCH_BLOCKING", "tensorflow torch jax program"),
        ("GLIBC_TUNABLES", "tensorflow torch jax program"),
        ("TF_VAR_password", ""),  # Terraform's
        ("NVIDIA_DRIVER_CAPABILITIES", ""),  # a label of images
        ("PATH", ""),
        ("OMP_NUM_THREADS", ""),  # the worker has Steadykit's
    ],
)
def test_every_variable_with_a_frameworks_prefix_is_recorded_of_who_reads_it(name, readers):
    read = [known for known in CATALOG if read_from_environment(CATALOG[known], {name: "1"}, threads_set=True)]
    assert read == readers.split()
