"""Environment variables that change numbers: what workers inherit and frameworks, compilers and runtimes read."""

from __future__ import annotations

import os
from collections.abc import Mapping

# By prefix: each library's own variables, of which new versions bring new ones.
PREFIXES = (
    "XLA_", "JAX_", "LIBTPU_", "TF_", "KERAS_", "TORCH", "PYTORCH_", "TRITON_", "ATEN_",
    "KMP_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "ONEDNN_", "DNNL_",
    "CUBLAS_", "CUDNN_", "NCCL_",
    "MALLOC_", "TCMALLOC_", "JEMALLOC_",
)  # fmt: skip
NAMES = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
    "NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "PYTHONDEVMODE", "PYTHONHASHSEED", "PYTHONMALLOC", "PYTHONOPTIMIZE", "PYTHON_GIL", "PYTHON_JIT",
)  # fmt: skip
# Terraform's variables share TensorFlow's prefix, and some are credentials.
NEVER_PREFIXES = ("TF_VAR_", "TF_TOKEN_", "TF_HTTP_", "TF_CLI_", "TF_CLOUD_")
# Whatever the prefix: a profile is passed on, a credential is not.
NEVER_WORDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "ACCESS_KEY")


def relevant_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Those of `variables` (default: this process's) that could change a number, sorted by name."""
    found = os.environ if variables is None else variables
    return {name: found[name] for name in sorted(found) if _is_relevant(name)}


def _is_relevant(name: str) -> bool:
    if name.startswith(NEVER_PREFIXES) or any(word in name.upper() for word in NEVER_WORDS):
        return False
    return name in NAMES or name.startswith(PREFIXES)
