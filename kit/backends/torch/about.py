"""PyTorch, before it is imported."""

from kit.backends.entry import BackendEntry
from kit.profile.cell import FRAMEWORKS_OWN

ENTRY = BackendEntry(
    name="torch",
    title="PyTorch",
    rank=2,
    module="torch",
    distributions=("torch",),
    packages=("torch", "torch-tpu", "libtpu", "torchvision", "triton", "pytorch-triton"),
    compile_modes=("eager", "compile"),
    precisions=("float32", "bfloat16", "tf32", FRAMEWORKS_OWN),
    start_s=5.6,
    data_parallel={"cpu": "ranks", "gpu": "ranks"},
    keeps_to_interface=True,
    # PyTorch's thread pools are OpenMP's and MKL's; TensorFlow and JAX have their own.
    decided_by=(
        "OMP_*",
        "GLOO_*",
        "NCCL_[!V]*",  # NCCL_VERSION sets nothing: it names what an NVIDIA image contains
        "GOMP_*",
        "KMP_*",
        "MKL_*",
        "ATEN_CPU_CAPABILITY",
        "ONEDNN_*",
        "DNNL_*",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        "PYTORCH_ALLOC_CONF",
        "PYTORCH_CUDA_ALLOC_CONF",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
    ),
    # https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_configuration_tutorial.html
    compile_cache={
        "TORCHINDUCTOR_CACHE_DIR": "FOLDER/inductor",
        "TRITON_CACHE_DIR": "FOLDER/triton",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
    },
    environment_prefixes=("TORCH", "PYTORCH_", "TRITON_", "ATEN_"),
)
