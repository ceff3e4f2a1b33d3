"""Want of a device's memory is told from every other exception, by each framework's real ones."""

import subprocess
import sys

import pytest

from kit.worker.worker import ran_out

# More than any address space has: refused by the real allocator of each, on whatever device.
RAISES = {
    "torch": "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2.00 GiB.')",
    "jax": "jax.numpy.zeros((1 << 25, 1 << 24))",
    "tensorflow": "tensorflow.zeros((1 << 23, 1 << 22)) + 1",
}


@pytest.mark.frameworks
@pytest.mark.parametrize("framework", ["torch", "jax", pytest.param("tensorflow", marks=pytest.mark.slow)])
def test_of_each_framework(framework):
    pytest.importorskip(framework)
    code = f"""
import {framework}
from kit.worker.worker import ran_out
try:
    {RAISES[framework]}
except Exception as error:
    print(ran_out(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    ("message", "is_so"),
    [
        ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("INTERNAL: CUDA_ERROR_OUT_OF_MEMORY: out of memory", True),
        ("INVALID_ARGUMENT: shapes differ", False),
    ],
)
def test_of_what_has_no_type_of_its_own_and_of_what_was_wrapped(message, is_so):
    wrapped = ValueError("compiling failed")
    wrapped.__cause__ = RuntimeError(message)
    assert ran_out(RuntimeError(message)) is ran_out(wrapped) is is_so
