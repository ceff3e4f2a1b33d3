"""The model of JAX's tutorial (https://docs.jax.dev/en/latest/notebooks/Neural_Network_and_Data_Loading.html).

kit run --program jax_tutorial.py --batch 128
"""

import jax
import jax.numpy as jnp
from jax import grad, jit, random, vmap
from jax.scipy.special import logsumexp

layer_sizes = [784, 512, 512, 10]
step_size = 0.01
n_targets = 10


def random_layer_params(m, n, key, scale=1e-2):
    w_key, b_key = random.split(key)
    return scale * random.normal(w_key, (n, m)), scale * random.normal(b_key, (n,))


def init_network_params(sizes, key):
    keys = random.split(key, len(sizes))
    return [random_layer_params(m, n, k) for m, n, k in zip(sizes[:-1], sizes[1:], keys, strict=False)]


def relu(x):
    return jnp.maximum(0, x)


def predict(params, image):
    activations = image
    for w, b in params[:-1]:
        outputs = jnp.dot(w, activations) + b
        activations = relu(outputs)

    final_w, final_b = params[-1]
    logits = jnp.dot(final_w, activations) + final_b
    return logits - logsumexp(logits)


batched_predict = vmap(predict, in_axes=(None, 0))


def loss(params, images, targets):
    preds = batched_predict(params, images)
    return -jnp.mean(preds * targets)


@jit
def update(params, x, y):
    grads = grad(loss)(params, x, y)
    return [(w - step_size * dw, b - step_size * db) for (w, b), (dw, db) in zip(params, grads, strict=True)]


# The tutorial ends here. The function below makes it a program for `kit run`.
def program(batch, device):
    with jax.default_device(jax.devices(device)[0]):
        params = init_network_params(layer_sizes, random.key(0))
        x = random.uniform(random.key(1), (batch, 784))
        y = jax.nn.one_hot(random.randint(random.key(2), (batch,), 0, n_targets), n_targets)

    def step():
        nonlocal params
        params = update(params, x, y)
        return params

    return step
