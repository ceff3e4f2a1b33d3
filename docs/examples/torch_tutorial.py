"""The model of PyTorch's Quickstart (https://docs.pytorch.org/tutorials/beginner/basics/quickstart_tutorial.html).

kit run --program torch_tutorial.py --batch 64
"""

import torch
from torch import nn


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(28 * 28, 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, 10),
        )

    def forward(self, x):
        x = self.flatten(x)
        return self.linear_relu_stack(x)


loss_fn = nn.CrossEntropyLoss()


# The tutorial ends here. The function below makes it a program for `kit run`.
def program(batch, device):
    place = {"cpu": "cpu", "gpu": "cuda"}[device]
    model = NeuralNetwork().to(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    X, y = torch.rand(batch, 1, 28, 28, device=place), torch.randint(10, (batch,), device=place)

    def step():
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step
