"""Flax NNX' own loops: the MNIST tutorial's nnx.jit step, and the performance guide's functional one under jax.jit.

https://flax.readthedocs.io/en/latest/mnist_tutorial.html
https://flax.readthedocs.io/en/latest/guides/performance.html
"""

from functools import partial

import jax
import optax
from flax import nnx
from recommended.jax_models import MODELS
from recommended.loop import Loop

OPTIMIZERS = {
    "mlp": optax.rmsprop(1e-3, decay=0.9, eps=1e-7),
    "cnn": optax.adadelta(1e-3, rho=0.95, eps=1e-7),
    "rnn": optax.sgd(1e-2),
    "resnet50": optax.sgd(1e-2),
}
ADAM = optax.adam(1e-3, eps=1e-7)


def cross_entropy(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits=logits, labels=y).mean()


def reconstruction(model, x, _):
    return optax.squared_error(model(x), x).mean()


def make(workload):
    model = MODELS[workload](rngs=nnx.Rngs(0))
    return model, nnx.Optimizer(model, OPTIMIZERS.get(workload, ADAM), wrt=nnx.Param)


def counted(model):
    return sum(leaf.size for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))


def put(inputs, targets):
    return jax.block_until_ready(jax.device_put((inputs, targets)))


def loops(workload, task):
    return train_loops(workload) if task == "train" else infer_loops(workload)


def train_loops(workload):
    model, optimizer = make(workload)
    loss_fn = reconstruction if workload == "autoencoder" else cross_entropy

    @nnx.jit
    def train_step(model, optimizer, x, y):
        loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
        optimizer.update(model, grads)
        return loss

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def jax_train_step(graphdef, state, x, y):
        model, optimizer = nnx.merge(graphdef, state)
        loss, grads = nnx.value_and_grad(loss_fn)(model, x, y)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    graphdef, state = nnx.split(make(workload))

    def functional(batch):
        nonlocal state
        state, loss = jax_train_step(graphdef, state, *batch)
        return loss

    return {
        "nnx.jit": Loop(lambda batch: train_step(model, optimizer, *batch), jax.block_until_ready, counted(model)),
        "functional": Loop(functional, jax.block_until_ready, counted(model)),
    }


def infer_loops(workload):
    model, _ = make(workload)
    model.eval()

    @nnx.jit
    def pred_step(model, x):
        return model(x)

    @partial(jax.jit, static_argnums=0)
    def jax_pred_step(graphdef, state, x):
        return nnx.merge(graphdef, state)(x)

    graphdef, state = nnx.split(model)
    return {
        "nnx.jit": Loop(lambda batch: pred_step(model, batch[0]), jax.block_until_ready, counted(model)),
        "functional": Loop(
            lambda batch: jax_pred_step(graphdef, state, batch[0]), jax.block_until_ready, counted(model)
        ),
    }
