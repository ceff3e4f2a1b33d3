"""TensorFlow: Keras layers and optimizers in a training step under tf.function; eager and XLA are further modes.

The step is that of the guide "Writing a training loop from scratch in TensorFlow"
(https://keras.io/guides/writing_a_custom_training_loop_in_tensorflow/), without its metrics.

The ranks of a cell are TensorFlow's workers: the collectives of MultiWorkerMirroredStrategy average gradients. Keras 3
does not support that strategy (keras-team/keras issue 20585), so no variable is made in its scope. Each worker has its
own network with the same initial weights, and makes the same update from the averaged gradients.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

os.environ["KERAS_BACKEND"] = "tensorflow"  # before Keras is imported, whatever keras.json says

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from kit.backends.entry import ONEDNN_PRECISION, BackendError, tf32_setting, variables_set
from kit.backends.protocol import ALONE, HEARTBEAT_S, DeviceBatch, Program, RankGroup, all_reduces, kernel_ops, up_to
from kit.backends.tensorflow import proof
from kit.backends.tensorflow.layers import build_model, build_optimizer
from kit.environment import COLLECTIVE_PACK_B
from kit.profile.cell import Cell
from kit.profile.fields import reason
from kit.profile.schema import Compilations, WhatRan
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload

TensorFlowBatch = tuple[tf.Tensor, tf.Tensor]
Tensors = list[tf.Tensor]
# These operations of a graph loop, multiply or call a library.
KERNEL_OPS = ("While", "StatelessWhile", "CudnnRNN", "Conv2D", "MatMul", "BatchMatMul", "Einsum")
DEVICES = {"cpu": "/CPU:0", "gpu": "/GPU:0", "tpu": "/TPU:0"}


@functools.cache
def tpu_strategy() -> tf.distribute.TPUStrategy:
    """Return the strategy whose one replica is the first core of the local TPU system, which it initializes.

    TensorFlow guide "Use TPUs" (https://www.tensorflow.org/guide/tpu). Without a TPU libtpu waits minutes for a cloud's
    metadata and then ends the process.
    """
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    first = tf.tpu.experimental.DeviceAssignment.build(topology, num_replicas=1)
    return tf.distribute.TPUStrategy(resolver, experimental_device_assignment=first)


class TensorFlowProgram(Program):
    """A cell in TensorFlow. The first call optimizes the graph, or compiles it by XLA."""

    _output: tf.Tensor | None = None  # of the last step
    _targets_at = ""  # the device of a resident batch's targets
    _kept: list[NDArray[Any]] | None = None  # the first values of `_variables`, on the host

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, seed: int, workers: Workers) -> None:
        self._workers = workers
        self._device = DEVICES[cell.device]
        # A step on a CPU returns when it is done; an accelerator works on after the call.
        self._asynchronous = cell.device != "cpu"
        self._tpu = cell.device == "tpu"
        self._host_feed = cell.feed == "host"
        self._train = cell.traits.trains
        self._xla = cell.compile_mode == "xla"
        # TensorFlow keeps int32 in host memory and copies it in each step. It does not do so with int64.
        self._whole_type = np.int64 if self._asynchronous else np.int32
        self._input_type = self._whole_type if workload.takes_tokens else np.float32
        batch = cell.batch // workers.size
        inputs = tf.TensorSpec((batch, *workload.input_shape), self._input_type)
        targets = tf.TensorSpec((batch, *workload.target_shape), self._whole_type)
        self._specs = [inputs, targets] if self._train else [inputs]
        self._reconstruction = workload.loss == "reconstruction"
        of_classes = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self._loss = keras.losses.MeanSquaredError() if self._reconstruction else of_classes
        with tpu_strategy().scope() if self._tpu else tf.device(self._device):
            self._model = build_model(workload, cell, weights, seed)
            if self._train:
                self._optimizer = build_optimizer(workload.optimizer)
                self._optimizer.build(self._model.trainable_variables)
        optimized = self._optimizer.variables if self._train else []
        self._variables = [variable.value for variable in (*self._model.weights, *optimized)]
        step = self._train_step if self._train else self._infer_step
        self._eager = cell.compile_mode == "eager"
        self._call: Any = step  # until it is traced
        # XLA compiles what a TPUStrategy runs, whatever the mode.
        self._function = tf.function(self._on_device(step), jit_compile=self._xla and not self._tpu)
        self._logits = tf.function(self._on_device(self._infer_step))

    def put(self, batch: HostBatch) -> TensorFlowBatch:
        """Copy one batch to the device."""
        resident = self._tensors(batch)
        self.synchronize()
        self._targets_at = resident[1].backing_device
        return resident

    def keep(self) -> bool:
        """Copy weights and optimizer state."""
        self._kept = [np.array(variable) for variable in self._variables]
        return True

    def restore(self) -> bool:
        """Assign new tensors: a variable takes the memory of what it is assigned, and graphs know it by its handle."""
        if self._kept is None:
            return False
        with self._device_scope():
            for variable, array in zip(self._variables, self._kept, strict=True):
                value = tf.constant(array)
                # On a CPU this tensor may lie in memory of NumPy's.
                variable.assign(value if self._asynchronous else tf.raw_ops.DeepCopy(x=value), read_value=False)
        self.synchronize()
        return True

    def state(self, most: int) -> Iterator[NDArray[Any]]:
        """Return the variables of model and optimizer."""
        return (np.asarray(variable) for variable in up_to(most, self._variables))

    def trace(self) -> bool:
        """Trace to a concrete function, which `step` calls and which cannot retrace. Eager mode traces nothing."""
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
            tf.reshape(self._output, [-1])[0].numpy()  # TensorFlow has no other wait for a TPU than copying a number
        elif self._asynchronous:
            # `tf.test.experimental.sync_devices` does this on every visible device.
            with tf.device(self._device):
                tf.raw_ops.SyncDevice()

    def predict(self, batch: HostBatch) -> NDArray[np.float32]:
        """Return the output of a separate function."""
        return self.to_host(self._logits(self._tensors(batch)[0]))

    def kernels(self) -> list[str]:
        """Name operations of the traced function, which an eager step runs, too; under XLA those of its program."""
        if self._xla:
            return kernel_ops(self._function.experimental_get_compiler_ir(*self._specs)(stage="optimized_hlo"))
        graph = self._function.get_concrete_function(*self._specs).graph.as_graph_def()
        nodes = itertools.chain(graph.node, *(function.node_def for function in graph.library.function))
        return sorted({node.op for node in nodes if node.op.startswith(KERNEL_OPS)})

    def settings(self) -> dict[str, str]:
        """Return the switch of TensorFloat-32, which applies to a TPU's bfloat16, too, and the settings of a GPU."""
        switch = tf.config.experimental.tensor_float_32_execution_enabled()
        if self._tpu:
            return {"tensor_float_32": str(switch)} | variables_set()
        if not self._asynchronous:
            precision = variables_set("TF_SET_ONEDNN_FPMATH_MODE", *ONEDNN_PRECISION)
            return {"tensor_float_32": str(switch)} | self._workers.settings | precision
        settings = {"tensor_float_32": tf32_setting(switch)}
        settings["cudnn_autotune"] = os.environ.get("TF_CUDNN_USE_AUTOTUNE", "1")
        gpus = tf.config.list_physical_devices("GPU")
        if gpus and (limits := tf.config.get_logical_device_configuration(gpus[0])):
            settings["memory_limit_mib"] = str(limits[0].memory_limit)
        if self._targets_at:
            settings["targets"] = self._targets_at.rpartition("device:")[2]
        return settings | self._workers.settings | variables_set("TF_FORCE_GPU_ALLOW_GROWTH", "TF_GPU_ALLOCATOR")

    def compilations(self) -> Compilations:
        """Return how often TensorFlow traced the step; XLA compiles each trace once."""
        if self._eager:
            return Compilations(count=None, reason=reason("eager"))
        return Compilations(count=self._function.experimental_get_tracing_count(), reason=proof.switched_off())

    def what_ran(self, batch: DeviceBatch) -> WhatRan:
        """Return what TensorFlow's profiler sees of one more step. Of a TPU it sees nothing on the host."""
        if self._tpu:
            return WhatRan(reason=reason("no_profiler"))
        return proof.what_ran(self, batch)

    def _on_device(self, step: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
        return (lambda *batch: tpu_strategy().run(step, args=batch)) if self._tpu else step

    def _device_scope(self) -> AbstractContextManager[object]:
        """Return the scope that puts operations on the device; a replica of a strategy has its own."""
        return nullcontext() if self._tpu else tf.device(self._device)

    def _train_step(self, inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
        with self._device_scope():
            with tf.GradientTape() as tape:
                wanted = inputs if self._reconstruction else targets
                loss = self._loss(wanted, self._model(inputs, training=True))
            variables = self._model.trainable_variables
            self._optimizer.apply(self._workers.averaged(tape.gradient(loss, variables)), variables)
            return loss

    def _infer_step(self, inputs: tf.Tensor) -> tf.Tensor:
        with self._device_scope():
            return self._model(inputs, training=False)

    def _tensors(self, batch: HostBatch) -> TensorFlowBatch:
        with tf.device(self._device):
            inputs = tf.constant(batch.inputs.astype(self._input_type, copy=False))
            return inputs, tf.constant(batch.targets.astype(self._whole_type, copy=False))


class Workers:
    """This process among the workers; if it is `ALONE`, nothing is averaged.

    Args:
        ranks: this process, and where the others are.
        kind: the kind of device that all of them compute on.
    """

    def __init__(self, ranks: RankGroup = ALONE, kind: str = "cpu") -> None:
        self.size = ranks.size
        self.settings: dict[str, str] = {}
        self._averages = ranks is not ALONE and all_reduces()
        if ranks is not ALONE:
            cluster = {"worker": list(ranks.addresses)}
            task = {"type": "worker", "index": ranks.number}
            os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
            _set_heartbeat(ranks)
            pack_b = os.environ.get(COLLECTIVE_PACK_B) or "0"
            if not pack_b.isdecimal():
                message = "give the bytes of a pack as a whole number, such as 26214400"
                raise BackendError(f"{COLLECTIVE_PACK_B}={pack_b}: {message}")
            # With "AUTO" TensorFlow averages over gRPC, on GPUs, too.
            options = tf.distribute.experimental.CommunicationOptions(
                bytes_per_pack=int(pack_b), implementation="NCCL" if kind == "gpu" else "AUTO"
            )
            self.settings["collectives"] = options.implementation.value
            self.settings["collectives_pack_b"] = str(options.bytes_per_pack)
            # The strategy makes TensorFlow's context, and the servers start with that. They bind every interface, and
            # TensorFlow has no setting for it (`GrpcServer` in grpc_server_lib.cc).
            ranks.give_port()
            self._strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    def averaged(self, gradients: Tensors) -> Tensors:
        """Return the mean of each gradient over all workers."""
        if not self._averages:
            return gradients
        # The device needs the strategy's own name: under a shorter one gradients are reduced one by one, not in packs.
        with tf.device(self._strategy.extended.worker_devices[0]):
            gradients = [tf.identity(gradient) for gradient in gradients]
        return list(self._strategy.run(self._average, args=(gradients,)))

    @staticmethod
    def _average(gradients: Tensors) -> Any:  # noqa: ANN401 - as many tensors
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)


def _set_heartbeat(ranks: RankGroup) -> None:
    """Configure the coordination service as the strategy would, but with the limit of a rank's heartbeat.

    TensorFlow has no public way to set it: the strategy sets the service up itself, with a heartbeat of seconds, unless
    the private context has one already.
    """
    try:
        from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
        from tensorflow.python.eager import context
    except ImportError:  # a rank that is stopped for long, while others measure, may then be given up
        return
    job = coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=ranks.size)
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        coordinated_jobs=[job],
        heartbeat_timeout_in_ms=1000 * HEARTBEAT_S,
    )
