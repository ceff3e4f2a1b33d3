"""Runs one backend, case by case, as the tests ask: python exercise.py BACKEND CONNECTION

The three frameworks do not share a process well, so each runs in its own and pytest imports none.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
import traceback
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, partial
from multiprocessing.connection import Connection
from unittest import mock

import numpy as np
import small_workloads as small
from msgspec.structs import replace
from planted_errors import PLANTED

from kit.backends.backend_catalog import BackendError, load, load_operations
from kit.backends.program.backend import device_of
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes, Suite
from kit.worker.numbers import counted
from kit.workloads.made_data import synthetic
from kit.workloads.parity_proof import PARITY_BATCH, parity_form
from kit.workloads.seeded_arrays import batch_pool, initial_weights
from kit.workloads.workload_catalog import DATASETS, parameters_of, workload

THREADS = 2
OPERATION_SIZES = {"n": 64, "mib": 1}
EARLY_STEPS = 8  # of the parity proof: every planted error shows by then


@cache
def training_samples(name):
    data = synthetic(DATASETS[name])
    return data, data.load("train")


class Exercise:
    """Each public method is a case; what it returns is what the tests look at."""

    def __init__(self, name):
        self._name = name
        self._backend = load(name)
        self._threads = self._backend.set_threads(THREADS)
        self._module = sys.modules[type(self._backend).__module__]
        self._programs = sys.modules[f"kit.backends.{name}.program"]

    def _build(self, network, weights=None, seed=0, **cell):
        weights = weights if weights is not None else initial_weights(network, seed)
        return self._backend.build(network, small.cell(self._name, network, **cell), weights, seed)

    def _run(self, program, batches, put=True):
        """What each step gave, on the host."""
        program.trace()
        program.compile()
        return self._steps(program, batches, put)

    def _steps(self, program, batches, put=True):
        outputs = []
        for batch in batches:
            output = program.step(program.put(batch) if put else batch)
            program.synchronize()
            if self._name == "jax":
                assert all(leaf.is_ready() for leaf in program._leaves), "the state is not ready when the loss is"
            outputs.append(program.to_host(output))
        return np.array(outputs)

    @contextmanager
    def _as_gpu(self, **environment):
        """A CPU in the place of a GPU: what is built for one runs here."""
        module = self._module
        with ExitStack() as patched:
            patched.enter_context(mock.patch.dict(os.environ, environment))
            if self._name == "jax":
                (cpu,) = module.jax.devices("cpu")
                for call in ("devices", "local_devices"):
                    patched.enter_context(mock.patch.object(module.jax, call, lambda *_, backend=None: [cpu]))
            else:
                patched.enter_context(mock.patch.dict(self._programs.DEVICES, gpu=self._programs.DEVICES["cpu"]))
            if self._name == "torch":
                for module_part, call, stand_in in (
                    (module.torch.cuda, "get_per_process_memory_fraction", lambda: 0.3),
                    (module.torch.Tensor, "pin_memory", lambda tensor: tensor.clone()),
                ):
                    patched.enter_context(mock.patch.object(module_part, call, stand_in))
            yield module

    # The numbers of every backend.

    def parity(self, name, error=None):
        """Losses of a network, with or without an error that is planted."""
        network = parity_form(workload(name, small.PARAMETERS.get(name, {})))
        pool = batch_pool(network, *training_samples(network.data), PARITY_BATCH, seed=0)
        network, weights, patched = PLANTED[name][error](network) if error else (network, None, nullcontext())
        with patched:
            return self._run(self._build(network, weights, batch=PARITY_BATCH), pool[:EARLY_STEPS])

    def rule(self, name):
        """Losses under an update rule, and what had been compiled before and after them and, for SGD, a prediction."""
        network = small.small_mlp(name)
        program = self._build(network)
        built = program.compilations()
        losses = self._run(program, small.random_batches(network))
        if name == "sgd":
            program.predict(small.random_batches(network, batch=3)[0])
        return losses, built, program.compilations()

    def outputs(self, name, precision="float32", feed="device", mode=None):
        """What the forward pass of a small network gives, and the kernels that ran."""
        network, chosen = small.NETWORKS[name], {"precision": precision, "feed": feed, "compile_mode": mode}
        program = self._build(network, small.moved_weights(network), task="infer", **chosen)
        outputs = self._run(program, small.random_batches(network), put=feed == "device")
        return outputs, program.kernels()

    def decoded(self, precision, mode=None):
        """Logits of some tokens more than an answer has, and the seconds of their steps."""
        network = small.SMALL_GPT
        chosen = {"precision": precision, "compile_mode": mode}
        program = self._build(network, small.moved_weights(network), task="decode", **chosen)
        program.trace()
        program.compile()
        answer = program.put(small.random_batches(network)[0])
        outputs, taken_s = [], []
        for _ in range(network.input_shape[0] - network.prompt + 3):
            begin_s = time.perf_counter()
            output = program.step(answer)
            program.synchronize()
            taken_s.append(time.perf_counter() - begin_s)
            outputs.append(program.to_host(output))
        return np.array(outputs), taken_s

    def state_numbers(self, precision):
        """How many numbers the state of a decoding program has, and how many weights the network."""
        network = small.SMALL_GPT
        weights = small.moved_weights(network)
        program = self._build(network, weights, task="decode", precision=precision)
        return counted(program.state(1 << 20)).numbers, sum(array.size for array in weights.values())

    def losses(self, name, precision="float32", feed="device"):
        """What training steps of a small network give, dropout off."""
        network = small.NETWORKS[name].without_dropout()
        program = self._build(network, small.moved_weights(network), precision=precision, feed=feed)
        return self._run(program, small.random_batches(network), put=feed == "device")

    def dropout(self):
        network, batch = small.DROPOUT_ONLY, small.dropout_batch()
        shape = {"batch": small.DROPOUT_BATCH, "weights": small.DROPOUT_WEIGHTS}
        program = self._build(network, **shape)
        train = self._run(program, [batch] * 2)
        predicted = program.predict(batch)[:8]
        train = np.append(train, self._run(program, [batch]))
        return train, predicted, self._run(self._build(network, task="infer", **shape), [batch])[:, :8]

    def operation(self, device, name, precision):
        """An operation, small: its array after three steps, and what the framework says of it."""
        parameters = {parameter: [OPERATION_SIZES[parameter]] for parameter in parameters_of(name)}
        axes = {"workloads": [name], "backends": [self._name], "devices": [device], "precisions": [precision]}
        (cell,) = plan_cells(Suite(name="small", title="", cells=Axes(**axes, parameters=parameters)))
        with self._as_gpu() if device == "gpu" else ExitStack():
            operation = load_operations(self._name)(cell)
            operation.trace()
            operation.compile()
            for _ in range(3):
                output = operation.step(None)
            operation.synchronize()
            compiled = operation.compilations().count or 1
            return operation.to_host(output), device_of(output), compiled, operation.settings()

    # The contract of every backend.

    def facts(self):
        devices = {kind: self._backend.count(kind) for kind in ("cpu", "gpu", "tpu")}
        return self._backend.version, self._threads, devices

    def compiled(self, with_compiler, mode):
        """Two programs of one process and of two batch sizes, in a mode that compiles; None: no compiler is here."""
        network = small.small_mlp("adam")
        patched = ExitStack()
        if self._name == "torch" and with_compiler and shutil.which("g++") is None:  # Inductor writes C++
            return None
        if self._name == "torch" and not with_compiler:
            torch = self._module.torch
            patched.enter_context(mock.patch.object(torch, "compile", partial(torch.compile, backend="aot_eager")))
        with patched:
            train, infer = (
                self._build(network, compile_mode=mode),
                self._build(network, task="infer", batch=5, compile_mode=mode),
            )
            losses = self._run(train, small.random_batches(network))
            self._run(infer, small.random_batches(network, batch=5))
            train.predict(small.random_batches(network, batch=3)[0])
            return losses, train.compilations(), infer.compilations()

    def what_ran(self, mode, switch=""):
        """What ran in a step of a mode, with a switch of the framework set, and what was compiled until then."""
        network = small.small_mlp("adam")
        with self._switched(switch):
            program = self._build(network, compile_mode=mode)
            batches = small.random_batches(network)
            self._run(program, batches[:2])
            return program.what_ran(program.put(batches[0])), program.compilations()

    @contextmanager
    def _switched(self, switch):
        """With what leaves a mode's name as it is, and lets something else run."""
        with ExitStack() as patched:
            if self._name == "torch":
                from torch._dynamo import config as dynamo
                from torch._inductor import config as inductor

                patched.enter_context(mock.patch.dict(os.environ, TORCHDYNAMO_DISABLE=str(int(switch == "variable"))))
                patched.enter_context(dynamo.patch(disable=switch == "config", suppress_errors=switch == "no compiler"))
                if switch == "no compiler":
                    patched.enter_context(inductor.patch({"cpp.cxx": (None, "/none"), "force_disable_caches": True}))
                if switch == "other compiler":
                    patched.enter_context(dynamo.patch(debug_backend_override=">=0:eager"))
            if self._name == "jax":
                jax = self._module.jax
                jax.config.update("jax_disable_jit", bool(switch))
                patched.callback(jax.config.update, "jax_disable_jit", False)
            yield

    def refused_switch(self):
        """What JAX says of a program that it cannot compile."""
        with self._switched("JAX_DISABLE_JIT"):
            try:
                self._build(small.small_mlp("adam"))
            except BackendError as error:
                return str(error)

    def precision(self, switch):
        """The settings of a float32 program on a CPU, with a switch set."""
        with mock.patch.dict(os.environ, dict(switch)):
            return self._build(small.small_mlp("adam")).settings()

    def refusal(self):
        network = small.small_mlp("sgd")
        try:
            self._build(replace(network, layers=(small.NewLayer(), *network.layers)))
        except BackendError as error:
            return str(error)

    def settings(self, name):
        """The settings of a program that is built for a GPU, with a batch on the device."""
        precision, environment = small.GPU_SETTINGS[name]
        network = small.small_mlp("adam")
        with self._as_gpu(**environment):
            program = self._build(network, device="gpu", precision=precision)
            program.put(small.random_batches(network, count=1)[0])
            return program.settings()

    def chosen(self, environment, rule="adam", device="cpu"):
        """Losses of a small network with variables set, its settings, and what shows that they took effect."""
        network = replace(small.SMALL_CNN.without_dropout(), optimizer=small.RULES[rule])
        as_device = self._as_gpu if device == "gpu" else lambda **variables: mock.patch.dict(os.environ, variables)
        with as_device(**dict(environment)):
            program = self._build(network, small.moved_weights(network), device=device)
            before = [*program._leaves] if self._name == "jax" else []
            losses = self._run(program, small.random_batches(network))
            if self._name == "jax":
                return losses, program.settings(), [leaf.is_deleted() for leaf in before]
            torch, (kernel, *_) = self._module.torch, program._network.parameters()
            inputs, _ = program.put(small.random_batches(network)[0])
            are_last = [tensor.is_contiguous(memory_format=torch.channels_last) for tensor in (kernel, inputs)]
            (group,) = program._optimizer.param_groups
            return losses, program.settings(), (group["foreach"], group.get("fused"), *are_last)

    def refused_choice(self, environment, rule="adam"):
        """What a backend says of a variable that it cannot follow."""
        network = replace(small.small_mlp("adam"), optimizer=small.RULES[rule])
        with mock.patch.dict(os.environ, dict(environment)):
            try:
                program = self._build(network)
                program.trace()
            except BackendError as error:
                return str(error)

    def memory_fraction(self, environment):
        """The fraction of a GPU's memory that the framework gets where its worker may take 0.3; None: its default."""
        with mock.patch.dict(os.environ, dict(environment)), ExitStack() as patched:

            def patch(*target, **how):
                return patched.enter_context(mock.patch.object(*target, **how))

            if self._name == "jax":
                from jaxlib.xla_client import generate_pjrt_gpu_plugin_options

                self._backend.share_gpu_memory(0.3)
                return generate_pjrt_gpu_plugin_options().get("memory_fraction")
            if self._name == "torch":
                cuda = self._module.torch.cuda
                patch(cuda, "is_available", new=lambda: True)
                setter = patch(cuda, "set_per_process_memory_fraction")
                self._backend.share_gpu_memory(0.3)
                return setter.call_args and setter.call_args.args[0]
            config = self._module.tf.config
            patched.enter_context(mock.patch("kit.sensors.nvml.memory_b", lambda _: 1000 << 20))
            patch(config, "list_physical_devices", new=lambda _: ["GPU"])
            setter = patch(config, "set_logical_device_configuration")
            self._backend.share_gpu_memory(0.3)
            return setter.call_args and setter.call_args.args[1][0].memory_limit / 1000

    def flops(self, name, task):
        """PyTorch's or XLA's own count of a step of a network."""
        network = workload(name, small.PARAMETERS.get(name, {}))
        program = self._build(network, task=task)
        if self._name == "jax":
            program.trace()
            return program._traced.cost_analysis()["flops"]
        from torch.nn.attention import SDPBackend, sdpa_kernel
        from torch.utils.flop_counter import FlopCounterMode

        # The counter does not know the fused attention of a CPU.
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            program.step(program.put(small.random_batches(network, count=1)[0]))
        return counter.get_total_flops()

    def saved_b(self, name):
        """The bytes that PyTorch keeps for the backward pass, of tensors that are no weights."""
        torch = self._module.torch
        network = workload(name, small.PARAMETERS.get(name, {})).without_dropout()
        program = self._build(network)
        weights, saved = {parameter.data_ptr() for parameter in program._network.parameters()}, {}

        def keep(tensor):
            if tensor.data_ptr() not in weights:
                saved[tensor.data_ptr()] = (tensor, tensor.untyped_storage().nbytes())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            program._loss(*program.put(small.random_batches(network, count=1)[0]))
        return sum(bytes_of for _, bytes_of in saved.values())

    def restored(self, name, rule, mode):
        """Losses before and after a program was put back twice; whether all addresses were new; compilations."""
        network = small.NETWORKS[name].without_dropout() if name in small.NETWORKS else small.small_mlp(rule)
        network = replace(network, optimizer=small.RULES[rule])
        patched = ExitStack()
        if mode == "compile":  # without a C++ compiler
            torch = self._module.torch
            patched.enter_context(mock.patch.object(torch, "compile", partial(torch.compile, backend="aot_eager")))
        with patched:
            program, batches = self._build(network, compile_mode=mode), small.random_batches(network)
            program.keep()
            losses, is_new, compiled = [self._run(program, batches)], [], [program.compilations()]
            for _ in range(2):
                before = self._addresses(program)
                assert program.restore()
                is_new.append([old != new for old, new in zip(before, self._addresses(program), strict=True)])
                losses.append(self._steps(program, batches))
                compiled.append(program.compilations())
        return losses, is_new, compiled

    def _addresses(self, program):
        """Where weights and optimizer state are; not of single numbers, which may lie within an object."""
        if self._name == "jax":
            return [leaf.unsafe_buffer_pointer() for leaf in program._leaves if leaf.size > 1]
        if self._name == "tensorflow":
            arrays = [np.asarray(variable.read_value()._numpy()) for variable in program._variables]
            return [array.ctypes.data for array in arrays if array.size > 1]
        state = [value for values in program._optimizer.state.values() for value in values.values()]
        return [tensor.data_ptr() for tensor in (*program._network.parameters(), *state) if tensor.numel() > 1]

    # TensorFlow alone.

    def eager(self):
        network = small.small_mlp("adam")
        program = self._build(network, compile_mode="eager")
        return self._run(program, small.random_batches(network)), program.kernels(), program.compilations()

    def without_tpu(self):
        """Does it take a TPU that is there, when it is asked for CPUs and GPUs?"""
        with (
            mock.patch.object(self._module.tpu_chips, "devices", lambda: ["accel0"]),
            mock.patch.object(self._module, "tpu_strategy") as strategy,
        ):
            counted = [self._backend.count(kind) for kind in ("cpu", "gpu")]
            before = strategy.call_count
            self._backend.count("tpu")
            return counted, before, strategy.call_count

    def collectives(self, kind, pack_b=""):
        """What the strategy is asked for, and what the profile has of it."""
        from kit.backends.protocol import RankGroup
        from kit.backends.tensorflow import program as programs

        network, two = small.small_mlp("adam"), RankGroup(0, ("127.0.0.1:1", "127.0.0.1:2"))
        with (
            self._as_gpu(TF_CONFIG="", **{programs.COLLECTIVE_PACK_B: pack_b}) as module,
            mock.patch.object(programs, "_set_heartbeat"),
            mock.patch.object(module.tf.distribute, "MultiWorkerMirroredStrategy") as strategy,
        ):
            started = programs.Workers(two, kind)
            cell = small.cell(self._name, network, device=kind)
            settings = module.TensorFlowProgram(network, cell, initial_weights(network, 0), 0, started).settings()
            options = strategy.call_args.kwargs["communication_options"]
            recorded = settings.get("collectives"), settings.get("collectives_pack_b")
            return (options.implementation.value, options.bytes_per_pack), recorded

    def fed(self):
        """The types of a batch on a device, and what a wait for the device runs where there are three."""
        from tensorflow.python.framework import op_callbacks

        network, ran = small.small_mlp("adam"), []
        with self._as_gpu() as module:
            program = self._build(network, device="gpu")
            types = [tensor.dtype.name for tensor in program.put(small.random_batches(network, count=1)[0])]
            (cpu,) = module.tf.config.list_logical_devices("CPU")
            with mock.patch("tensorflow.python.framework.config.list_logical_devices", lambda *_: [cpu] * 3):
                op_callbacks.add_op_callback(callback := lambda op, *_, **__: ran.append(str(op)))
                program.synchronize()
                op_callbacks.remove_op_callback(callback)
        return types, ran

    # PyTorch alone.

    def strides(self, channels):
        """The strides of images on a device, by either feed."""
        images = replace(small.SMALL_CNN, input_shape=(9, 7, channels))
        (batch,) = small.random_batches(images, count=1)
        with self._as_gpu():
            resident = self._build(images, device="gpu").put(batch)[0]
            fed = self._build(images, device="gpu", feed="host")._tensors(batch)[0]
        return resident.stride(), fed.stride()

    def pinned(self):
        """The types of what is pinned, and whether its copies to the device are asynchronous."""
        network, copied = small.small_mlp("adam"), []
        with self._as_gpu() as module:
            to = module.torch.Tensor.to

            def copy(tensor, *args, **options):
                copied.append((tensor.data_ptr(), options.get("non_blocking")))
                return to(tensor, *args, **options)

            program = self._build(network, device="gpu", feed="host")
            held = program.pin(small.random_batches(network, count=1)[0])
            with mock.patch.object(module.torch.Tensor, "to", copy):
                for _ in range(2):
                    program.step(held)
        addresses = {array.ctypes.data for array in held}
        return [str(array.dtype) for array in held], [waits for address, waits in copied if address in addresses]


def main():
    exercise, connection = Exercise(sys.argv[1]), Connection(int(sys.argv[2]))
    while True:
        try:
            case, *arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send((getattr(exercise, case)(*arguments), None))
        except Exception:
            connection.send((None, traceback.format_exc(limit=-8)))


if __name__ == "__main__":
    main()
