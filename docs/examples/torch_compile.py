"""A PyTorch model as it is, compiled, and compiled with max-autotune, which also measures kernels before it chooses.

kit run --program torch_compile.py:eager --program torch_compile.py:compiled \
    --program torch_compile.py:max_autotune --batch 64

The column `compile` has what compilation costs. On a CPU it needs a C++ compiler.
"""

import torch
from torch import nn

WIDTH = 512


def forward(batch, device):
    place = {"cpu": "cpu", "gpu": "cuda"}[device]
    model = nn.Sequential(
        nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.LayerNorm(2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH), nn.Softmax(-1)
    ).to(place)
    return model.eval(), torch.rand(batch, WIDTH, device=place)


def step_of(model, x):
    def step():
        with torch.inference_mode():
            return model(x)

    return step


def eager(batch, device):
    return step_of(*forward(batch, device))


def compiled(batch, device):
    model, x = forward(batch, device)
    return step_of(torch.compile(model), x)


def max_autotune(batch, device):
    model, x = forward(batch, device)
    return step_of(torch.compile(model, mode="max-autotune"), x)
