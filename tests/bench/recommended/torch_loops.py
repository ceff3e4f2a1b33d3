"""PyTorch's own loop: the Quickstart tutorial, https://docs.pytorch.org/tutorials/beginner/basics/quickstart_tutorial.html.

torch.optim.RMSprop and torch.optim.Adam have epsilon elsewhere than the workload: the same work, another number.
"""

import torch
from recommended.loop import Loop
from recommended.torch_models import MODELS
from torch import nn

OPTIMIZERS = {
    "mlp": lambda parameters: torch.optim.RMSprop(parameters, lr=1e-3, alpha=0.9, eps=1e-7),
    "cnn": lambda parameters: torch.optim.Adadelta(parameters, lr=1e-3, rho=0.95, eps=1e-7),
    "rnn": lambda parameters: torch.optim.SGD(parameters, lr=1e-2),
    "resnet50": lambda parameters: torch.optim.SGD(parameters, lr=1e-2),
}


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, eps=1e-7)


def put(inputs, targets):
    """As torchvision's ToTensor gives them: images channels first, labels int64."""
    inputs = torch.from_numpy(inputs)
    if not inputs.is_floating_point():
        return inputs.long(), torch.from_numpy(targets).long().flatten()
    images = inputs.movedim(-1, 1).contiguous() if inputs.ndim == 4 else inputs
    return images.clone(), torch.from_numpy(targets).long()


def counted(model):
    """Leave out the second bias that nn.RNN and nn.LSTM train for cuDNN's sake: the workload has one."""
    return sum(each.numel() for name, each in model.named_parameters() if "bias_hh" not in name)


def loops(workload, task):
    model = MODELS[workload]()
    reconstructs = workload == "autoencoder"
    loss_fn = nn.MSELoss() if reconstructs else nn.CrossEntropyLoss()
    optimizer = OPTIMIZERS.get(workload, adam)(model.parameters())

    def train(batch):
        X, y = batch  # noqa: N806 - the tutorial's names
        pred = model(X)
        loss = loss_fn(pred, X if reconstructs else y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    def test(batch):
        X, _ = batch  # noqa: N806
        with torch.inference_mode():
            return model(X)

    model.train(task == "train")
    return {"quickstart": Loop(train if task == "train" else test, lambda output: None, counted(model))}
