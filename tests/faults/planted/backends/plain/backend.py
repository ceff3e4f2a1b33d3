"""Next to nothing is computed: the mean of each sample, and the last layer's bias; nothing is updated."""

import numpy as np
from kit.backends.plain.about import ENTRY

from kit.backends.protocol import Compilations, Runnable, ThreadSetting


class Program(Runnable):
    def __init__(self, workload, cell, weights):
        last = list(workload.placed_layers())[-1]
        if workload.name != "mlp":
            raise ENTRY.untranslated(last.layer)
        self._bias = weights[f"{last.name}.bias"]
        self._train = cell.task == "train"

    def put(self, batch):
        return batch

    def pin(self, batch):
        return batch

    def trace(self):
        return False

    def compile(self):
        return False

    def step(self, batch):
        logits = self._logits(batch)
        return logits.mean() if self._train else logits

    def _logits(self, batch):
        return batch.inputs.reshape(len(batch.inputs), -1).mean(axis=1, keepdims=True) + self._bias

    def synchronize(self):
        pass

    def to_host(self, output):
        return np.asarray(output, np.float32)

    def predict(self, batch):
        return self._logits(batch)

    def kernels(self):
        return ["mean"]

    def compilations(self):
        return Compilations(count=0)


class Backend:
    name = ENTRY.name
    version = np.__version__

    def set_threads(self, threads):
        return ThreadSetting(reported=threads, reason=None)

    def join(self, ranks, kind, devices):
        assert 0 <= ranks.number < ranks.size

    def count(self, kind):
        return int(kind == "cpu")

    def peak_memory_b(self, device):
        return None

    def build(self, workload, cell, weights, seed):
        return Program(workload.without_dropout(), cell, weights)


BACKEND = Backend()
