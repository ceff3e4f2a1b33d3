"""TensorFlow: Keras layers and optimizers in a training step of our own under tf.function; eager and XLA as modes.

The step is the one of the guide "Writing a training loop from scratch in TensorFlow"
(https://keras.io/guides/writing_a_custom_training_loop_in_tensorflow/), without its metrics.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"  # before Keras is imported, whatever keras.json says

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from kit.backends.defaults import keeps_defaults, keeps_precision, tf32_setting, variables_set
from kit.backends.entry import BackendError
from kit.backends.hlo import kernel_ops
from kit.backends.protocol import Compilations, DeviceBatch, HostBatch, Program, ThreadSetting
from kit.backends.ranks import ALONE, RankPlace
from kit.backends.tensorflow.about import ENTRY
from kit.backends.tensorflow.layers import build_model, build_optimizer
from kit.backends.tensorflow.workers import Workers
from kit.profile.cell import Cell
from kit.profile.reason import reason
from kit.sensors import tpu
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload

TensorFlowBatch = tuple[tf.Tensor, tf.Tensor]

# Operations in a graph that loop, multiply or call a library.
KERNEL_OPS = ("While", "StatelessWhile", "CudnnRNN", "Conv2D", "MatMul", "BatchMatMul", "Einsum")

OWN_TF32 = tf.config.experimental.tensor_float_32_execution_enabled()
DEVICES = {"cpu": "/CPU:0", "gpu": "/GPU:0", "tpu": "/TPU:0"}


@functools.cache
def tpu_strategy() -> tf.distribute.TPUStrategy:
    """Return the strategy whose one replica is the first core of the local TPU system, which it initializes.

    TensorFlow guide "Use TPUs" (https://www.tensorflow.org/guide/tpu). Only where the machine has a TPU: libtpu would
    wait minutes for a cloud's metadata, and then end the process.
    """
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    first = tf.tpu.experimental.DeviceAssignment.build(topology, num_replicas=1)
    return tf.distribute.TPUStrategy(resolver, experimental_device_assignment=first)


class TensorFlowProgram(Program):
    """A cell in TensorFlow. The graph is optimized, and XLA compiles, in the first call."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, workers: Workers) -> None:
        self._workers = workers
        self._device = DEVICES[cell.device]
        # On a CPU a tf.function returns when it is done; only an accelerator is left running behind it.
        self._asynchronous = cell.device != "cpu"
        self._tpu = cell.device == "tpu"
        self._host_feed = cell.feed == "host"
        self._train = cell.task == "train"
        self._xla = cell.compile_mode == "xla"
        # TensorFlow keeps int32 in host memory, where it would be copied from in each step; int64 it does not.
        self._target_type = np.int64 if self._asynchronous else np.int32
        batch = cell.batch // workers.size
        inputs = tf.TensorSpec((batch, *workload.input_shape), tf.float32)
        self._specs = [inputs, tf.TensorSpec((batch,), self._target_type)] if self._train else [inputs]
        self._reconstruction = workload.loss == "reconstruction"
        self._loss = (
            keras.losses.MeanSquaredError()
            if self._reconstruction
            else keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        )
        with tpu_strategy().scope() if self._tpu else tf.device(self._device):
            self._model = build_model(workload, cell, weights, seed)
            if self._train:
                self._optimizer = build_optimizer(workload.optimizer)
                self._optimizer.build(self._model.trainable_variables)
        step = self._train_step if self._train else self._infer_step
        self._eager = cell.compile_mode == "eager"
        self._call: Any = step  # until it is traced
        # What a TPUStrategy runs is compiled by XLA whatever the mode.
        self._function = tf.function(self._on_device(step), jit_compile=self._xla and not self._tpu)
        self._logits = tf.function(self._on_device(self._infer_step))
        self._output: tf.Tensor | None = None
        self._targets_at = ""

    def put(self, batch: HostBatch) -> TensorFlowBatch:
        """Copy one batch to the device."""
        resident = self._tensors(batch)
        self.synchronize()
        self._targets_at = resident[1].backing_device  # int32 would stay with the host, and be copied in each step
        return resident

    def trace(self) -> bool:
        """Trace to a concrete function. `step` calls that, which cannot retrace; in eager mode nothing is traced."""
        if not self._eager:
            self._call = self._function.get_concrete_function(*self._specs)
        return not self._eager

    def step(self, batch: DeviceBatch) -> tf.Tensor:
        """Run one optimizer update or one forward pass."""
        inputs, targets = self._tensors(batch) if self._host_feed else batch
        self._output = self._call(inputs, targets) if self._train else self._call(inputs)
        return self._output

    def synchronize(self) -> None:
        """Wait for the accelerator; on a CPU the step has returned when it is done."""
        if self._tpu and self._output is not None:
            tf.reshape(self._output, [-1])[0].numpy()  # its first number: nothing else of TensorFlow waits for a TPU
        elif self._asynchronous:
            # What `tf.test.experimental.sync_devices` does on every device that is visible.
            with tf.device(self._device):
                tf.raw_ops.SyncDevice()

    def predict(self, batch: HostBatch) -> NDArray[np.float32]:
        """Return the output of a function of its own."""
        return self.to_host(self._logits(self._tensors(batch)[0]))

    def kernels(self) -> list[str]:
        """Name the telling operations of the traced function, which an eager step runs, too; or what XLA made of it."""
        if self._xla:
            return kernel_ops(self._function.experimental_get_compiler_ir(*self._specs)(stage="optimized_hlo"))
        graph = self._function.get_concrete_function(*self._specs).graph.as_graph_def()
        nodes = itertools.chain(graph.node, *(function.node_def for function in graph.library.function))
        return sorted({node.op for node in nodes if node.op.startswith(KERNEL_OPS)})

    def settings(self) -> dict[str, str]:
        """Return the switch of TensorFloat-32, which holds for a TPU's bfloat16, too; and what a GPU alone has."""
        switch = tf.config.experimental.tensor_float_32_execution_enabled()
        if self._tpu:
            return {"tensor_float_32": str(switch)} | variables_set()
        settings = {
            "tensor_float_32": tf32_setting(switch),
            "cudnn_autotune": os.environ.get("TF_CUDNN_USE_AUTOTUNE", "1"),
        }
        gpus = tf.config.list_physical_devices("GPU")
        if gpus and (limits := tf.config.get_logical_device_configuration(gpus[0])):
            settings["memory_limit_mib"] = str(limits[0].memory_limit)
        if self._targets_at:
            settings["targets"] = self._targets_at.rpartition("device:")[2]
        return settings | self._workers.settings | variables_set("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR")

    def compilations(self) -> Compilations:
        """Return how often the step has been traced; under XLA each trace is compiled once."""
        if self._eager:
            return Compilations(count=None, reason=reason("eager"))
        return Compilations(count=self._function.experimental_get_tracing_count())

    def _on_device(self, step: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
        return (lambda *batch: tpu_strategy().run(step, args=batch)) if self._tpu else step

    def _place(self) -> AbstractContextManager[object]:
        """Return the device of a step; a replica has its own."""
        return nullcontext() if self._tpu else tf.device(self._device)

    def _train_step(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with self._place():
            with tf.GradientTape() as tape:
                wanted = inputs if self._reconstruction else targets
                loss = self._loss(wanted, self._model(inputs, training=True))
            variables = self._model.trainable_variables
            self._optimizer.apply(self._workers.averaged(tape.gradient(loss, variables)), variables)
            return loss

    def _infer_step(self, inputs: tf.Tensor) -> tf.Tensor:
        with self._place():
            return self._model(inputs, training=False)

    def _tensors(self, batch: HostBatch) -> TensorFlowBatch:
        with tf.device(self._device):
            return tf.constant(batch.inputs), tf.constant(batch.targets.astype(self._target_type, copy=False))


class TensorFlowBackend:
    """TensorFlow. See `kit.backends.protocol.Backend`."""

    name = ENTRY.name
    version = tf.__version__
    _ranks = ALONE
    _kind = "cpu"  # of the ranks' device

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set the intra-op and the inter-op pool; reports the intra-op pool, which it tells of no number of its own."""
        if threads is None:
            return ThreadSetting(None, reason("threads_left_to_framework"))
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        return ThreadSetting(tf.config.threading.get_intra_op_parallelism_threads(), None)

    def join(self, ranks: RankPlace, kind: str, devices: int) -> None:
        """Keep who the workers are: to connect to them starts what `set_threads` must come before."""
        if devices != 1:
            raise BackendError(f"TensorFlow uses one process per {kind}, so this process cannot use {devices}")
        self._ranks, self._kind = ranks, kind

    @functools.cached_property
    def _workers(self) -> Workers:
        return Workers(self._ranks, self._kind)

    def count(self, kind: str) -> int:
        """Count CPUs, GPUs or cores of TPUs: to see a TPU's TensorFlow takes it, and another process cannot."""
        if self._ranks.size > 1:
            _ = self._workers  # nothing may ask for devices before
        if kind != "tpu":
            return len(tf.config.list_physical_devices(kind.upper()))
        return len(tf.config.list_logical_devices("TPU")) if tpu.devices() and tpu_strategy() else 0

    def share_gpu_memory(self, share: float) -> None:
        """Bound what TensorFlow's allocator takes of the first GPU, the one that cells are put on."""
        from kit.sensors.nvml import memory_b

        if keeps_defaults():
            return
        gpus, whole_b = tf.config.list_physical_devices("GPU"), memory_b(0)
        if gpus and whole_b is not None:
            limit = tf.config.LogicalDeviceConfiguration(memory_limit=int(share * whole_b / 2**20))
            tf.config.set_logical_device_configuration(gpus[0], [limit])

    def peak_memory_b(self, device: str) -> int | None:
        """Return what TensorFlow's allocator held on the GPU."""
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"]) if device == "gpu" else None

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> TensorFlowProgram:
        """Build the program."""
        if self._ranks.size > 1 and cell.compile_mode == "xla" and cell.device == "cpu" and cell.task == "train":
            raise BackendError("TensorFlow's XLA has no collectives on a CPU; with --devices choose graph or eager")
        set_precision(cell)
        # No other default from a user's keras.json.
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("mixed_bfloat16" if cell.precision == "bfloat16" else "float32")
        keras.config.set_image_data_format("channels_last")
        # Of dropout: each part of a batch has its own masks.
        return TensorFlowProgram(workload, cell, weights, seed + self._ranks.number, self._workers)


def set_precision(cell: Cell) -> None:
    """Set what float32 is multiplied in. float32 is float32: no TensorFloat-32 on a GPU."""
    allowed = OWN_TF32 if keeps_precision(cell) else cell.precision == "tf32"
    tf.config.experimental.enable_tensor_float_32_execution(allowed)


BACKEND = TensorFlowBackend()
