"""JAX, before it is imported."""

from kit.backends.entry import CUDA_CACHE, BackendEntry
from kit.environment import JAX_DONATE
from kit.profile.cell import FRAMEWORKS_OWN

CUDA_PLUGINS = ("jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt")
ENTRY = BackendEntry(
    name="jax",
    title="JAX",
    rank=3,
    module="jax",
    distributions=("jax",),
    packages=("jax", "jaxlib", *CUDA_PLUGINS, "libtpu", "flax", "optax"),
    tested_to="0.12",
    compile_modes=("jit",),
    precisions=("float32", "bfloat16", "tf32", FRAMEWORKS_OWN),
    decided_by=("NPROC", JAX_DONATE),
    environment_prefixes=("JAX_", "XLA_", "LIBTPU_"),
    # https://docs.jax.dev/en/latest/persistent_compilation_cache.html
    compile_cache={
        "JAX_COMPILATION_CACHE_DIR": "FOLDER/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        CUDA_CACHE: "FOLDER/cuda",
    },
    compile_anew={
        CUDA_CACHE: "FOLDER/cuda",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "XLA_FLAGS": "--xla_gpu_kernel_cache_file --xla_gpu_per_fusion_autotune_cache_dir",
    },
    start_s=4.2,
    data_parallel={"cpu": "devices", "gpu": "devices", "tpu": "devices"},
    keeps_to_interface=True,
    # Workers share a GPU: each takes what it needs, not three quarters of the memory at its start.
    sharing={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
)
