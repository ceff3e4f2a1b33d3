"""The MLP by hand, in float64: forward, backward and the four update rules as kit.workloads.optimizers states them.

Written from the formulas, not from a backend, so that three backends that are wrong alike are still caught.
"""

from __future__ import annotations

import numpy as np

from kit.workloads import optimizers as rules
from kit.workloads.layers import Dense


def softmax_cross_entropy(logits, targets):
    """Mean loss, and its gradient with respect to the logits."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(targets))
    gradient = np.exp(log_probabilities)
    gradient[rows, targets] -= 1
    return -log_probabilities[rows, targets].mean(), gradient / len(targets)


class ReferenceMlp:
    """A chain of Dense layers (relu or linear), trained by one of the four rules."""

    def __init__(self, workload, weights):
        self.layers = [(placed.name, placed.layer) for placed in workload.placed_layers()]
        assert all(isinstance(layer, Dense) for _, layer in self.layers)
        self.rule = workload.optimizer
        self.weights = {name: array.astype(np.float64) for name, array in weights.items()}
        self.first = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self.second = {name: np.zeros_like(array) for name, array in self.weights.items()}
        self.steps = 0

    def logits(self, inputs):
        return self._forward(inputs)[-1]

    def step(self, inputs, targets):
        """One update; the loss before it."""
        activations = self._forward(inputs)
        loss, gradient = softmax_cross_entropy(activations[-1], targets)
        gradients = {}
        for place in reversed(range(len(self.layers))):
            name, layer = self.layers[place]
            if layer.activation == "relu":
                gradient = gradient * (activations[place + 1] > 0)
            gradients[f"{name}.kernel"] = activations[place].T @ gradient
            gradients[f"{name}.bias"] = gradient.sum(axis=0)
            gradient = gradient @ self.weights[f"{name}.kernel"].T
        self.steps += 1
        for name, each in gradients.items():
            self._update(name, each)
        return loss

    def _forward(self, inputs):
        activations = [inputs.astype(np.float64)]
        for name, layer in self.layers:
            z = activations[-1] @ self.weights[f"{name}.kernel"] + self.weights[f"{name}.bias"]
            activations.append(np.maximum(z, 0) if layer.activation == "relu" else z)
        return activations

    def _update(self, name, g):
        weight, first, second = self.weights[name], self.first[name], self.second[name]
        match self.rule:
            case rules.SGD(lr):
                weight -= lr * g
            case rules.RMSprop(lr, rho, epsilon):
                second[:] = rho * second + (1 - rho) * g**2
                weight -= lr * g / np.sqrt(second + epsilon)
            case rules.Adadelta(lr, rho, epsilon):
                second[:] = rho * second + (1 - rho) * g**2
                delta = g * np.sqrt(first + epsilon) / np.sqrt(second + epsilon)
                first[:] = rho * first + (1 - rho) * delta**2
                weight -= lr * delta
            case rules.Adam(lr, beta_1, beta_2, epsilon):
                first[:] = beta_1 * first + (1 - beta_1) * g
                second[:] = beta_2 * second + (1 - beta_2) * g**2
                rate = lr * np.sqrt(1 - beta_2**self.steps) / (1 - beta_1**self.steps)
                weight -= rate * first / (np.sqrt(second) + epsilon)
