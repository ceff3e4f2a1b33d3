"""PyTorch, before it is imported."""

from kit.backends.entry import CUDA_CACHE, BackendEntry
from kit.environment import TORCH_LAYOUT, TORCH_OPTIMIZER
from kit.profile.cell import FRAMEWORKS_OWN

ENTRY = BackendEntry(
    name="torch",
    title="PyTorch",
    rank=2,
    module="torch",
    distributions=("torch",),
    packages=("torch", "torch-tpu", "libtpu", "torchvision", "triton", "pytorch-triton"),
    tested_to="2.15",
    compile_modes=("eager", "compile", "reduce-overhead", "max-autotune"),
    compiled_mode="compile",
    precisions=("float32", "bfloat16", "tf32", FRAMEWORKS_OWN),
    start_s=5.6,
    data_parallel={"cpu": "ranks", "gpu": "ranks"},
    keeps_to_interface=True,
    # PyTorch's thread pools are OpenMP's and MKL's; TensorFlow and JAX have their own.
    decided_by=(TORCH_LAYOUT, TORCH_OPTIMIZER, "OMP_*", "GLOO_*", "GOMP_*", "KMP_*", "MKL_*", "ONEDNN_*", "DNNL_*"),
    # https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html
    compile_cache={
        "TORCHINDUCTOR_CACHE_DIR": "FOLDER/inductor",
        "TRITON_CACHE_DIR": "FOLDER/triton",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
        CUDA_CACHE: "FOLDER/cuda",
    },
    # torch/_inductor/runtime/cache_dir_utils.py and triton/knobs.py; the default of the first is a temporary folder.
    compile_anew={
        CUDA_CACHE: "FOLDER/cuda",
        "TORCHINDUCTOR_CACHE_DIR": None,
        "TRITON_CACHE_DIR": None,
        "TRITON_HOME": "FOLDER",
        "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
    },
    environment_prefixes=("TORCH", "PYTORCH_", "TRITON_", "ATEN_"),
)
