"""Keras' update rules in optax, every hyperparameter given.

optax.sgd, optax.rmsprop (with eps_in_sqrt) and optax.adadelta are Keras' rules. optax.adam adds epsilon after the bias
correction, Keras before it, so Adam is written here as one optax transformation.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax

from kit.workloads import optimizers as rules

Tree: TypeAlias = Any  # parameters, or anything of their structure


class AdamState(NamedTuple):
    """Steps so far, and both moments of every parameter."""

    count: jax.Array
    momentum: Tree
    velocity: Tree


def keras_adam(rule: rules.Adam) -> optax.GradientTransformation:
    """Adam in its epsilon-hat form."""

    def init(params: Tree) -> AdamState:
        zeros = jax.tree.map(jnp.zeros_like, params)
        return AdamState(jnp.zeros((), jnp.int32), zeros, jax.tree.map(jnp.zeros_like, params))

    def update(grads: Tree, state: AdamState, _params: Tree = None) -> tuple[Tree, AdamState]:
        count = state.count + 1
        momentum = optax.tree.update_moment(grads, state.momentum, rule.beta_1, 1)
        velocity = optax.tree.update_moment(grads, state.velocity, rule.beta_2, 2)
        rate = rule.learning_rate * jnp.sqrt(1 - rule.beta_2**count) / (1 - rule.beta_1**count)
        updates = jax.tree.map(lambda m, v: -rate * m / (jnp.sqrt(v) + rule.epsilon), momentum, velocity)
        return updates, AdamState(count, momentum, velocity)

    return optax.GradientTransformation(init, update)


def build_optimizer(rule: rules.Optimizer) -> optax.GradientTransformation:
    """The optax transformation that follows `rule`."""
    match rule:
        case rules.SGD(learning_rate=learning_rate):
            return optax.sgd(learning_rate, momentum=None)
        case rules.RMSprop(learning_rate=learning_rate, rho=rho, epsilon=epsilon):
            return optax.rmsprop(learning_rate, decay=rho, eps=epsilon, initial_scale=0.0, eps_in_sqrt=True)
        case rules.Adadelta(learning_rate=learning_rate, rho=rho, epsilon=epsilon):
            return optax.adadelta(learning_rate, rho=rho, eps=epsilon, weight_decay=0.0)
        case rules.Adam():
            return keras_adam(rule)
