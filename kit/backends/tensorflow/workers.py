"""The ranks of a cell as TensorFlow's workers: MultiWorkerMirroredStrategy's collectives average gradients.

Keras 3 does not support that strategy (keras-team/keras issue 20585), so no variable is made in its scope. Each worker
has its own network with the same initial weights, and makes the same update from the averaged gradients.
"""

from __future__ import annotations

import json
import os
from typing import Any

import tensorflow as tf

# TensorFlow has no public way to set the coordination service's heartbeat: the strategy sets the service up itself,
# with a heartbeat of seconds, unless the private context has one already.
from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2
from tensorflow.python.eager import context

from kit.backends.entry import BackendError
from kit.backends.ranks import ALONE, HEARTBEAT_LIMIT_S, RankGroup, all_reduces
from kit.environment import COLLECTIVE_PACK_B

Tensors = list[tf.Tensor]


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
            self.settings = {
                "collectives": options.implementation.value,
                "collectives_pack_b": str(options.bytes_per_pack),
            }
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
    """Configure the coordination service as the strategy would, but with the limit of a rank's heartbeat."""
    job = coordination_config_pb2.CoordinatedJob(name="worker", num_tasks=ranks.size)
    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:worker/replica:0/task:0",
        coordinated_jobs=[job],
        heartbeat_timeout_in_ms=1000 * HEARTBEAT_LIMIT_S,
    )
