"""PyTorch: eager (the default) or torch.compile in three of its modes, in the loop of its Quickstart tutorial.

Shapes of images are channels first. In memory they are channels last on a CPU, as PyTorch's performance tuning guide
advises for vision models: training took as long as channels first, and inference two thirds of the time. On a GPU they
are channels last in bfloat16, as the guide advises for Tensor Cores, and else channels first, which float32 kernels
prefer. `KIT_TORCH_LAYOUT` chooses either.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from types import CodeType, FunctionType, MethodType
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from kit.backends.entry import ONEDNN_PRECISION, BackendError, choice_set, tf32_setting, variables_set
from kit.backends.protocol import ALONE, DeviceBatch, Program, RankGroup, all_reduces, up_to
from kit.backends.torch import proof
from kit.backends.torch.layers import KeysAndValues, TorchDecoderBlock, TorchPositions, build_modules, build_optimizer
from kit.environment import COMPILE_CACHE, TORCH_LAYOUT, TORCH_OPTIMIZER
from kit.profile.cell import Cell
from kit.profile.fields import reason
from kit.profile.schema import Compilations, WhatRan
from kit.workloads.seeded_arrays import HostBatch, Weights
from kit.workloads.workload import Workload

TorchBatch = tuple[torch.Tensor, torch.Tensor]
# Operators that are a fused kernel of a library, or a product that a loop or an attention consists of.
KERNEL_OPS = (
    "mkldnn_rnn_layer", "_cudnn_rnn", "_scaled_dot_product", "mkldnn_convolution", "cudnn_convolution",
    "convolution_backward", "_convolution_pointwise", "_linear_pointwise", "addmm", "mm", "bmm", "baddbmm",
)  # fmt: skip
# What a variant may choose of a program.
CHOSEN = (TORCH_OPTIMIZER, TORCH_LAYOUT)
# The caching allocator reads the first until PyTorch 2.9, and the second since.
MEMORY_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
LAYOUTS = {"channels_last": torch.channels_last, "channels_first": torch.contiguous_format}
ONEDNN_PARTS = ("matmul", "conv", "rnn")
DEVICES = {"cpu": "cpu", "gpu": "cuda", "tpu": "tpu"}
# A cell's compile mode -> that of torch.compile, by its documentation
# (https://docs.pytorch.org/docs/stable/generated/torch.compile.html). The last two capture CUDA graphs.
COMPILE_MODES = {"compile": "default", "reduce-overhead": "reduce-overhead", "max-autotune": "max-autotune"}


class InBfloat16(nn.Module):  # type: ignore[misc]
    """A network with its forward pass under autocast. Its output is float32, as are weights, loss and update."""

    def __init__(self, network: nn.Module, device: str) -> None:
        super().__init__()
        self._network = network
        self._device = device

    def forward(self, *inputs: Any) -> torch.Tensor:  # noqa: ANN401 - what the network takes
        """Return the network's output in float32."""
        with torch.autocast(self._device, torch.bfloat16):
            output: torch.Tensor = self._network(*inputs)
        return output.float()


class WithCache(nn.Module):  # type: ignore[misc]
    """A network of tokens that gives its keys and values, and the logits of the last token alone."""

    def __init__(self, network: nn.Sequential) -> None:
        super().__init__()
        self.network = network

    def forward(
        self, x: torch.Tensor, caches: Sequence[KeysAndValues] = (), at: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, list[KeysAndValues]]:
        """Return (batch, vocabulary) in float32 for (batch, tokens); see `TorchDecoderBlock.with_cache`."""
        *layers, logits = self.network
        kept, made = iter(caches), []
        for layer in layers:
            if isinstance(layer, TorchDecoderBlock):
                x, keys_and_values = layer.with_cache(x, next(kept, None), at)
                made.append(keys_and_values)
            else:
                x = layer(x, at) if isinstance(layer, TorchPositions) else layer(x)
        return logits(x[:, -1]).float(), made


