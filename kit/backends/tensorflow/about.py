"""TensorFlow, before it is imported."""

from kit.backends.entry import CUDA_CACHE, BackendEntry
from kit.profile.cell import FRAMEWORKS_OWN

ENTRY = BackendEntry(
    name="tensorflow",
    title="TensorFlow",
    rank=1,
    module="tensorflow",
    distributions=("tensorflow", "tensorflow-cpu", "tensorflow-tpu"),
    packages=("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "libtpu", "tensorflow-intel", "tf-keras", "keras"),
    tested_to="2.21",
    compile_modes=("graph", "eager", "xla"),
    compiled_mode="xla",
    precisions=("float32", "bfloat16", "tf32", FRAMEWORKS_OWN),
    # tensorflow/compiler/jit/flags.cc; only what XLA compiles is kept.
    compile_cache={CUDA_CACHE: "FOLDER/cuda", "TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory=FOLDER/tensorflow"},
    compile_anew={
        CUDA_CACHE: "FOLDER/cuda",
        "TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory",
        "XLA_FLAGS": "--xla_gpu_kernel_cache_file --xla_gpu_per_fusion_autotune_cache_dir",
    },
    start_s=8.0,
    data_parallel={"cpu": "ranks", "gpu": "ranks"},
    # XLA_PYTHON_CLIENT_… are JAX' own.
    decided_by=("XLA_FLAGS", "ONEDNN_*", "DNNL_*"),
    environment_prefixes=("TF_", "KERAS_"),
    environment={
        "TF_CPP_MIN_LOG_LEVEL": "2"  # errors only, so that a failure's last lines hold the message that matters
    },
    sharing={"TF_FORCE_GPU_ALLOW_GROWTH": "true"},  # each worker takes what it needs, not all of the memory
)
