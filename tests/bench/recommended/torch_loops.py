"""PyTorch's own loop: the Quickstart tutorial, https://docs.pytorch.org/tutorials/beginner/basics/quickstart_tutorial.html.

torch.optim.RMSprop has its epsilon outside the root: the same work, another number.
"""

import torch
from recommended.loop import Loop
from torch import nn


def models():
    return {
        "mlp": lambda: nn.Sequential(
            nn.Linear(28 * 28, 512),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(512, 10),
        ),
        "cnn": lambda: nn.Sequential(
            nn.Conv2d(1, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Flatten(),
            nn.Linear(64 * 12 * 12, 128),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(128, 10),
        ),
    }


def put(inputs, targets):
    """As torchvision's ToTensor gives them: images channels first, labels int64."""
    inputs = torch.from_numpy(inputs)
    images = inputs.reshape(-1, 1, 28, 28) if inputs.ndim > 2 else inputs
    return images.clone(), torch.from_numpy(targets).long()


def loops(workload, task):
    model = models()[workload]()
    loss_fn = nn.CrossEntropyLoss()
    optimizer = {
        "mlp": lambda: torch.optim.RMSprop(model.parameters(), lr=1e-3, alpha=0.9, eps=1e-7),
        "cnn": lambda: torch.optim.Adadelta(model.parameters(), lr=1e-3, rho=0.95, eps=1e-7),
    }[workload]()

    def train(batch):
        X, y = batch  # noqa: N806 - the tutorial's names
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def test(batch):
        X, _ = batch  # noqa: N806
        with torch.inference_mode():
            return model(X)

    if task == "train":
        model.train()
        return {"quickstart": Loop(train, lambda output: None)}
    model.eval()
    return {"quickstart": Loop(test, lambda output: None)}
