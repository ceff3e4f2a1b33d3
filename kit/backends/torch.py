"""PyTorch: eager (the default) or torch.compile, in the loop of its Quickstart tutorial.

On a CPU images lie channels last in memory, as PyTorch's performance tuning guide advises for vision models: the same
training step as channels first here, and inference in about two thirds of the time. On a GPU, where float32 kernels
prefer it, they lie channels first. Shapes are channels first either way."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray

from kit.backends.protocol import Compilations, DeviceBatch, HostBatch, ThreadSetting
from kit.backends.support import require_supported
from kit.backends.torch_layers import build_modules
from kit.backends.torch_optimizers import build_optimizer
from kit.profile.cell import Cell
from kit.workloads.weights import Weights
from kit.workloads.workload import Workload

TorchBatch = tuple[torch.Tensor, torch.Tensor]


class TorchProgram:
    """A cell in PyTorch. See `kit.backends.protocol.Program`."""

    def __init__(self, workload: Workload, cell: Cell, weights: Weights) -> None:
        self._device = torch.device("cuda" if cell.device == "gpu" else "cpu")
        self._host_feed = cell.feed == "host"
        compiles = cell.compile_mode == "compile"
        self._train = cell.task == "train"
        self._image = len(workload.input_shape) == 3  # noqa: PLR2004
        self._channels_first = (-1, workload.input_shape[-1], *workload.input_shape[:-1])
        self._model, self._weighted = build_modules(workload)
        for weighted in self._weighted:
            weighted.load(weights)
        self._layout = torch.channels_last if cell.device == "cpu" else torch.contiguous_format
        self._model.to(self._device, memory_format=self._layout).train(self._train)
        if self._train:
            self._optimizer = build_optimizer(workload.optimizer, self._model.parameters())
        forward: Any = self._loss if self._train else self._model
        self._forward = torch.compile(forward) if compiles else forward
        self._compiled_before = _count_compilations() if compiles else None

    def put(self, batch: HostBatch) -> TorchBatch:
        """Copy one batch into the framework's own, aligned memory."""
        inputs, targets = self._tensors(batch)
        resident = inputs.clone(), targets.clone()
        self.synchronize()
        return resident

    def trace(self) -> bool:
        """False: eager traces nothing, torch.compile traces in its first call."""
        return False

    def compile(self) -> bool:
        """False: eager compiles nothing, torch.compile compiles in its first call."""
        return False

    def step(self, batch: DeviceBatch) -> torch.Tensor:
        """One optimizer update or one forward pass."""
        inputs, targets = self._tensors(batch) if self._host_feed else batch
        if not self._train:
            with torch.inference_mode():
                return self._forward(inputs)
        loss: torch.Tensor = self._forward(inputs, targets)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return loss

    def synchronize(self) -> None:
        """Wait for the GPU; on a CPU the step has returned when it is done."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)

    def to_host(self, output: torch.Tensor) -> NDArray[np.float32]:
        """Copy a loss or logits."""
        return np.asarray(output.detach().cpu().numpy(), np.float32)

    def evaluate(self, batches: Sequence[HostBatch]) -> int:
        """Count correct predictions, eagerly, dropout off."""
        self._model.eval()
        correct = torch.zeros((), dtype=torch.int64, device=self._device)
        with torch.inference_mode():
            for batch in batches:
                inputs, targets = self._tensors(batch)
                correct += (self._model(inputs).argmax(1) == targets).sum()
        self._model.train(self._train)
        return int(correct)

    def weights(self) -> Weights:
        """Current weights, back in the workload's layout."""
        return {name: array for weighted in self._weighted for name, array in weighted.dump().items()}

    def compilations(self) -> Compilations:
        """Graphs that TorchDynamo has compiled, and its graph breaks, since this program was built."""
        if self._compiled_before is None:
            return Compilations(None, "eager: nothing is compiled")
        graphs, breaks = _count_compilations()
        return Compilations(graphs - self._compiled_before[0], None, breaks - self._compiled_before[1])

    def _loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(self._model(inputs), targets)

    def _tensors(self, batch: HostBatch) -> TorchBatch:
        """On the device; on a CPU the inputs share the host batch's memory, as a DataLoader's would."""
        inputs = torch.from_numpy(batch.inputs)
        if self._image:
            inputs = inputs.movedim(-1, 1)  # the shape is channels first now, the bytes still lie channels last
            if self._layout is torch.contiguous_format:
                inputs = inputs.reshape(self._channels_first)
        return inputs.to(self._device), torch.from_numpy(batch.targets).to(self._device, torch.int64)


class TorchBackend:
    """PyTorch. See `kit.backends.protocol.Backend`."""

    name = "torch"

    @property
    def version(self) -> str:
        """With the build's suffix, such as +cpu."""
        return str(torch.__version__)

    def set_threads(self, threads: int) -> ThreadSetting:
        """Set the intra-op and the inter-op pool; reports the intra-op pool."""
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(threads)
        return ThreadSetting(torch.get_num_threads(), None)

    def devices(self) -> dict[str, int]:
        """CPU and CUDA devices; TPUs would need torch_xla, which is not used here."""
        return {"cpu": 1, "gpu": torch.cuda.device_count(), "tpu": 0}

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> TorchProgram:
        """Build the program. Raises BackendError where the cell cannot run here."""
        require_supported(cell, self.devices())
        # float32 is float32: no TensorFloat-32 on a GPU.
        torch.set_float32_matmul_precision("highest")
        torch.backends.cudnn.allow_tf32 = False
        torch.manual_seed(seed)
        if cell.compile_mode == "compile":
            _start_with_cold_caches()
        return TorchProgram(workload, cell, weights)


def create_backend() -> TorchBackend:
    """The backend, with PyTorch imported."""
    return TorchBackend()


def _count_compilations() -> tuple[int, int]:
    """Graphs compiled and graph breaks met in this process so far, by TorchDynamo's own counters."""
    counters = torch._dynamo.utils.counters
    return int(counters["stats"]["unique_graphs"]), sum(counters["graph_break"].values())


def _start_with_cold_caches() -> None:
    """Give Inductor an empty cache folder of its own, so that a compile is a compile."""
    folder = tempfile.mkdtemp(prefix="kit-inductor-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
