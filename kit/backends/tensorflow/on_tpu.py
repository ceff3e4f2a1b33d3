"""A TPU in TensorFlow: one core of the local TPU system behind a TPUStrategy.

TensorFlow guide "Use TPUs" (https://www.tensorflow.org/guide/tpu). The system is initialized once a process, and only
where the machine has a TPU: libtpu would wait minutes for a cloud's metadata, and then end the process.
"""

from __future__ import annotations

import functools

import tensorflow as tf

from kit.sensors import tpu


def count() -> int:
    """Return how many cores this process can use."""
    return len(tf.config.list_logical_devices("TPU")) if tpu.devices() and strategy() else 0


@functools.cache
def strategy() -> tf.distribute.TPUStrategy:
    """Return the strategy whose one replica is the first core."""
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    first = tf.tpu.experimental.DeviceAssignment.build(topology, num_replicas=1)
    return tf.distribute.TPUStrategy(resolver, experimental_device_assignment=first)


def wait_for(output: tf.Tensor) -> None:
    """Wait until the output is there: its first number is copied, as nothing else of TensorFlow waits for a TPU."""
    tf.reshape(output, [-1])[0].numpy()
