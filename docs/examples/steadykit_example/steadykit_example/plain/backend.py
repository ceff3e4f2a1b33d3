"""NumPy as a backend for inference with dense layers. `kit.backends.protocol` describes each call."""

import numpy as np

from kit.backends.entry import BackendError
from kit.backends.protocol import Compilations, Program, ThreadSetting
from kit.profile.fields import reason
from kit.workloads.workload import Dense
from steadykit_example.plain.about import ENTRY

ACTIVATIONS = {"linear": lambda x: x, "relu": lambda x: np.maximum(x, 0)}


class PlainProgram(Program):
    """A network's forward pass. It has no tracing and no compiling, which is what `Program` reports by default."""

    def __init__(self, workload, cell, weights):
        if cell.task != "infer":
            raise BackendError(f"{ENTRY.title} cannot {cell.task}; give --task infer")
        self._layers = []
        for placed in workload.without_dropout().placed_layers():
            layer = placed.layer
            if not isinstance(layer, Dense) or layer.activation not in ACTIVATIONS:
                raise ENTRY.untranslated(layer)
            kernel, bias = weights[f"{placed.name}.kernel"], weights[f"{placed.name}.bias"]
            self._layers.append((kernel, bias, ACTIVATIONS[layer.activation]))

    def put(self, batch):
        return batch

    def step(self, batch):
        x = batch.inputs
        for kernel, bias, activation in self._layers:
            x = activation(x @ kernel + bias)
        return x

    def synchronize(self):
        """NumPy's calls return only when they are done."""

    def to_host(self, output):
        return output

    def evaluate(self, batches):
        return sum(int((self.step(batch).argmax(axis=1) == batch.targets).sum()) for batch in batches)

    def compilations(self):
        return Compilations(count=None, reason=reason("eager"))


class PlainBackend:
    name = ENTRY.name
    version = np.__version__

    def set_threads(self, threads):
        """The worker's environment sets the threads before NumPy is imported. NumPy does not report their number."""
        return ThreadSetting(None, reason("threads_by_environment"))

    def count(self, kind):
        return int(kind == "cpu")

    def build(self, workload, cell, weights, seed):
        return PlainProgram(workload, cell, weights)


BACKEND = PlainBackend()
