"""A workload as PyTorch modules, channels first, and its optimizer.

workload (channels last)            PyTorch (channels first)
Conv2D kernel (h, w, in, out)  ──►  weight (out, in, h, w)
Dense kernel (in, out)         ──►  weight (out, in)
LayerNorm scale, offset        ──►  weight, bias
Dense after Flatten: rows in (h, w, c) order  ──►  columns in (c, h, w) order

torch.optim.SGD and torch.optim.Adadelta are Keras' rules already. torch.optim.RMSprop and torch.optim.Adam keep epsilon
elsewhere (outside the root; after the bias correction), so these two are written here, with as many operations each:
tensor by tensor on a CPU, and on an accelerator all tensors in one operation, as torch.optim does by default.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import nn

from kit.backends.torch import attention, recurrent
from kit.backends.torch.about import ENTRY
from kit.workloads import optimizers as rules
from kit.workloads.attention import DecoderBlock, LastToken, LayerNorm, Positions
from kit.workloads.layers import Conv2D, Dense, Dropout, Flatten, MaxPool2D, Shape
from kit.workloads.recurrent import LSTM, SimpleRNN
from kit.workloads.weights import Weights
from kit.workloads.workload import PlacedLayer, Workload

# The workload's name of a weight -> the parameter, and the order that the workload's axes have in it.
Parameters: TypeAlias = dict[str, tuple[nn.Parameter, tuple[int, ...]]]

KERNEL_AXES = (3, 2, 0, 1)
ACTIVATIONS = {"linear": [], "relu": [nn.ReLU], "tanh": [nn.Tanh], "sigmoid": [nn.Sigmoid]}


def build_modules(workload: Workload, weights: Weights) -> nn.Sequential:
    """Return the network with `weights` in it."""
    modules: list[nn.Module] = []
    image: Shape | None = None  # before the last Flatten, until a layer with weights has taken its rows
    for placed in workload.placed_layers():
        layer, parameters = _translate(placed)
        modules += layer
        for name, (parameter, axes) in parameters.items():
            array = weights[f"{placed.name}.{name}"]
            rows = image if name == "kernel" else None
            placed_array = array.reshape(*rows, -1).transpose(KERNEL_AXES) if rows else array.transpose(axes)
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(placed_array).reshape(parameter.shape))
        if isinstance(placed.layer, Flatten) and len(placed.input_shape) > 1:
            image = placed.input_shape
        elif parameters:
            image = None
    return nn.Sequential(*modules)


def _translate(placed: PlacedLayer) -> tuple[list[nn.Module], Parameters]:  # noqa: PLR0911 - one a kind of layer
    inputs = placed.input_shape[-1]
    match layer := placed.layer:
        case Dense():
            linear = nn.Linear(inputs, layer.units)
            return [linear, *(module() for module in ACTIVATIONS[layer.activation])], _places(linear)
        case Conv2D():
            conv = nn.Conv2d(inputs, layer.filters, layer.kernel, padding=layer.padding)
            places = {"kernel": (conv.weight, KERNEL_AXES), "bias": (conv.bias, (0,))}
            return [conv, *(module() for module in ACTIVATIONS[layer.activation])], places
        case MaxPool2D():
            return [nn.MaxPool2d(layer.size)], {}
        case Dropout():
            return [nn.Dropout(layer.rate)], {}
        case Flatten():
            return [nn.Flatten()], {}
        case SimpleRNN():
            rnn = recurrent.SimpleRNN(inputs, layer)
            return [rnn], dict(recurrent.places(rnn))
        case LSTM():
            lstm = recurrent.LSTM(inputs, layer)
            return [lstm], dict(recurrent.places(lstm, layer.prefixes))
        case Positions():
            positions = attention.Positions(*placed.input_shape)
            return [positions], {"table": (positions.table, (0, 1))}
        case LayerNorm():
            norm = nn.LayerNorm(inputs, eps=layer.epsilon)
            return [norm], _places(norm)
        case DecoderBlock():
            block = attention.DecoderBlock(inputs, layer)
            return [block], {
                f"{part}_{name}": place
                for part, module in block.named_children()
                for name, place in _places(module).items()
            }
        case LastToken():
            return [attention.LastToken()], {}
        case _:
            raise ENTRY.untranslated(layer)


def _places(module: nn.Linear | nn.LayerNorm) -> Parameters:
    if isinstance(module, nn.LayerNorm):
        return {"scale": (module.weight, (0,)), "offset": (module.bias, (0,))}
    return {"kernel": (module.weight, (1, 0)), "bias": (module.bias, (0,))}


def build_optimizer(
    rule: rules.Optimizer, all_params: Iterable[nn.Parameter], *, foreach: bool
) -> torch.optim.Optimizer:
    """Return the optimizer of what is trained that follows `rule`, every hyperparameter given.

    Args:
        rule: of the workload.
        all_params: of the network.
        foreach: each operation takes all tensors at once.
    """
    params = [each for each in all_params if each.requires_grad]
    match rule:
        case rules.SGD():
            return torch.optim.SGD(params, lr=rule.learning_rate, foreach=foreach)
        case rules.RMSprop():
            return KerasRMSprop(params, rule, foreach=foreach)
        case rules.Adadelta():
            return torch.optim.Adadelta(params, lr=rule.learning_rate, rho=rule.rho, eps=rule.epsilon, foreach=foreach)
        case rules.Adam():
            return KerasAdam(params, rule, foreach=foreach)


class _KerasOptimizer(torch.optim.Optimizer):  # type: ignore[misc]
    """What both rules keep: hyperparameters, parameters, and the second moment of each."""

    def __init__(self, params: Iterable[nn.Parameter], rule: rules.RMSprop | rules.Adam, *, foreach: bool) -> None:
        super().__init__(params, {})
        self._rule: Any = rule
        self._foreach = foreach
        self._params: list[nn.Parameter] = self.param_groups[0]["params"]
        self._velocities = [torch.zeros_like(p) for p in self._params]


class KerasRMSprop(_KerasOptimizer):
    """RMSprop with epsilon inside the root. Hyperparameters as in `kit.workloads.optimizers.RMSprop`."""

    def step(self, closure: None = None) -> None:  # noqa: ARG002
        """Make one update from the gradients at hand."""
        rule = self._rule
        with torch.no_grad():
            if self._foreach:
                grads = [param.grad for param in self._params]
                torch._foreach_mul_(self._velocities, rule.rho)
                torch._foreach_addcmul_(self._velocities, grads, grads, 1 - rule.rho)
                roots = torch._foreach_add(self._velocities, rule.epsilon)
                torch._foreach_sqrt_(roots)
                torch._foreach_addcdiv_(self._params, grads, roots, -rule.learning_rate)
                return
            for param, velocity in zip(self._params, self._velocities, strict=True):
                grad = param.grad
                velocity.mul_(rule.rho).addcmul_(grad, grad, value=1 - rule.rho)
                param.addcdiv_(grad, velocity.add(rule.epsilon).sqrt_(), value=-rule.learning_rate)


class KerasAdam(_KerasOptimizer):
    """Adam in its epsilon-hat form. Hyperparameters as in `kit.workloads.optimizers.Adam`."""

    def __init__(self, params: Iterable[nn.Parameter], rule: rules.Adam, *, foreach: bool) -> None:
        super().__init__(params, rule, foreach=foreach)
        self._momentums = [torch.zeros_like(p) for p in self._params]
        self._steps = 0

    def step(self, closure: None = None) -> None:  # noqa: ARG002
        """Make one update from the gradients at hand."""
        rule = self._rule
        self._steps += 1
        # In float32, as Keras and optax compute it: 1 - 0.999 is 1.3e-5 off there, which later losses show.
        unit, steps = np.float32(1), np.float32(self._steps)
        remaining_1, remaining_2 = (unit - np.float32(beta) ** steps for beta in (rule.beta_1, rule.beta_2))
        correction = float(np.sqrt(remaining_2) / remaining_1)
        with torch.no_grad():
            if self._foreach:
                grads = [param.grad for param in self._params]
                torch._foreach_lerp_(self._momentums, grads, 1 - rule.beta_1)
                torch._foreach_mul_(self._velocities, rule.beta_2)
                torch._foreach_addcmul_(self._velocities, grads, grads, 1 - rule.beta_2)
                roots = torch._foreach_sqrt(self._velocities)
                torch._foreach_add_(roots, rule.epsilon)
                torch._foreach_addcdiv_(self._params, self._momentums, roots, -rule.learning_rate * correction)
                return
            for param, momentum, velocity in zip(self._params, self._momentums, self._velocities, strict=True):
                grad = param.grad
                momentum.lerp_(grad, 1 - rule.beta_1)
                velocity.mul_(rule.beta_2).addcmul_(grad, grad, value=1 - rule.beta_2)
                param.addcdiv_(momentum, velocity.sqrt().add_(rule.epsilon), value=-rule.learning_rate * correction)
