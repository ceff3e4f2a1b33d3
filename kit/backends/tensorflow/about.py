"""TensorFlow, before it is imported."""

from kit.backends.entry import BackendEntry
from kit.profile.cell import FRAMEWORKS_OWN

ENTRY = BackendEntry(
    name="tensorflow",
    title="TensorFlow",
    rank=1,
    module="tensorflow",
    distributions=("tensorflow", "tensorflow-cpu", "tensorflow-tpu"),
    packages=("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "libtpu", "tensorflow-intel", "tf-keras", "keras"),
    compile_modes=("graph", "eager", "xla"),
    precisions=("float32", "bfloat16", "tf32", FRAMEWORKS_OWN),
    # tensorflow/compiler/jit/flags.cc; only what XLA compiles is kept.
    compile_cache={"TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory=FOLDER/tensorflow"},
    start_s=8.0,
    data_parallel={"cpu": "ranks", "gpu": "ranks"},
    decided_by=(
        "TF_NUM_*_THREADS",
        "TF_ENABLE_ONEDNN_OPTS",
        "TF_XLA_FLAGS",
        "XLA_FLAGS",
        "TF_GPU_*",
        "TF_CUDNN_*",
        "TF_FORCE_GPU_ALLOW_GROWTH",
        "ONEDNN_*",
        "DNNL_*",
    ),
    environment_prefixes=("TF_", "KERAS_", "XLA_"),
    environment={
        "TF_CPP_MIN_LOG_LEVEL": "2",  # errors only, so that a failure's last lines hold the message that matters
    },
    sharing={"TF_FORCE_GPU_ALLOW_GROWTH": "true"},  # each worker takes what it needs, not all of the memory
)
