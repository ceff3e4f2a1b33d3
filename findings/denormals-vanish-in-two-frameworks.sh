#!/usr/bin/env bash
# TensorFlow and JAX treat denormal numbers as zero on a CPU, when they compute (in every mode) and when they compare;
# PyTorch and NumPy keep them, in the same process. So the state of an optimizer that decays (RMSprop's mean of squares of a
# gradient that has vanished) becomes zero in two frameworks and a denormal number in the third, which computes on with it:
# three runs of "the same" training no longer do the same work. A JAX array can hold a denormal number that
# JAX says is equal to 0 and whose copy in NumPy is not.
#
# Seen: tensorflow-cpu 2.21.0, jax 0.10.2, torch 2.13.0 for CPUs, Python 3.11, Linux on x86-64.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/env"
"$work/env/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 jax==0.10.2 tensorflow-cpu==2.21.0
JAX_PLATFORMS=cpu TF_CPP_MIN_LOG_LEVEL=3 "$work/env/bin/python" - 2>/dev/null <<'PYTHON'
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch

small = np.full(1 << 20, 1e-20, np.float32)


def decayed_tf(values):
    return values * np.float32(1e-20)


kept = {
    "NumPy": small * np.float32(1e-20),
    "torch": (torch.from_numpy(small) * 1e-20).numpy(),
    "jax, op by op": np.asarray(jnp.asarray(small) * np.float32(1e-20)),
    "jax, jit": np.asarray(jax.jit(lambda values: values * np.float32(1e-20))(small)),
    "tensorflow, eager": decayed_tf(tf.constant(small)).numpy(),
    "tensorflow, graph": tf.function(decayed_tf)(tf.constant(small)).numpy(),
    "tensorflow, XLA": tf.function(decayed_tf, jit_compile=True)(tf.constant(small)).numpy(),
}
shares = {name: float((values.view(np.int32) != 0).mean()) for name, values in kept.items()}
print(shares)
assert [shares[name] for name in ("NumPy", "torch")] == [1.0, 1.0], "changed: NumPy or PyTorch flushes"
assert not any(share for name, share in shares.items() if name not in ("NumPy", "torch")), "changed: some keep them"
held = jnp.asarray(kept["NumPy"])
print(f"held by JAX: {float(np.asarray(held)[0])}, equal to 0: {bool((held == 0).all())}")
assert np.asarray(held)[0] != 0, "changed: an array no longer holds it"
assert bool((held == 0).all()), "changed: a comparison no longer takes it for zero"
PYTHON
echo "as described: TensorFlow and JAX flush, PyTorch and NumPy do not"
