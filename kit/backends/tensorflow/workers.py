"""The ranks of a cell as TensorFlow's workers: MultiWorkerMirroredStrategy's collectives average gradients.

Keras 3 does not support that strategy (keras-team/keras issue 20585): its variables are not made in the strategy's
scope here. Each worker has a network of its own, which begins as all others do; what they share is the averaged
gradient, and so each update is the same in all of them.
"""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow as tf
from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
from tensorflow.python.eager import context

from kit.backends.entry import BackendError
from kit.backends.ranks import ALONE, HEARTBEAT_LIMIT_S, RankPlace, all_reduces
from kit.environment import COLLECTIVE_PACK_B

Tensors = list[tf.Tensor]


class Workers:
    """This process among the workers; `ALONE`: nothing is averaged.

    Args:
        ranks: this process, and where the others are.
        kind: of device that all of them compute on.
    """

    def __init__(self, ranks: RankPlace = ALONE, kind: str = "cpu") -> None:
        self.size = ranks.size
        self.settings: dict[str, str] = {}
        self._averages = ranks is not ALONE and all_reduces()
        if ranks is not ALONE:
            cluster = {"worker": list(ranks.addresses)}
            task = {"type": "worker", "index": ranks.number}
            os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
            _set_heartbeat(ranks)
            # Left to itself TensorFlow averages over gRPC, on GPUs, too: it takes NCCL only where it is told to.
            options = tf.distribute.experimental.CommunicationOptions(
                bytes_per_pack=_pack_b(), implementation="NCCL" if kind == "gpu" else "AUTO"
            )
            self.settings = {
                "collectives": options.implementation.value,
                "collectives_pack_b": str(options.bytes_per_pack),
            }
            # Its servers start with the context, which this makes.
            self._strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    def averaged(self, gradients: Tensors) -> Tensors:
        """Return the mean over all workers of each gradient."""
        if not self._averages:
            return gradients
        # By the strategy's own name of the device: by a shorter one they are not packed, but reduced one by one.
        with tf.device(self._strategy.extended.worker_devices[0]):
            gradients = [tf.identity(gradient) for gradient in gradients]
        return list(self._strategy.run(self._average, args=(gradients,)))

    @staticmethod
    def _average(gradients: Tensors) -> Any:  # noqa: ANN401 - what it was given
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)


def _pack_b() -> int:
    given = os.environ.get(COLLECTIVE_PACK_B) or "0"
    if not given.isdecimal():
        raise BackendError(f"{COLLECTIVE_PACK_B}={given}: give the bytes of a pack as a whole number, such as 26214400")
    return int(given)


def _set_heartbeat(ranks: RankPlace) -> None:
    """Configure the coordination service as the strategy would, which leaves one that is there, with our own limit."""
    job = coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=ranks.size)
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        coordinated_jobs=[job],
        heartbeat_timeout_in_ms=1000 * HEARTBEAT_LIMIT_S,
    )
