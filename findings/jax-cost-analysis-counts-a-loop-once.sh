#!/usr/bin/env bash
# JAX: `cost_analysis()` of a compiled function counts the body of a loop once, however often it runs, also where the number
# of iterations is a constant that XLA knows. A network whose layers are a lax.scan, as JAX's own guides recommend for deep
# ones, has the operations of a single layer; a utilization or roofline from this number is wrong by the number of layers.
# The same network with `unroll=10`, or written out, has all of them.
#
# Seen: jax 0.10.2 on a CPU, Python 3.11: 524288 flops for one product of 64 × 64 matrices, 524290 for a scan or a fori_loop
# of ten, 5242880 unrolled.
set -euo pipefail
version=0.10.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "jax==$version"
JAX_PLATFORMS=cpu "$work/env/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp

weights, batch = jnp.ones((64, 64)), jnp.ones((64, 64))


def flops(function):
    return jax.jit(function).lower(weights, batch).compile().cost_analysis()["flops"]


def scanned(unroll):
    return lambda w, x: jax.lax.scan(lambda y, _: (y @ w, None), x, None, length=10, unroll=unroll)[0]


one = flops(lambda w, x: x @ w)
scan, loop, unrolled = flops(scanned(1)), flops(lambda w, x: jax.lax.fori_loop(0, 10, lambda _, y: y @ w, x)), flops(scanned(10))
print(f"one product {one:.0f}, scan of ten {scan:.0f}, fori_loop of ten {loop:.0f}, ten unrolled {unrolled:.0f}")
assert one == 2 * 64**3
assert unrolled == 10 * one
assert scan < 1.1 * one, "changed: a scan's iterations are counted"
assert loop < 1.1 * one, "changed: a fori_loop's iterations are counted"
PYTHON
echo "as described: jax $version"
