"""Operations in TensorFlow: traced functions; copies are the calls that move arrays to and from a device."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from kit.backends.protocol import DeviceBatch, Program
from kit.backends.tensorflow.about import ENTRY
from kit.backends.tensorflow.backend import set_precision
from kit.backends.tensorflow.program import DEVICES, TensorFlowProgram, Workers
from kit.profile.cell import Cell
from kit.workloads.device_operations import TRIAD_SCALE, square
from kit.workloads.seeded_arrays import operation_values


class TensorFlowOperation(TensorFlowProgram):
    """An operation; its step returns a tensor or variable on the device."""

    trace = Program.trace  # it was traced when it was built

    def __init__(self, cell: Cell) -> None:
        self._device = DEVICES[cell.device]
        self._asynchronous, self._tpu = cell.device != "cpu", cell.device == "tpu"
        self._eager = cell.workload.startswith("copy")
        self._workers = Workers()
        with tf.device(self._device):
            self._run = self._made(cell)

    def _made(self, cell: Cell) -> Callable[[], tf.Tensor]:
        match cell.workload:
            case "matmul":
                dtype = tf.bfloat16 if cell.precision == "bfloat16" else tf.float32
                a, b = (tf.cast(tf.random.uniform(square(cell)), dtype) for _ in range(2))
                return self._traced(tf.matmul, a, b)
            case "triad":
                a, b = (tf.constant(operation_values(cell)) for _ in range(2))
                updated = tf.Variable(a)

                def add(b: tf.Tensor) -> tf.Tensor:
                    # This operation reads both and writes one: a <- a - alpha b.
                    tf.raw_ops.ResourceApplyGradientDescent(var=updated.handle, alpha=TRIAD_SCALE, delta=b)
                    return updated[0]

                return self._traced(add, b)
            case "copy_in":
                host = operation_values(cell)

                def copy_in() -> tf.Tensor:
                    with tf.device(self._device):
                        return tf.constant(host)

                return copy_in
            case "copy_out":
                there = tf.constant(operation_values(cell))

                def copy_out() -> tf.Tensor:
                    there.numpy()
                    return there

                return copy_out
            case "empty":
                return self._traced(lambda x: x + x, tf.zeros(()))
            case _:
                raise ENTRY.untranslated(cell)

    def step(self, _batch: DeviceBatch) -> tf.Tensor:
        """Run the operation once."""
        self._output = self._run()
        return self._output

    def _traced(self, function: Callable[..., tf.Tensor], *tensors: tf.Tensor) -> Callable[[], tf.Tensor]:
        def placed(*arguments: tf.Tensor) -> tf.Tensor:
            with self._device_scope():
                return function(*arguments)

        self._function = tf.function(self._on_device(placed))
        call = self._function.get_concrete_function(*(tf.TensorSpec(t.shape, t.dtype) for t in tensors))
        return lambda: call(*tensors)


def build(cell: Cell) -> TensorFlowOperation:
    """Return the operation that a cell names."""
    set_precision(cell)
    return TensorFlowOperation(cell)
