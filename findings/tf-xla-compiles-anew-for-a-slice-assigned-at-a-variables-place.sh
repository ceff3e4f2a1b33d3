#!/bin/sh
# TensorFlow 2.21 on a CPU: a tf.function with jit_compile=True whose step assigns one row of a variable, at a place that
# is another variable, is compiled by XLA once for each value of the place. TensorFlow counts one tracing all the while.
# Written by scatter_nd_update, the same step is compiled once. Without XLA both take as long at every place.
#
# Whoever keeps keys and values of a decoder in variables and assigns slices pays a compilation for each token of the
# first answer, and none that a count of tracings shows.
#
# Seen 2026-11-29, tensorflow 2.21.0, Python 3.11, x86-64, 2 CPUs:
#
#   slice    first pass  41.0 ms a step   second pass   0.2 ms a step   tracings 1
#   scatter  first pass   0.1 ms a step   second pass   0.1 ms a step   tracings 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0 ||
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow==2.21.0
TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES="" "$folder/venv/bin/python" - <<'PYTHON'
import statistics
import sys
import time

import tensorflow as tf

ROWS, PLACES = 8, 24


def passes(write):
    """Return the median time of a step, in the first pass over the places and in the second, and the tracings."""
    rows = tf.Variable(tf.zeros((ROWS, PLACES, 64)))
    place = tf.Variable(tf.constant(0, tf.int64))

    @tf.function(jit_compile=True)
    def step():
        at = place.read_value()
        write(rows, tf.ones((ROWS, 1, 64)), at)
        place.assign((at + 1) % PLACES)
        return tf.reduce_sum(tf.convert_to_tensor(rows))

    medians = []
    for first in (True, False):
        times = []
        for number in range(PLACES):
            begin = time.perf_counter()
            total = float(step())
            times.append(time.perf_counter() - begin)
            assert total == ROWS * 64 * (number + 1 if first else PLACES), total
        medians.append(1e3 * statistics.median(times))
    return (*medians, step.experimental_get_tracing_count())


def by_slice(rows, new, at):
    rows[:, at : at + 1].assign(new)


def by_scatter(rows, new, at):
    places = tf.stack([tf.range(ROWS, dtype=tf.int64), tf.fill([ROWS], at)], axis=1)
    rows.scatter_nd_update(places, new[:, 0])


seen = {name: passes(write) for name, write in (("slice", by_slice), ("scatter", by_scatter))}
for name, (first, second, tracings) in seen.items():
    print(f"{name:8} first pass {first:5.1f} ms a step   second pass {second:5.1f} ms a step   tracings {tracings}")
(first, second, tracings), (scattered, *_) = seen["slice"], seen["scatter"]
sys.exit(not (first > 5 * second and first > 5 * scattered and tracings == 1))
PYTHON
