"""Runs one backend through everything the tests look at, and writes it down: python exercise.py BACKEND OUT.npz

The three frameworks do not share a process well, so each runs in its own and pytest imports none.
"""

from __future__ import annotations

import json
import shutil
import sys

import msgspec
import numpy as np
import small_workloads as small
from msgspec.structs import replace

from kit.backends.catalog import CATALOG, BackendError, load
from kit.workloads.catalog import DATASETS, WORKLOADS
from kit.workloads.data.batches import batch_pool
from kit.workloads.data.synthetic import synthetic
from kit.workloads.layers import Flatten
from kit.workloads.parity import PARITY_BATCH, PARITY_STEPS
from kit.workloads.weights import initial_weights

THREADS = 2


def another(of, **hyperparameters):
    return replace(of, optimizer=replace(of.optimizer, **hyperparameters))


def planted_in_mlp(of):
    """Error -> the workload and the weights that a backend with that error would in truth be running."""
    swapped = initial_weights(of, 0)
    swapped["dense_1.kernel"] = np.ascontiguousarray(swapped["dense_1.kernel"].T)
    return {
        "epsilon": (another(of, epsilon=1e-8), None),
        "learning_rate": (another(of, learning_rate=0.00101), None),
        "kernel transposed": (of, swapped),
    }


def planted_in_cnn(of):
    rows = initial_weights(of, 0)
    flatten = next(placed for placed in of.placed_layers() if isinstance(placed.layer, Flatten))
    kernel = rows["dense_2.kernel"]
    image = kernel.reshape(*flatten.input_shape, -1)
    rows["dense_2.kernel"] = image.transpose(2, 0, 1, 3).reshape(kernel.shape)
    return {
        "learning_rate": (another(of, learning_rate=0.0011), None),
        "flattened channels first": (of, rows),
    }


PLANTED = {"mlp": planted_in_mlp, "cnn": planted_in_cnn, "cnn_small": planted_in_cnn}


class Exercise:
    def __init__(self, name):
        self.name = name
        self.backend = load(name)
        self.arrays = {}
        self.facts = {"version": self.backend.version, "threads": self.backend.set_threads(THREADS)}
        self.facts["devices"] = self.backend.devices()

    def build(self, of, weights=None, seed=0, **cell):
        weights = weights if weights is not None else initial_weights(of, seed)
        return self.backend.build(of, small.cell(self.name, of, **cell), weights, seed)

    def run(self, program, batches, put=True):
        """What each step gave, on the host."""
        program.trace()
        program.compile()
        outputs = []
        for batch in batches:
            output = program.step(program.put(batch) if put else batch)
            program.synchronize()
            outputs.append(program.to_host(output))
        return np.array(outputs)

    def parity(self):
        data = DATASETS["mnist"]
        if data.missing():
            data = synthetic(data)
        samples = data.load("train")
        for name, of in WORKLOADS.items():
            pool = batch_pool(of, data, samples, PARITY_BATCH, seed=0)[:PARITY_STEPS]
            self.arrays[f"parity/{name}"] = self.run(self.build(of.without_dropout(), batch=PARITY_BATCH), pool)
            if self.name == "torch":  # one backend that is wrong is enough to be caught
                for error, (wrong, weights) in PLANTED[name](of).items():
                    program = self.build(wrong.without_dropout(), weights, batch=PARITY_BATCH)
                    self.arrays[f"planted/{name}/{error}"] = self.run(program, pool)

    def optimizers(self):
        for rule in small.RULES:
            of = small.small_mlp(rule)
            program = self.build(of)
            built = program.compilations()
            self.arrays[f"rule/{rule}"] = self.run(program, small.random_batches(of))
            program.predict(small.random_batches(of, batch=3)[0])
            self.facts["compilations"] = built, program.compilations()

    def layers_and_feeds(self):
        of = small.SMALL_CNN
        batches = small.random_batches(of)
        for task, cnn in (("infer", of), ("train", of.without_dropout())):
            for feed in ("device", "host"):
                program = self.build(cnn, task=task, feed=feed)
                self.arrays[f"feed/{task}/{feed}"] = self.run(program, batches, put=feed == "device")
            if task == "infer":
                self.arrays["predicted"] = np.array([program.predict(batch) for batch in batches])

    def dropout(self):
        of, batch = small.DROPOUT_ONLY, small.dropout_batch()
        shape = {"batch": small.DROPOUT_BATCH, "weights": small.DROPOUT_WEIGHTS}
        program = self.build(of, **shape)
        train = self.run(program, [batch] * 2)
        self.arrays["dropout/predicted"] = program.predict(batch)[:8]
        self.arrays["dropout/train"] = np.append(train, self.run(program, [batch]))
        self.arrays["dropout/infer"] = self.run(self.build(of, task="infer", **shape), [batch])[:, :8]

    def compile_modes(self):
        """Two programs of one process and of two batch sizes, in the mode that compiles, and what each has compiled."""
        mode = CATALOG[self.name].compile_modes[-1]
        if self.name == "torch" and shutil.which("g++") is None:  # Inductor writes C++
            return
        of = small.small_mlp("adam")
        train = self.build(of, compile_mode=mode)
        infer = self.build(of, task="infer", batch=5, compile_mode=mode)
        self.arrays["compile_mode"] = self.run(train, small.random_batches(of))
        self.run(infer, small.random_batches(of, batch=5))
        train.predict(small.random_batches(of, batch=3)[0])
        self.facts["compile_mode"] = train.compilations(), infer.compilations()

    def refusal(self):
        of = small.small_mlp("sgd")
        try:
            self.build(replace(of, layers=(small.NewLayer(), *of.layers)))
        except BackendError as error:
            self.facts["refusal"] = str(error)

    def state_is_ready(self):
        """JAX only: is the new state there once the loss is?"""
        if self.name != "jax":
            return
        of = WORKLOADS["mlp"]
        program = self.build(of, batch=128)
        program.trace()
        program.compile()
        ready = []
        for batch in small.random_batches(of, count=20, batch=128):
            program.step(program.put(batch))
            program.synchronize()
            ready.append(all(leaf.is_ready() for leaf in program._leaves))
        self.facts["state_ready"] = ready


def main():
    name, out = sys.argv[1:]
    exercise = Exercise(name)
    exercise.optimizers()
    exercise.layers_and_feeds()
    exercise.dropout()
    exercise.refusal()
    exercise.state_is_ready()
    exercise.parity()
    exercise.compile_modes()
    exercise.arrays["facts"] = np.array(json.dumps(exercise.facts, default=msgspec.to_builtins))
    np.savez(out, **exercise.arrays)


if __name__ == "__main__":
    main()
