"""Keras' own optimizers, every hyperparameter given."""

from __future__ import annotations

import keras

from kit.workloads import optimizers as rules


def build_optimizer(rule: rules.Optimizer) -> keras.optimizers.Optimizer:
    """The Keras optimizer that follows `rule`."""
    match rule:
        case rules.SGD(learning_rate=learning_rate):
            return keras.optimizers.SGD(learning_rate, momentum=0.0)
        case rules.RMSprop(learning_rate=learning_rate, rho=rho, epsilon=epsilon):
            return keras.optimizers.RMSprop(learning_rate, rho=rho, momentum=0.0, epsilon=epsilon, centered=False)
        case rules.Adadelta(learning_rate=learning_rate, rho=rho, epsilon=epsilon):
            return keras.optimizers.Adadelta(learning_rate, rho=rho, epsilon=epsilon)
        case rules.Adam(learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon):
            return keras.optimizers.Adam(learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon, amsgrad=False)
