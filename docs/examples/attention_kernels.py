"""The kernels behind PyTorch's scaled dot-product attention, and attention written out.

kit run --program attention_kernels.py:written_out --program attention_kernels.py:math \
    --program attention_kernels.py:flash --batch 4

A GPU also has `efficient` and, from Hopper on, `cudnn`. A kernel that cannot take these arrays fails its row.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

HEADS, TOKENS, WIDTH = 8, 256, 64


def arrays(batch, device):
    place, dtype = {"cpu": ("cpu", torch.float32), "gpu": ("cuda", torch.bfloat16)}[device]
    return [torch.randn(batch, HEADS, TOKENS, WIDTH, device=place, dtype=dtype) for _ in range(3)]


def written_out(batch, device):
    query, key, value = arrays(batch, device)

    def step():
        with torch.inference_mode():
            return (query @ key.transpose(-2, -1) / WIDTH**0.5).softmax(-1) @ value

    return step


def with_kernel(kernel, batch, device):
    query, key, value = arrays(batch, device)

    def step():
        with torch.inference_mode(), sdpa_kernel(kernel):
            return scaled_dot_product_attention(query, key, value)

    return step


def math(batch, device):
    return with_kernel(SDPBackend.MATH, batch, device)


def flash(batch, device):
    return with_kernel(SDPBackend.FLASH_ATTENTION, batch, device)


def efficient(batch, device):
    return with_kernel(SDPBackend.EFFICIENT_ATTENTION, batch, device)


def cudnn(batch, device):
    return with_kernel(SDPBackend.CUDNN_ATTENTION, batch, device)
