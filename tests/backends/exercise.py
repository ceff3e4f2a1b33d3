"""Runs one backend through everything the tests look at, and writes it down: python exercise.py BACKEND OUT.npz

The three frameworks do not share a process well, so each runs in its own and pytest imports none.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys

import numpy as np
import small_workloads as small
from msgspec.structs import replace

from kit.backends.catalog import CATALOG
from kit.backends.errors import BackendError
from kit.backends.load import load
from kit.profile.parity import PARITY_BATCH, PARITY_STEPS
from kit.workloads.catalog import WORKLOADS
from kit.workloads.data import dataset
from kit.workloads.data.batches import batch_pool
from kit.workloads.weights import initial_weights

THREADS = 2
SEEDS = (0, 1)


def another(of, **hyperparameters):
    return replace(of, optimizer=replace(of.optimizer, **hyperparameters))


def planted_in_mlp(of):
    """Error -> the workload and the weights that a backend with that error would in truth be running."""
    swapped = initial_weights(of, SEEDS[0])
    swapped["dense_1.kernel"] = np.ascontiguousarray(swapped["dense_1.kernel"].T)
    return {
        "epsilon": (another(of, epsilon=1e-8), None),
        "rho": (another(of, rho=0.91), None),
        "learning_rate": (another(of, learning_rate=0.00101), None),
        "kernel transposed": (of, swapped),
    }


def planted_in_cnn(of):
    sides = initial_weights(of, SEEDS[0])
    sides["conv2d_0.kernel"] = np.ascontiguousarray(sides["conv2d_0.kernel"].transpose(1, 0, 2, 3))
    rows = initial_weights(of, SEEDS[0])
    kernel = rows["dense_2.kernel"]
    rows["dense_2.kernel"] = kernel.reshape(12, 12, 64, 128).transpose(2, 0, 1, 3).reshape(kernel.shape)
    return {
        "epsilon": (another(of, epsilon=1e-8), None),
        "rho": (another(of, rho=0.9), None),
        "learning_rate": (another(of, learning_rate=0.0011), None),
        "kernel sides swapped": (of, sides),
        "flattened channels first": (of, rows),
    }


PLANTED = {"mlp": planted_in_mlp, "cnn": planted_in_cnn}


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

    def run(self, program, batches, staged=True, put=True):
        """What each step gave, on the host."""
        if staged:
            program.trace()
            program.compile()
        outputs = []
        for batch in batches:
            output = program.step(program.put(batch) if put else batch)
            program.synchronize()
            outputs.append(program.to_host(output))
        return np.array(outputs)

    def keep_weights(self, key, program):
        self.arrays |= {f"{key}/{name}": array for name, array in program.weights().items()}

    def parity(self):
        data = dataset.load("auto", splits=("train",))
        for name, of in WORKLOADS.items():
            for seed in SEEDS:
                pool = batch_pool(of, data.train_images, data.train_labels, PARITY_BATCH, PARITY_STEPS, seed)
                program = self.build(of.without_dropout(), seed=seed, batch=PARITY_BATCH)
                self.arrays[f"parity/{name}/{seed}"] = self.run(program, pool)
                if self.name == "torch" and seed == SEEDS[0]:  # one backend that is wrong is enough to be caught
                    for error, (wrong, weights) in PLANTED[name](of).items():
                        program = self.build(wrong.without_dropout(), weights, seed, batch=PARITY_BATCH)
                        self.arrays[f"planted/{name}/{error}"] = self.run(program, pool)

    def optimizers(self):
        for rule in small.RULES:
            of = small.small_mlp(rule)
            program = self.build(of)
            self.arrays[f"rule/{rule}/losses"] = self.run(program, small.random_batches(of))
            self.keep_weights(f"rule/{rule}/weights", program)

    def layers(self):
        of = small.SMALL_CNN
        self.keep_weights("round_trip", self.build(of))
        program = self.build(of, task="infer")
        batches = small.random_batches(of)
        self.arrays["layers/logits"] = self.run(program, batches)
        self.facts["correct"] = program.evaluate(batches)
        self.facts["correct_other_size"] = program.evaluate(small.random_batches(of, count=1, batch=3))

    def feeds_and_staging(self):
        of = small.SMALL_CNN.without_dropout()
        batches = small.random_batches(of)
        self.arrays["feed/device"] = self.run(self.build(of), batches)
        self.arrays["feed/host"] = self.run(self.build(of, feed="host"), batches, put=False)
        self.arrays["feed/unstaged"] = self.run(self.build(of), batches, staged=False)
        for feed in ("device", "host"):
            program = self.build(of, task="infer", feed=feed)
            self.arrays[f"feed/infer/{feed}"] = self.run(program, batches, put=feed == "device")

    def dropout(self):
        of, weights, batch = small.DROPOUT_ONLY, small.DROPOUT_WEIGHTS, small.dropout_batch()
        shape = {"batch": small.DROPOUT_BATCH, "weights": weights}
        program = self.build(of, **shape)
        self.arrays["dropout/train"] = self.run(program, [batch] * 2)
        self.facts["dropout_correct"] = program.evaluate([batch])
        self.arrays["dropout/after_evaluate"] = self.run(program, [batch], staged=False)
        self.arrays["dropout/same_seed"] = self.run(self.build(of, **shape), [batch] * 2)
        self.arrays["dropout/other_seed"] = self.run(self.build(of, seed=1, **shape), [batch] * 2)
        self.arrays["dropout/infer"] = self.run(self.build(of, task="infer", **shape), [batch])[:, :8]

    def compilations(self):
        of = small.small_mlp("sgd")
        batches = small.random_batches(of)
        program = self.build(of)
        self.facts["compilations_built"] = program.compilations()
        self.run(program, batches)
        program.evaluate(small.random_batches(of, batch=3))
        self.keep_weights("compilations", program)
        self.facts["compilations_run"] = program.compilations()

    def other_compile_modes(self):
        of = small.small_mlp("adam")
        for mode in CATALOG[self.name].compile_modes[1:]:
            if self.name == "torch" and shutil.which("g++") is None:
                continue  # Inductor writes C++
            program = self.build(of, compile_mode=mode)
            self.arrays[f"mode/{mode}"] = self.run(program, small.random_batches(of))
            program.evaluate(small.random_batches(of, batch=3))
            self.facts[f"compilations_{mode}"] = program.compilations()

    def refusals(self):
        of = small.small_mlp("sgd")
        asked = {
            "mode": {"compile_mode": "turbo"},
            "precision": {"precision": "float8"},
            "devices": {"devices": 2},
            "device": {"device": "tpu"},
        }
        for what, coordinates in asked.items():
            try:
                self.build(of, **coordinates)
                self.facts[f"refusal_{what}"] = None
            except BackendError as error:
                self.facts[f"refusal_{what}"] = str(error)

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
    exercise.compilations()
    exercise.optimizers()
    exercise.layers()
    exercise.feeds_and_staging()
    exercise.dropout()
    exercise.refusals()
    exercise.state_is_ready()
    exercise.parity()
    exercise.other_compile_modes()
    exercise.arrays["facts"] = np.array(json.dumps(exercise.facts, default=dataclasses.asdict))
    np.savez(out, **exercise.arrays)


if __name__ == "__main__":
    main()
