"""Runs one backend through everything the tests look at, and writes it down: python exercise.py BACKEND OUT.npz

The three frameworks do not share a process well, so each runs in its own and pytest imports none. A case that raises
is an answer, too: only the tests that ask for its keys fail.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import traceback
from contextlib import ExitStack, contextmanager
from unittest import mock

import msgspec
import numpy as np
import small_workloads as small
from msgspec.structs import replace
from planted_errors import PLANTED

from kit.backends.catalog import CATALOG, BackendError, load, load_operations
from kit.backends.program.results import device_of
from kit.workloads.catalog import DATASETS, WORKLOADS, workload
from kit.workloads.data.batches import batch_pool
from kit.workloads.data.synthetic import synthetic
from kit.workloads.operations import OPERATIONS, operation_cells
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


# What a user has set before a member is options its share of a GPU's memory, 0.3.
MEMORY_CASES = (
    {},
    {"XLA_CLIENT_MEM_FRACTION": "0.5", "PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:0.5"},
    {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.4", "PYTORCH_ALLOC_CONF": "per_process_memory_fraction:0.4"},
    {"KIT_FRAMEWORK_DEFAULTS": "1"},
)


def jax_fraction(backend, environment):
    """The fraction that jaxlib itself then gives its GPU client; None: its default."""
    from jaxlib.xla_client import generate_pjrt_gpu_plugin_options

    with mock.patch.dict(os.environ, environment):
        backend.share_gpu_memory(0.3)
        return generate_pjrt_gpu_plugin_options().get("memory_fraction")


def torch_fraction(backend, environment):
    """The fraction that PyTorch is options; None: nothing."""
    import torch

    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(torch.cuda, "is_available", lambda: True),
        mock.patch.object(torch.cuda, "set_per_process_memory_fraction") as setter,
    ):
        backend.share_gpu_memory(0.3)
        return setter.call_args and setter.call_args.args[0]


def tensorflow_fraction(backend, environment):
    """The fraction of a GPU of 1000 MiB that TensorFlow is options; None: nothing."""
    import tensorflow as tf

    with (
        mock.patch.dict(os.environ, environment),
        mock.patch("kit.sensors.cuda.memory_b", lambda _: 1000 << 20),
        mock.patch.object(tf.config, "list_physical_devices", lambda _: ["GPU"]),
        mock.patch.object(tf.config, "set_logical_device_configuration") as setter,
    ):
        backend.share_gpu_memory(0.3)
        return setter.call_args and setter.call_args.args[1][0].memory_limit / 1000


FRACTION_TAKEN = {"jax": jax_fraction, "torch": torch_fraction, "tensorflow": tensorflow_fraction}


def torch_flops(program, batch):
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        program.step(program.put(batch))
    return counter.get_total_flops()


def jax_flops(program):
    program.trace()
    return program._traced.cost_analysis()["flops"]


class Exercise:
    def __init__(self, name):
        self.name = name
        self.backend = load(name)
        self.arrays = {}
        self.failures = {}
        self.facts = {"version": self.backend.version, "threads": self.backend.set_threads(THREADS)}
        self.facts["devices"] = {kind: self.backend.count(kind) for kind in ("cpu", "gpu", "tpu")}

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

    def devices(self):
        """TensorFlow only: does it take a TPU that is there, when it is asked for CPUs and GPUs?"""
        if self.name == "tensorflow":
            module = sys.modules[type(self.backend).__module__]
            with (
                self.answers("without_tpu"),
                mock.patch.object(module.tpu, "devices", lambda: ["accel0"]),
                mock.patch.object(module, "tpu_strategy") as strategy,
            ):
                counted = [self.backend.count(kind) for kind in ("cpu", "gpu")]
                before = strategy.call_count
                self.facts["without_tpu"] = counted, before, [self.backend.count("tpu"), strategy.call_count]

    @contextmanager
    def as_gpu(self, **environment):
        """A CPU in the place of a GPU: what is built for one runs here."""
        module = sys.modules[type(self.backend).__module__]
        with ExitStack() as patched:
            patched.enter_context(mock.patch.dict(os.environ, environment))
            if self.name == "jax":
                (cpu,) = module.jax.devices("cpu")
                for call in ("devices", "local_devices"):
                    patched.enter_context(mock.patch.object(module.jax, call, lambda *_, backend=None: [cpu]))
            else:
                patched.enter_context(mock.patch.dict(module.DEVICES, gpu=module.DEVICES["cpu"]))
            if self.name == "torch":
                share = mock.patch.object(module.torch.cuda, "get_per_process_memory_fraction", lambda: 0.3)
                patched.enter_context(share)
            yield module

    def collectives(self):
        """TensorFlow only: what its strategy is options, and what the profile has of it, on GPUs and on CPUs."""
        if self.name != "tensorflow":
            return
        from kit.backends.ranks import RankPlace
        from kit.backends.tensorflow import workers

        of, two = small.small_mlp("adam"), RankPlace(0, ("127.0.0.1:1", "127.0.0.1:2"))
        for key, kind, environment in (
            ("collectives/gpu", "gpu", {}),
            ("collectives/cpu", "cpu", {}),
            ("collectives/packs", "gpu", {workers.COLLECTIVE_PACK_B: "26214400"}),
        ):
            with (
                self.answers(key),
                self.as_gpu(TF_CONFIG="", **environment) as module,
                mock.patch.object(workers, "_set_heartbeat"),
                mock.patch.object(module.tf.distribute, "MultiWorkerMirroredStrategy") as strategy,
            ):
                started = workers.Workers(two, kind)
                cell = small.cell(self.name, of, device=kind)
                program = module.TensorFlowProgram(of, cell, initial_weights(of, 0), 0, started)
                options, settings = strategy.call_args.kwargs["communication_options"], program.settings()
                recorded = settings.get("collectives"), settings.get("collectives_pack_b")
                self.facts[key] = [options.implementation.value, options.bytes_per_pack], recorded

    def accelerator_form(self):
        with self.as_gpu():
            for rule in small.RULES:
                of = small.small_mlp(rule)
                with self.answers(f"rule as on a GPU/{rule}"):
                    self.arrays[f"rule as on a GPU/{rule}"] = self.run(
                        self.build(of, device="gpu", feed="host"), small.random_batches(of), put=False
                    )
        of = small.small_mlp("adam")
        for name, precision, environment in small.GPU_SETTINGS:
            with self.answers(f"settings/{name}"), self.as_gpu(**environment):
                self.facts[f"settings/{name}"] = self.build(of, device="gpu", precision=precision).settings()
        with self.answers("targets"), self.as_gpu():
            program = self.build(of, device="gpu")
            program.put(small.random_batches(of, count=1)[0])
            self.facts["targets"] = program.settings().get("targets")
        with self.answers("memory"):
            self.facts["memory"] = [FRACTION_TAKEN[self.name](self.backend, each) for each in MEMORY_CASES]

    def operations(self):
        """PyTorch only: how many operations an update of a shallow and of a deep network takes."""
        if self.name != "torch":
            return
        from torch.utils._python_dispatch import TorchDispatchMode

        class Counted(TorchDispatchMode):
            def __torch_dispatch__(self, func, _types, args=(), kwargs=None):
                counts[-1] += 1
                return func(*args, **(kwargs or {}))

        with self.as_gpu():
            for rule in small.RULES:
                with self.answers(f"operations/{rule}"):
                    counts = self.facts[f"operations/{rule}"] = []
                    for of in small.networks_of(small.RULES[rule], (3, 15)):
                        program, (batch,) = self.build(of, device="gpu"), small.random_batches(of, count=1)
                        program.step(program.put(batch))  # some keep no state before their first update
                        program._loss(*program.put(batch)).backward()
                        counts.append(0)
                        with Counted():
                            program._optimizer.step()

    def ceilings(self):
        """Every operation, small: its array after three steps, and what the framework says of it."""
        given = {"n": [64], "mib": [1]}
        modes = {self.name: CATALOG[self.name].compile_modes[0]}
        for device in ("cpu", "gpu"):
            cells = operation_cells(
                OPERATIONS, [self.name], [device], ["float32", "bfloat16"], [None], modes, ["default"], given
            )
            for cell in cells:
                key = f"ceilings/{device}/{cell.workload}/{cell.precision}"
                with self.answers(key), ExitStack() as patched:
                    if device == "gpu":
                        module = patched.enter_context(self.as_gpu())
                        if self.name == "torch":
                            patched.enter_context(mock.patch.object(module.torch.Tensor, "pin_memory", lambda of: of))
                    operation = load_operations(self.name)(cell)
                    operation.trace()
                    operation.compile()
                    for _ in range(3):
                        output = operation.step(None)
                    operation.synchronize()
                    self.arrays[key] = operation.to_host(output)
                    self.facts[key] = {
                        "device": device_of(output),
                        "recompiled": (operation.compilations().count or 1) - 1,
                        "settings": operation.settings(),
                    }

    def flops(self):
        """PyTorch's and XLA's own counters of a step of each network."""
        for name in WORKLOADS:
            for task in ("infer", "train") if self.name == "torch" else ("infer",) if self.name == "jax" else ():
                of = workload(name, {})
                with self.answers(f"flops/{name}/{task}"):
                    program, (batch,) = self.build(of, task=task), small.random_batches(of, count=1)
                    self.facts[f"flops/{name}/{task}"] = (
                        torch_flops(program, batch) if self.name == "torch" else jax_flops(program)
                    )

    def feeds_of_a_gpu(self):
        of = small.small_mlp("adam")
        (batch,) = small.random_batches(of, count=1)
        if self.name == "tensorflow":
            with self.answers("fed", "waits"), self.as_gpu() as module:
                program = self.build(of, device="gpu")
                self.facts["fed"] = [tensor.dtype.name for tensor in program.put(batch)]
                (cpu,) = module.tf.config.list_logical_devices("CPU")
                ran = []
                with mock.patch("tensorflow.python.framework.config.list_logical_devices", lambda *_: [cpu] * 3):
                    module.op_callbacks.add_op_callback(callback := lambda op, *_, **__: ran.append(str(op)))
                    program.synchronize()
                    module.op_callbacks.remove_op_callback(callback)
                self.facts["waits"] = ran
        if self.name == "torch":
            for channels in (1, 3):
                images = replace(small.SMALL_CNN, input_shape=(9, 7, channels))
                (batch_of_images,) = small.random_batches(images, count=1)
                key = f"strides of images/{channels}"
                with self.answers(key), self.as_gpu():
                    resident = self.build(images, device="gpu").put(batch_of_images)[0]
                    fed = self.build(images, device="gpu", feed="host")._tensors(batch_of_images)[0]
                    self.facts[key] = resident.stride(), fed.stride()
            with self.answers("pinned"), self.as_gpu() as module:
                program, pinned, copied = self.build(of, device="gpu", feed="host"), [], []
                to = module.torch.Tensor.to
                with (
                    mock.patch.object(module.torch.Tensor, "pin_memory", lambda it: pinned.append(it) or it.clone()),
                    mock.patch.object(
                        module.torch.Tensor,
                        "to",
                        lambda it, *a, **k: copied.append((it.data_ptr(), k)) or to(it, *a, **k),
                    ),
                ):
                    held = program.pin(batch)
                    for _ in range(2):
                        program.step(held)
                addresses = {array.ctypes.data for array in held}
                asynchronous = [k.get("non_blocking") for address, k in copied if address in addresses]
                self.facts["pinned"] = [str(tensor.dtype) for tensor in pinned], asynchronous

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
    exercise.devices()
    exercise.optimizers()
    exercise.layers_and_feeds()
    exercise.sequences()
    exercise.reconstruction()
    exercise.lower_precision()
    exercise.eager()
    exercise.accelerator_form()
    exercise.collectives()
    exercise.operations()
    exercise.ceilings()
    exercise.flops()
    exercise.feeds_of_a_gpu()
    exercise.dropout()
    exercise.refusal()
    exercise.state_is_ready()
    exercise.parity()
    exercise.compile_modes()
    answers = json.dumps([exercise.facts, exercise.failures], default=msgspec.to_builtins)
    np.savez(out, **exercise.arrays, said=np.array(answers))


if __name__ == "__main__":
    main()
