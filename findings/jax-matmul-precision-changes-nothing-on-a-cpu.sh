#!/usr/bin/env bash
# JAX takes `default_matmul_precision` (JAX_DEFAULT_MATMUL_PRECISION) on a CPU without a word and multiplies in float32
# whatever it says, also where an algorithm is named ("BF16_BF16_F32"): the results are the same to the last bit. TensorFlow
# and PyTorch do lower the precision on the same CPU (ONEDNN_DEFAULT_FPMATH_MODE), so "bfloat16 in all three" is not.
#
# Seen: jax 0.10.2 on a CPU, Python 3.11: one largest error for all settings; arrays of bfloat16 have one 8,000 times larger.
set -euo pipefail
version=0.10.2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check "jax==$version"
JAX_PLATFORMS=cpu "$work/env/bin/python" - <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np

matrix = np.random.default_rng(0).normal(size=(256, 256)).astype(np.float32)
exact = matrix.astype(np.float64) @ matrix


def product(precision):
    with jax.default_matmul_precision(precision):
        return np.asarray(jax.jit(lambda each: each @ each)(matrix))


results = {name: product(name) for name in ("float32", "tensorfloat32", "bfloat16", "BF16_BF16_F32")}
rounded = jnp.asarray(matrix, jnp.bfloat16)
errors = {name: float(abs(result - exact).max()) for name, result in results.items()}
errors["arrays of bfloat16"] = float(abs(np.asarray((rounded @ rounded).astype(jnp.float32)) - exact).max())
print(errors)
assert all((result == results["float32"]).all() for result in results.values()), "changed: the setting has an effect"
assert errors["arrays of bfloat16"] > 100 * errors["bfloat16"]
PYTHON
echo "as described: jax $version"
