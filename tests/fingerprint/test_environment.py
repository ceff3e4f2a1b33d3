import os

import msgspec
import pytest
from profile_builder import build_identity

from kit.fingerprint.environment import relevant_environment
from kit.fingerprint.identity import hashed
from kit.fingerprint.software import software


@pytest.mark.parametrize(
    "name",
    ["XLA_FLAGS", "JAX_ENABLE_X64", "TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "KMP_AFFINITY", "MKL_CBWR",
     "OPENBLAS_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "MALLOC_ARENA_MAX", "LD_PRELOAD",
     "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "TORCHINDUCTOR_FREEZING", "PYTHONOPTIMIZE"],
)  # fmt: skip
def test_what_changes_numbers_is_recorded(name, monkeypatch):
    monkeypatch.setenv(name, "planted")
    assert software([], {}).environment[name] == "planted"


@pytest.mark.parametrize(
    "name",
    ["HOME", "PATH", "TF_TOKEN_app", "TF_VAR_db", "TF_HTTP_PASSWORD", "TORCH_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY"],
)
def test_nothing_else_is_and_no_credential(name):
    assert relevant_environment({name: "x"}) == {}


def test_by_name_and_hashed():
    assert list(relevant_environment({"XLA_FLAGS": "a", "JAX_X": "b"})) == ["JAX_X", "XLA_FLAGS"]
    assert relevant_environment() == relevant_environment(os.environ)


def test_the_identity_covers_it():
    bare = build_identity()
    changed = msgspec.structs.replace(bare.software, environment={"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"})
    assert hashed(bare).sha256 != hashed(msgspec.structs.replace(bare, software=changed)).sha256
