"""Flax NNX' own loops: the MNIST tutorial's nnx.jit step, and the performance guide's functional one under jax.jit.

https://flax.readthedocs.io/en/latest/mnist_tutorial.html
https://flax.readthedocs.io/en/latest/guides/performance.html
"""

from functools import partial

import jax
import optax
from flax import nnx
from recommended.loop import Loop


class MLP(nnx.Module):
    def __init__(self, *, rngs):
        self.linear1 = nnx.Linear(784, 512, rngs=rngs)
        self.linear2 = nnx.Linear(512, 512, rngs=rngs)
        self.linear3 = nnx.Linear(512, 10, rngs=rngs)
        self.dropout1 = nnx.Dropout(rate=0.2, rngs=rngs)
        self.dropout2 = nnx.Dropout(rate=0.2, rngs=rngs)

    def __call__(self, x):
        x = self.dropout1(nnx.relu(self.linear1(x)))
        x = self.dropout2(nnx.relu(self.linear2(x)))
        return self.linear3(x)


class CNN(nnx.Module):
    def __init__(self, *, rngs):
        self.conv1 = nnx.Conv(1, 32, kernel_size=(3, 3), padding="VALID", rngs=rngs)
        self.conv2 = nnx.Conv(32, 64, kernel_size=(3, 3), padding="VALID", rngs=rngs)
        self.max_pool = partial(nnx.max_pool, window_shape=(2, 2), strides=(2, 2))
        self.dropout1 = nnx.Dropout(rate=0.25, rngs=rngs)
        self.linear1 = nnx.Linear(9216, 128, rngs=rngs)
        self.dropout2 = nnx.Dropout(rate=0.5, rngs=rngs)
        self.linear2 = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.conv1(x))
        x = self.dropout1(self.max_pool(nnx.relu(self.conv2(x))))
        x = x.reshape(x.shape[0], -1)
        x = self.dropout2(nnx.relu(self.linear1(x)))
        return self.linear2(x)


def loss_fn(model, x, y):
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits=logits, labels=y).mean()


def make(workload):
    model = {"mlp": MLP, "cnn": CNN}[workload](rngs=nnx.Rngs(0))
    tx = {
        "mlp": optax.rmsprop(1e-3, decay=0.9, eps=1e-7),
        "cnn": optax.adadelta(1e-3, rho=0.95, eps=1e-7),
    }[workload]
    return model, nnx.Optimizer(model, tx, wrt=nnx.Param)


def put(inputs, targets):
    return jax.block_until_ready(jax.device_put((inputs, targets)))


def loops(workload, task):
    return train_loops(workload) if task == "train" else infer_loops(workload)


def train_loops(workload):
    model, optimizer = make(workload)

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
        "nnx.jit": Loop(lambda batch: train_step(model, optimizer, *batch), jax.block_until_ready),
        "functional": Loop(functional, jax.block_until_ready),
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
        "nnx.jit": Loop(lambda batch: pred_step(model, batch[0]), jax.block_until_ready),
        "functional": Loop(lambda batch: jax_pred_step(graphdef, state, batch[0]), jax.block_until_ready),
    }
