"""PyTorch: its devices, threads, ranks and memory, and which program a cell gets."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import torch

from kit.backends.entry import BackendError, keeps_defaults, keeps_precision
from kit.backends.protocol import ALONE, RankGroup, ThreadSetting
from kit.backends.torch.about import ENTRY
from kit.backends.torch.answers import TorchDecoding, TorchPrefill
from kit.backends.torch.program import MEMORY_VARIABLES, TorchProgram
from kit.profile.cell import Cell
from kit.workloads.seeded_arrays import Weights
from kit.workloads.workload import Workload

OWN_MATMUL_PRECISION = torch.get_float32_matmul_precision()
OWN_CUDNN = {name: getattr(torch.backends.cudnn, name) for name in ("benchmark", "allow_tf32")}
# A collective that waits longer, when ranks join or in a step, has lost a rank.
JOIN_LIMIT_S = 600.0


class TorchBackend:
    """PyTorch. See `kit.backends.protocol.Backend`."""

    name = ENTRY.name
    _ranks = ALONE
    version = str(torch.__version__)  # with the build's suffix, such as +cpu

    def set_threads(self, threads: int | None) -> ThreadSetting:
        """Set the intra-op and the inter-op pool; reports the intra-op pool."""
        if threads is not None:
            torch.set_num_threads(threads)
            torch.set_num_interop_threads(threads)
        return ThreadSetting(torch.get_num_threads(), None)

    def join(self, ranks: RankGroup, kind: str, devices: int) -> None:
        """Connect over gloo or NCCL: by a file on one host, and over several by a store at rank 0's own address."""
        if devices != 1:
            raise BackendError(f"PyTorch uses one process per {kind}, so this process cannot use {devices}")
        self._ranks = ranks
        # The runner stops ranks while other workers run, and NCCL's monitor would end them after eight minutes.
        os.environ.setdefault("TORCH_NCCL_ENABLE_MONITORING", "0")
        limit = datetime.timedelta(seconds=JOIN_LIMIT_S)
        torch.distributed.init_process_group(
            "nccl" if kind == "gpu" else "gloo",
            timeout=limit,
            store=_store(ranks, limit),
            rank=ranks.number,
            world_size=ranks.size,
        )

    def count(self, kind: str) -> int:
        """Count CPU, CUDA or TPU devices; PyTorch's import brings torch-tpu if it is installed."""
        counts = {"cpu": lambda: 1, "gpu": torch.cuda.device_count, "tpu": _tpus}
        return int(counts[kind]()) if kind in counts else 0

    def share_gpu_memory(self, fraction: float) -> None:
        """Limit what the caching allocator takes of the GPU, unless the user has set a limit."""
        bounded = any("per_process_memory_fraction" in os.environ.get(name, "") for name in MEMORY_VARIABLES)
        if torch.cuda.is_available() and not bounded and not keeps_defaults():
            torch.cuda.set_per_process_memory_fraction(fraction)

    def peak_memory_b(self, device: str) -> int | None:
        """Return the most that the caching allocator's tensors took of the GPU."""
        return torch.cuda.max_memory_allocated() if device == "gpu" else None

    def build(self, workload: Workload, cell: Cell, weights: Weights, seed: int) -> TorchProgram:
        """Build the program."""
        # Shapes are fixed, so cuDNN finds its fastest kernels once, as XLA and TensorFlow do by themselves.
        torch.backends.cudnn.benchmark = OWN_CUDNN["benchmark"] if keeps_defaults() else True
        set_precision(cell)
        torch.manual_seed(seed + self._ranks.number)  # each rank has its own dropout masks
        answers = TorchDecoding if cell.task == "decode" else TorchPrefill
        program = answers if workload.takes_tokens and not cell.traits.trains else TorchProgram
        return program(workload, cell, weights, self._ranks)


def set_precision(cell: Cell) -> None:
    """Switch TensorFloat-32 on for "tf32" and off for other precisions, unless the framework decides."""
    tf32, is_kept = cell.precision == "tf32", keeps_precision(cell)
    torch.set_float32_matmul_precision(OWN_MATMUL_PRECISION if is_kept else "high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = OWN_CUDNN["allow_tf32"] if is_kept else tf32


def _store(ranks: RankGroup, limit: datetime.timedelta) -> torch.distributed.Store:
    """Return where the ranks find each other. A TCPStore left to itself binds every interface."""
    if ranks.folder:
        return torch.distributed.FileStore(str(Path(ranks.folder, "torch-ranks")), ranks.size)
    host, port = ranks.addresses[0].rsplit(":", 1)
    # It listens on the port that is held for it.
    held = ranks.held.detach() if ranks.number == 0 and ranks.held is not None else None
    return torch.distributed.TCPStore(
        host, int(port), ranks.size, is_master=ranks.number == 0, timeout=limit, master_listen_fd=held
    )


def _tpus() -> int:
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    return torch.accelerator.device_count() if accelerator is not None and accelerator.type == "tpu" else 0


BACKEND = TorchBackend()
