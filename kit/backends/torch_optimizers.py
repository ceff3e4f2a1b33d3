"""Keras' update rules in PyTorch.

torch.optim.SGD and torch.optim.Adadelta are Keras' rules already. torch.optim.RMSprop and torch.optim.Adam keep epsilon
elsewhere (outside the root; after the bias correction), so these two are written here, with as many operations each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import nn

from kit.workloads import optimizers as rules


class KerasRMSprop(torch.optim.Optimizer):  # type: ignore[misc]
    """RMSprop with epsilon inside the root. Hyperparameters as in `kit.workloads.optimizers.RMSprop`."""

    def __init__(self, params: Iterable[nn.Parameter], rule: rules.RMSprop) -> None:
        super().__init__(params, {})
        self._rule = rule
        self._params: list[nn.Parameter] = [p for group in self.param_groups for p in group["params"]]
        self._velocities = [torch.zeros_like(p) for p in self._params]

    def step(self, closure: None = None) -> None:  # noqa: ARG002
        """One update from the gradients at hand."""
        rule = self._rule
        with torch.no_grad():
            for param, velocity in zip(self._params, self._velocities, strict=True):
                grad = param.grad
                velocity.mul_(rule.rho).addcmul_(grad, grad, value=1 - rule.rho)
                param.addcdiv_(grad, velocity.add(rule.epsilon).sqrt_(), value=-rule.learning_rate)


class KerasAdam(torch.optim.Optimizer):  # type: ignore[misc]
    """Adam in its epsilon-hat form. Hyperparameters as in `kit.workloads.optimizers.Adam`."""

    def __init__(self, params: Iterable[nn.Parameter], rule: rules.Adam) -> None:
        super().__init__(params, {})
        self._rule = rule
        self._params: list[nn.Parameter] = [p for group in self.param_groups for p in group["params"]]
        self._momentums = [torch.zeros_like(p) for p in self._params]
        self._velocities = [torch.zeros_like(p) for p in self._params]
        self._steps = 0

    def step(self, closure: None = None) -> None:  # noqa: ARG002
        """One update from the gradients at hand."""
        rule = self._rule
        self._steps += 1
        correction = math.sqrt(1 - rule.beta_2**self._steps) / (1 - rule.beta_1**self._steps)
        with torch.no_grad():
            for param, momentum, velocity in zip(self._params, self._momentums, self._velocities, strict=True):
                grad = param.grad
                momentum.lerp_(grad, 1 - rule.beta_1)
                velocity.mul_(rule.beta_2).addcmul_(grad, grad, value=1 - rule.beta_2)
                param.addcdiv_(momentum, velocity.sqrt().add_(rule.epsilon), value=-rule.learning_rate * correction)


def build_optimizer(rule: rules.Optimizer, params: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """The optimizer that follows `rule`."""
    match rule:
        case rules.SGD(learning_rate=learning_rate):
            return torch.optim.SGD(params, lr=learning_rate)
        case rules.RMSprop():
            return KerasRMSprop(params, rule)
        case rules.Adadelta(learning_rate=learning_rate, rho=rho, epsilon=epsilon):
            return torch.optim.Adadelta(params, lr=learning_rate, rho=rho, eps=epsilon)
        case rules.Adam():
            return KerasAdam(params, rule)
