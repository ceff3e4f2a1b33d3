"""TensorFlow: its devices, threads, ranks and memory, and which program a cell gets."""

from __future__ import annotations

import functools
import os

os.environ["KERAS_BACKEND"] = "tensorflow"  # before Keras is imported, whatever keras.json says

import keras
import tensorflow as tf

from kit.backends.entry import BackendError, keeps_defaults, keeps_precision
from kit.backends.protocol import ALONE, RankGroup, ThreadSetting
from kit.backends.tensorflow.about import ENTRY
from kit.backends.tensorflow.answers import TensorFlowDecoding, TensorFlowPrefill
from kit.backends.tensorflow.program import TensorFlowProgram, Workers, tpu_strategy
from kit.profile.cell import Cell
from kit.profile.fields import reason
from kit.sensors import tpu_chips
from kit.workloads.seeded_arrays import Weights
from kit.workloads.workload import Workload

OWN_TF32 = tf.config.experimental.tensor_float_32_execution_enabled()


class TensorFlowBackend:
    """TensorFlow. See `kit.backends.protocol.Backend`."""

    name = ENTRY.name
    version = tf.__version__
    _ranks = ALONE
    _kind = "cpu"  # the kind of device of the ranks

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set the intra-op and the inter-op pool; reports the intra-op pool. TensorFlow reports no default size."""
        if threads is not None:
            tf.config.threading.set_intra_op_parallelism_threads(threads)
            tf.config.threading.set_inter_op_parallelism_threads(threads)
        known = tf.config.threading.get_intra_op_parallelism_threads() or None
        return ThreadSetting(known, None if known else reason("threads_left_to_framework"))

    def join(self, ranks: RankGroup, kind: str, devices: int) -> None:
        """Remember the ranks. Connecting to them starts the runtime, and `set_threads` must come before that."""
        if devices != 1:
            raise BackendError(f"TensorFlow uses one process per {kind}, so this process cannot use {devices}")
        self._ranks, self._kind = ranks, kind

    @functools.cached_property
    def _workers(self) -> Workers:
        return Workers(self._ranks, self._kind)

    def count(self, kind: str) -> int:
        """Count CPUs, GPUs or cores of TPUs. TensorFlow takes a TPU to count its cores, and other processes cannot."""
        if self._ranks.size > 1:
            _ = self._workers  # the workers connect before anything asks for devices
        if kind != "tpu":
            return len(tf.config.list_physical_devices(kind.upper()))
        return len(tf.config.list_logical_devices("TPU")) if tpu_chips.devices() and tpu_strategy() else 0

    def share_gpu_memory(self, fraction: float) -> None:
        """Limit what TensorFlow's allocator takes of the first GPU, where cells run."""
        from kit.sensors.nvml import memory_b

        if keeps_defaults():
            return
        gpus, whole_b = tf.config.list_physical_devices("GPU"), memory_b(0)
        if gpus and whole_b is not None:
            limit = tf.config.LogicalDeviceConfiguration(memory_limit=int(fraction * whole_b / 2**20))
            tf.config.set_logical_device_configuration(gpus[0], [limit])

    def peak_memory_b(self, device: str) -> int | None:
        """Return the most that TensorFlow's allocator held on the GPU."""
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"]) if device == "gpu" else None

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> TensorFlowProgram:
        """Build the program."""
        if self._ranks.size > 1 and cell.compile_mode == "xla" and cell.device == "cpu" and cell.traits.trains:
            raise BackendError("TensorFlow's XLA has no collectives on a CPU; with --devices choose graph or eager")
        set_precision(cell)
        # A user's keras.json may set other defaults.
        keras.config.set_floatx("float32")
        answers = workload.takes_tokens and not cell.traits.trains
        # Whoever serves a network in bfloat16 keeps its weights so: a token would convert all of them.
        in_bfloat16 = "bfloat16" if answers else "mixed_bfloat16"
        keras.config.set_dtype_policy(in_bfloat16 if cell.precision == "bfloat16" else "float32")
        keras.config.set_image_data_format("channels_last")
        seed += self._ranks.number  # each rank has its own dropout masks
        if not answers:
            return TensorFlowProgram(workload, cell, weights, seed, self._workers)
        program = TensorFlowDecoding if cell.task == "decode" else TensorFlowPrefill
        return program(workload, cell, weights, seed, self._workers)


def set_precision(cell: Cell) -> None:
    """Switch TensorFloat-32 on for "tf32" and off for other precisions, unless the framework decides."""
    allowed = OWN_TF32 if keeps_precision(cell) else cell.precision == "tf32"
    tf.config.experimental.enable_tensor_float_32_execution(allowed)


BACKEND = TensorFlowBackend()