class TorchProgram(Program):
    """A cell in PyTorch. torch.compile traces and compiles in its first call."""

    _code: CodeType | None = None  # the step's, if it is compiled
    _targets_at = ""  # the device of a resident batch's targets
    _kept: list[torch.Tensor] | None = None  # the initial weights, on the host

    def __init__(self, workload: Workload, cell: Cell, weights: Weights, ranks: RankGroup) -> None:
        self._device = torch.device(DEVICES[cell.device])
        self._on_gpu = cell.device == "gpu"
        self._host_feed = cell.feed == "host"
        self._batch_shape = (cell.batch // ranks.size, *workload.input_shape)
        self._tokens = workload.takes_tokens
        self._train = cell.traits.trains
        self._reconstruction = workload.loss == "reconstruction"
        self._image = len(workload.input_shape) == 3  # noqa: PLR2004
        self._channels_first = (-1, workload.input_shape[-1], *workload.input_shape[:-1])
        network: nn.Module = build_modules(workload, weights)
        if self._tokens and not self._train:
            # Whoever serves a network in bfloat16 keeps its weights so: a token would convert all of them.
            network = WithCache(network.bfloat16() if cell.precision == "bfloat16" else network)
        elif cell.precision == "bfloat16":
            network = InBfloat16(network, self._device.type)
        self._network = network
        prefers_last = cell.device == "cpu" or cell.precision == "bfloat16"
        usual = "channels_last" if prefers_last else "channels_first"
        self._layout = LAYOUTS[choice_set(TORCH_LAYOUT) or usual]
        self._network.to(self._device, memory_format=self._layout).train(self._train)
        self._model: Any = self._network
        if ranks is not ALONE and self._train:
            # DDP sends running means of batch norm in the forward pass, whatever is said of gradients.
            self._model = DistributedDataParallel(self._network, broadcast_buffers=all_reduces())
            self._model.require_backward_grad_sync = all_reduces()  # DDP's `no_sync` sets the same attribute
        if self._train:
            self._optimizer = _optimizer(workload, self._network)
        self._forward: Any = self._loss if self._train else self._logits if self._tokens else self._model
        self._has_graphs = self._on_gpu and cell.compile_mode in ("reduce-overhead", "max-autotune")
        if cell.compile_mode in COMPILE_MODES:
            if not os.environ.get(COMPILE_CACHE):
                # Inductor gets an empty cache folder, so that nothing compiled earlier is reused.
                self._cache = tempfile.TemporaryDirectory(prefix="kit-inductor-", ignore_cleanup_errors=True)
                os.environ["TORCHINDUCTOR_CACHE_DIR"] = self._cache.name
            # TorchDynamo keeps what it compiles by code object, eight entries at most, and tries them in turn in each
            # call. Programs of one process would share the entries, so each has a copy of the code.
            function = cast(MethodType, self._loss if self._train else self._logits).__func__
            self._code = function.__code__.replace()
            method = MethodType(FunctionType(self._code, function.__globals__), self)
            # Shapes are fixed. Without this PyTorch compiles a process's second program for any batch size.
            try:
                self._forward = torch.compile(method, dynamic=False, mode=COMPILE_MODES[cell.compile_mode])
            except RuntimeError as error:
                raise BackendError(f"PyTorch {torch.__version__} has no {cell.compile_mode}: {error}") from error
            self._graph_breaks_before = _count_graph_breaks()

    def put(self, batch: HostBatch) -> TorchBatch:
        """Copy one batch into memory that PyTorch aligns."""
        inputs, targets = self._tensors(batch)
        resident = inputs.clone(), targets.clone()
        self.synchronize()
        self._targets_at = str(resident[1].device)
        return resident

    def pin(self, batch: HostBatch) -> HostBatch:
        """Copy a batch into page-locked memory, which a GPU reads by itself, as DataLoader(pin_memory=True) does."""
        if not self._on_gpu:
            return batch
        arrays = batch.inputs, batch.targets.astype(np.int64)
        return HostBatch(*(torch.from_numpy(array).pin_memory().numpy() for array in arrays))

    def keep(self) -> bool:
        """Copy the weights; an optimizer's state is zero at first, and made in the first step."""
        self._kept = [weight.detach().to("cpu", copy=True) for weight in self._weights()]
        return True

    def _weights(self) -> Iterator[torch.Tensor]:
        """Yield what is trained, and the running means of batch norm."""
        return chain(self._network.parameters(), self._network.buffers())

    def restore(self) -> bool:
        """Give each parameter new memory with its initial weight. TorchDynamo's guards do not look at addresses.

        A CUDA graph has them in it, and PyTorch would capture it anew: there parameters keep their memory.
        """
        if self._kept is None:
            return False
        for weight, kept in zip(self._weights(), self._kept, strict=True):
            if self._has_graphs:
                weight.data.copy_(kept)
            else:
                weight.data = torch.empty_like(weight.data).copy_(kept)
        for module in self._network.modules():
            if isinstance(module, nn.RNNBase):
                module.flatten_parameters()  # cuDNN wants the weights of such a layer in one piece
        for values in self._optimizer.state.values():
            for name, value in values.items():
                values[name] = torch.zeros_like(value)
        self.synchronize()
        return True

    def state(self, most: int) -> Iterator[NDArray[Any]]:
        """Return the parameters, and each tensor that the optimizer has of them."""
        kept = [values.values() for values in self._optimizer.state.values()] if self._train else []
        for tensor in up_to(most, chain(self._weights(), *kept)):
            on_host = tensor.detach().cpu()
            # NumPy has no bfloat16; as float32 a number is denormal where it was.
            yield (on_host.float() if on_host.dtype == torch.bfloat16 else on_host).numpy()

    def step(self, batch: DeviceBatch) -> torch.Tensor:
        """Run one optimizer update or one forward pass."""
        inputs, targets = self._tensors(batch) if self._host_feed else batch
        if self._has_graphs:
            torch.compiler.cudagraph_mark_step_begin()  # what the last step returned may be overwritten
        if not self._train:
            with torch.inference_mode():
                return self._forward(inputs)
        loss: torch.Tensor = self._forward(inputs, targets)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss

    def synchronize(self) -> None:
        """Wait for the accelerator; on a CPU the step has returned when it is done."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        elif self._device.type == "tpu":
            torch.accelerator.synchronize()

    def to_host(self, output: torch.Tensor) -> NDArray[np.float32]:
        """Copy a loss or logits."""
        return np.asarray(output.detach().cpu().numpy(), np.float32)

    def predict(self, batch: HostBatch) -> NDArray[np.float32]:
        """Return the output, eagerly."""
        self._network.eval()
        with torch.inference_mode():
            output = self._network(self._tensors(batch)[0])
        self._network.train(self._train)
        return self.to_host(output)

    def kernels(self) -> list[str]:
        """Name the operators of one more step that decide its speed, as PyTorch's own profiler sees them."""
        inputs = np.zeros(self._batch_shape, np.int32 if self._tokens else np.float32)
        batch = HostBatch(inputs, np.zeros(self._batch_shape if self._tokens else self._batch_shape[0], np.int32))
        given = batch if self._host_feed else self.put(batch)
        with torch.autograd.profiler.profile() as profiled:
            self.step(given)
            self.synchronize()
        names = {event.key for event in profiled.key_averages()}
        return sorted(name for name in names if name.partition("::")[2].startswith(KERNEL_OPS))

    def device_event(self) -> torch.cuda.Event | None:
        """Record a CUDA event."""
        if self._device.type != "cuda":
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def settings(self) -> dict[str, str]:
        """Return switches of TensorFloat-32, cuDNN's search for kernels, the limit of memory, the targets' device."""
        precision, cudnn = torch.get_float32_matmul_precision(), torch.backends.cudnn
        if self._device.type == "cpu" and not self._on_gpu:
            onednn = torch.backends.mkldnn
            parts = {name: getattr(getattr(onednn, name, None), "fp32_precision", None) for name in ONEDNN_PARTS}
            switches = {f"mkldnn.{name}.fp32_precision": str(value) for name, value in parts.items() if value}
            return {"float32_matmul_precision": precision} | switches | variables_set(*CHOSEN, *ONEDNN_PRECISION)
        targets = {"targets": self._targets_at} if self._targets_at else {}
        if not self._on_gpu:
            return {"float32_matmul_precision": precision} | targets | variables_set(*CHOSEN)
        settings = {
            "float32_matmul_precision": tf32_setting(precision),
            "cudnn.allow_tf32": tf32_setting(cudnn.allow_tf32),
            "cudnn.benchmark": str(cudnn.benchmark),
            "memory_fraction": f"{torch.cuda.get_per_process_memory_fraction():.3f}",
        }
        return settings | targets | variables_set(*CHOSEN, *MEMORY_VARIABLES)

    def compilations(self) -> Compilations:
        """Count TorchDynamo's compilations of the step, and graph breaks in this process since it was built."""
        if self._code is None:
            return Compilations(count=None, reason=reason("eager"))
        # PyTorch has no public call for either count.
        compiled = torch._dynamo.eval_frame._debug_get_cache_entry_list(self._code)
        before, now = self._graph_breaks_before, _count_graph_breaks()
        breaks = None if before is None or now is None else now - before
        return Compilations(count=len(compiled), graph_breaks=breaks, reason=proof.switched_off())

    def what_ran(self, batch: DeviceBatch) -> WhatRan:
        """Return what PyTorch's profiler sees of one more step."""
        return proof.what_ran(self, batch)

    def _loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        outputs = self._model(inputs)
        if self._tokens:
            outputs, targets = outputs.flatten(0, 1), targets.flatten()
        return F.mse_loss(outputs, inputs) if self._reconstruction else F.cross_entropy(outputs, targets)

    def _logits(self, inputs: torch.Tensor) -> torch.Tensor:
        return self._model(inputs)

    def _tensors(self, batch: HostBatch) -> TorchBatch:
        """Return the batch on the device; on a CPU the inputs share the batch's memory, as a DataLoader's would."""
        # A copy from memory that is not pinned waits in any case, until that memory may be written again.
        inputs = torch.from_numpy(batch.inputs).to(self._device, non_blocking=self._on_gpu)
        if self._image:
            inputs = inputs.movedim(-1, 1)  # the shape is channels first now, the bytes are still channels last
            if self._layout is torch.contiguous_format:
                # cuDNN takes the layout from the strides. With one channel no byte moves; the reshape renews strides.
                inputs = inputs.contiguous().reshape(self._channels_first)
        return inputs, torch.from_numpy(batch.targets).to(self._device, torch.int64, non_blocking=self._on_gpu)


def _optimizer(workload: Workload, network: nn.Module) -> torch.optim.Optimizer:
    """Return the network's optimizer in the form that a variable chooses, by an argument of that name.

    Left to itself PyTorch takes foreach on a GPU and a loop over parameters on a CPU
    (https://docs.pytorch.org/docs/stable/optim.html).

    Raises:
        BackendError: this PyTorch has no such form of it, or not on this device.
    """
    form = choice_set(TORCH_OPTIMIZER)
    try:
        return build_optimizer(workload.optimizer, network.parameters(), **({form: True} if form else {}))
    except (TypeError, RuntimeError) as error:
        what = f"PyTorch {torch.__version__} has no {form} {type(workload.optimizer).__name__} here ({error})"
        raise BackendError(f"{what}; leave {TORCH_OPTIMIZER} out") from error


def _count_graph_breaks() -> int | None:
    """Return the graph breaks of this process so far; None: this PyTorch counts them elsewhere.

    This imports TorchDynamo, which eager mode does not need.
    """
    try:
        return int(sum(torch._dynamo.utils.counters["graph_break"].values()))
    except (AttributeError, TypeError):
        return None
