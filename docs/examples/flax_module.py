"""A Flax NNX module that trains: with nnx.jit, and as a pure function with jax.jit.

kit run --program flax_module.py:nnx_jit --program flax_module.py:jax_jit --batch 64

nnx.jit walks the module's objects before each step; jax.jit gets arrays.
"""

import jax
import jax.numpy as jnp
import optax
from flax import nnx

INPUTS, WIDTH, CLASSES = 784, 256, 10


class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(INPUTS, WIDTH, rngs=rngs)
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.last = nnx.Linear(WIDTH, CLASSES, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.norm(self.first(x))))


def loss_of(model, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()


def update(model, optimizer, x, y):
    loss, gradients = nnx.value_and_grad(loss_of)(model, x, y)
    optimizer.update(model, gradients)
    return loss


def made(batch):
    model = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    x = jax.random.normal(jax.random.key(1), (batch, INPUTS))
    return model, optimizer, x, jnp.arange(batch) % CLASSES


def nnx_jit(batch, device):
    with jax.default_device(jax.devices(device)[0]):
        model, optimizer, x, y = made(batch)
    jitted = nnx.jit(update)

    def step():
        # The state is returned, too, because Steadykit waits for what a step returns.
        return jitted(model, optimizer, x, y), nnx.state((model, optimizer))

    return step


def jax_jit(batch, device):
    with jax.default_device(jax.devices(device)[0]):
        model, optimizer, x, y = made(batch)
        graph, state = nnx.split((model, optimizer))

    @jax.jit
    def pure_update(state, x, y):
        model, optimizer = nnx.merge(graph, state)
        loss = update(model, optimizer, x, y)
        return loss, nnx.state((model, optimizer))

    def step():
        nonlocal state
        loss, state = pure_update(state, x, y)
        return loss, state

    return step
