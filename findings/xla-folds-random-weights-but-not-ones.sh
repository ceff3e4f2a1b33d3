#!/usr/bin/env bash
# JAX: whether a jitted function that closes over its arrays is computed when it is compiled depends on their values. With
# random weights and batch the compiled program has no operation left: each call copies a constant. With weights and batch of
# jnp.ones the same function has all of its operations in each call. XLA folds an operation whose inputs are constants, and
# a constant of equal numbers is a broadcast of a scalar, which it leaves to run time. A benchmark that is checked with ones
# and measured with random numbers measures two programs.
#
# Seen: jax 0.10.2 on a CPU, Python 3.11: 0 flops with random numbers, 33554432 with ones.
set -euo pipefail
version=0.10.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "jax==$version"
JAX_PLATFORMS=cpu "$work/env/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp

SIZE = 256


def flops(weights, batch):
    return jax.jit(lambda: jnp.tanh(batch @ weights)).lower().compile().cost_analysis().get("flops", 0)


random = flops(*jax.random.normal(jax.random.key(0), (2, SIZE, SIZE)))
ones = flops(jnp.ones((SIZE, SIZE)), jnp.ones((SIZE, SIZE)))
print(f"random numbers {random:.0f}, ones {ones:.0f}")
assert random == 0, "changed: random constants are no longer folded"
assert ones == 2 * SIZE**3, "changed: constants of equal numbers are folded, too"
PYTHON
echo "as described: jax $version"
