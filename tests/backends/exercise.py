"""Runs one backend through everything the tests look at, and writes it down: python exercise.py BACKEND OUT.npz

The three frameworks do not share a process well, so each runs in its own and pytest imports none. A case that raises
is an answer, too: only the tests that ask for its keys fail.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
import traceback
from contextlib import contextmanager

import msgspec
import numpy as np
import small_workloads as small
from msgspec.structs import replace
from planted_errors import PLANTED

from kit.backends.catalog import CATALOG, BackendError, load
from kit.workloads.catalog import DATASETS, WORKLOADS, workload
from kit.workloads.data.batches import batch_pool
from kit.workloads.data.synthetic import synthetic
from kit.workloads.parity import PARITY_BATCH
from kit.workloads.weights import initial_weights

THREADS = 2


def torch_switch():
    import torch

    return torch.backends.cudnn.allow_tf32 and torch.get_float32_matmul_precision() == "high"


def tensorflow_switch():
    import tensorflow as tf

    return tf.config.experimental.tensor_float_32_execution_enabled()


# JAX sets nothing where the device is a CPU.
ALLOWS_TF32 = {"torch": torch_switch, "tensorflow": tensorflow_switch}


class Exercise:
    def __init__(self, name):
        self.name = name
        self.backend = load(name)
        self.arrays = {}
        self.failures = {}
        self.facts = {"version": self.backend.version, "threads": self.backend.set_threads(THREADS)}
        self.facts["devices"] = self.backend.devices()

    @contextmanager
    def answers(self, *keys):
        """Around a case that answers these keys: what it raises is kept in their place."""
        try:
            yield
        except Exception:
            self.failures |= dict.fromkeys(keys, traceback.format_exc(limit=-8))

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
        @functools.cache
        def samples_of(name):
            data = synthetic(DATASETS[name])
            return data, data.load("train")

        for name in WORKLOADS:
            of = workload(name, {})
            with self.answers(f"parity/{name}", f"planted/{name}"):
                pools = [
                    batch_pool(of, *samples_of(of.data), PARITY_BATCH, seed=seed)[: small.EARLY_STEPS]
                    for seed in small.draws(of)
                ]
                self.arrays[f"parity/{name}"] = np.array(
                    [self.run(self.build(of.without_dropout(), batch=PARITY_BATCH), pool) for pool in pools]
                )
                if self.name == "torch":  # one backend that is wrong is enough to be caught
                    losses = []
                    for wrong, weights, patched in PLANTED[name](of).values():
                        with patched:
                            program = self.build(wrong.without_dropout(), weights, batch=PARITY_BATCH)
                            losses.append(self.run(program, pools[0]))
                    self.arrays[f"planted/{name}"] = np.array(losses)

    def optimizers(self):
        for rule in small.RULES:
            of = small.small_mlp(rule)
            with self.answers(f"rule/{rule}", "compilations"):
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
                with self.answers(f"feed/{task}/{feed}", "kernels/small_cnn", "predicted"):
                    program = self.build(cnn, task=task, feed=feed)
                    self.arrays[f"feed/{task}/{feed}"] = self.run(program, batches, put=feed == "device")
                    if (task, feed) == ("infer", "device"):
                        self.facts["kernels/small_cnn"] = program.kernels()
                        self.arrays["predicted"] = np.array([program.predict(batch) for batch in batches])

    def sequences(self):
        for of in small.SEQUENCES:
            with self.answers(f"sequences/{of.name}", f"kernels/{of.name}"):
                program = self.build(of, small.moved_weights(of), task="infer")
                self.arrays[f"sequences/{of.name}"] = self.run(program, small.random_batches(of))
                self.facts[f"kernels/{of.name}"] = program.kernels()
            if "bfloat16" in CATALOG[self.name].precisions:
                with self.answers(f"bfloat16/{of.name}"):
                    program = self.build(of, small.moved_weights(of), task="infer", precision="bfloat16")
                    self.arrays[f"bfloat16/{of.name}"] = self.run(program, small.random_batches(of))

    def reconstruction(self):
        of = small.SMALL_AUTOENCODER
        with self.answers("reconstruction/train", "reconstruction/infer"):
            self.arrays["reconstruction/train"] = self.run(self.build(of), small.random_batches(of))[:1]
            self.arrays["reconstruction/infer"] = self.run(self.build(of, task="infer"), small.random_batches(of))[0]

    def dropout(self):
        of, batch = small.DROPOUT_ONLY, small.dropout_batch()
        shape = {"batch": small.DROPOUT_BATCH, "weights": small.DROPOUT_WEIGHTS}
        with self.answers("dropout/predicted", "dropout/train", "dropout/infer"):
            program = self.build(of, **shape)
            train = self.run(program, [batch] * 2)
            self.arrays["dropout/predicted"] = program.predict(batch)[:8]
            self.arrays["dropout/train"] = np.append(train, self.run(program, [batch]))
            self.arrays["dropout/infer"] = self.run(self.build(of, task="infer", **shape), [batch])[:, :8]

    def compile_modes(self):
        """Two programs of one process and of two batch sizes, in the mode that compiles, and what each has compiled."""
        mode = CATALOG[self.name].compile_modes[-1]
        self.facts["has_compiler"] = self.name != "torch" or shutil.which("g++") is not None  # Inductor writes C++
        of = small.small_mlp("adam")
        with self.answers("compile_mode"):
            train = self.build(of, compile_mode=mode)
            infer = self.build(of, task="infer", batch=5, compile_mode=mode)
            self.arrays["compile_mode"] = self.run(train, small.random_batches(of))
            self.run(infer, small.random_batches(of, batch=5))
            train.predict(small.random_batches(of, batch=3)[0])
            self.facts["compile_mode"] = train.compilations(), infer.compilations()

    def lower_precision(self):
        for of in small.TRAINED_IN_BFLOAT16:
            for precision in ("bfloat16", "float32"):
                with self.answers(f"{precision}/train/{of.name}"):
                    losses = self.run(self.build(of, precision=precision), small.random_batches(of))
                    self.arrays[f"{precision}/train/{of.name}"] = losses
        of = small.small_mlp("adam")
        if self.name in ALLOWS_TF32:
            switch = ALLOWS_TF32[self.name]
            with self.answers("tf32"):
                self.facts["tf32"] = [self.build(of, precision=each) and switch() for each in ("tf32", "float32")]

    def eager(self):
        """TensorFlow only: its default is a graph."""
        if self.name == "tensorflow":
            of = small.small_mlp("adam")
            with self.answers("eager"):
                program = self.build(of, compile_mode="eager")
                self.arrays["eager"] = self.run(program, small.random_batches(of))
                self.facts["eager"] = program.kernels(), program.compilations()

    def refusal(self):
        of = small.small_mlp("sgd")
        with self.answers("refusal"):
            try:
                self.build(replace(of, layers=(small.NewLayer(), *of.layers)))
            except BackendError as error:
                self.facts["refusal"] = str(error)

    def state_is_ready(self):
        """JAX only: is the new state there once the loss is?"""
        if self.name != "jax":
            return
        of = WORKLOADS["mlp"]
        with self.answers("state_ready"):
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
    exercise.sequences()
    exercise.reconstruction()
    exercise.lower_precision()
    exercise.eager()
    exercise.dropout()
    exercise.refusal()
    exercise.state_is_ready()
    exercise.parity()
    exercise.compile_modes()
    answers = json.dumps([exercise.facts, exercise.failures], default=msgspec.to_builtins)
    np.savez(out, **exercise.arrays, said=np.array(answers))


if __name__ == "__main__":
    main()
