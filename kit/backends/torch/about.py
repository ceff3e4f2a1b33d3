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
    environment_prefixes=("TORCH", "PYTORCH_", "TRITON_", "ATEN_"),
)
