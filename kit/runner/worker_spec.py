"""What a worker is started with, as a run's plan and a round say it: CPUs, threads, ranks, a cache of compilations."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kit.backends.backend_catalog import CATALOG
from kit.backends.compile_caches import set_caches
from kit.backends.entry import THREAD_VARIABLES
from kit.environment import COMPILE_CACHE
from kit.errors import KitError
from kit.files import name_of
from kit.fingerprint.this_machine import container
from kit.profile.cell import Cell, Variant
from kit.profile.program_source import ProgramSource
from kit.profile.unfinished import RunPlan
from kit.suites.groups import WorkerPlan
from kit.worker.messages import Join, Prepare

# Workers share this fraction of a GPU's memory; the rest is for contexts and libraries, which no limit counts.
GPU_SHARE = 0.9


class WorkerSpec(NamedTuple):
    """What a worker is started with."""

    cells: Sequence[Cell]  # that share the process, of one backend and device
    variant: Variant
    prepare: Prepare
    join: Join
    hosts: Sequence[str] = ()  # that its ranks are divided over, the runner's first; none: the runner's alone
    ranks: int = 1
    seed: int = 0
    data: Mapping[str, str] = {}  # data set -> what is used
    sources: Mapping[str, ProgramSource] = {}  # workload -> where its function is, of user programs
    proves: bool = False
    fit_number: int = 0  # which fit this is; each is drawn anew
    compile_cache: Mapping[str, str] = {}  # variables of its own cache of compilations; none: it compiles anew
    reuses_compilation: bool = False  # that cache has what an earlier round compiled

    @property
    def ranks_per_host(self) -> int:
        """Return how many ranks each host has."""
        return self.ranks // max(1, len(self.hosts))

    def host_of(self, rank: int) -> str:
        """Return the name of a rank's host; empty: there is one host."""
        return self.hosts[rank // self.ranks_per_host] if self.hosts else ""


def worker_spec(
    plan: RunPlan,
    worker: WorkerPlan,
    number: int,
    memory_fraction: float,
    *,
    hosts: Sequence[str] = (),
    proved: Collection[str] = (),
) -> WorkerSpec:
    """Return what a worker is started with.

    Args:
        plan: of the run.
        worker: which cells it holds.
        number: of the round.
        memory_fraction: of the device memory that workers may take.
        hosts: that cells of several devices are divided over.
        proved: keys of cells that need not prove themselves any more.
    """
    first, suite = worker.cells[0], plan.suite
    variant = variant_of(plan, first)
    used_hosts = list(hosts[: first.devices]) if first.devices > 1 else []
    host_count = max(1, len(used_hosts))
    ranks = rank_count(first, variant, host_count)
    threads = first.threads or default_threads(plan.cpus, plan.identity.number("container.cpu_limit"))
    sources = {cell.workload: suite.programs[cell.workload] for cell in worker.cells if cell.workload in suite.programs}
    cache = _compile_cache(plan, worker, first.backend, variant)
    prepare = Prepare(
        backend=first.backend,
        device=first.device,
        clock=plan.clock,
        sources=list(sources.values()),
        has_own_threads=bool({*variant.env} & {*THREAD_VARIABLES}),
        compiles_anew=not cache and not set_caches(CATALOG[first.backend], variant.env),
        cpus=plan.cpus,
        parts=ranks // host_count,
        devices=first.devices // host_count,
    )
    join = Join(
        devices=first.devices // ranks if first.devices > 1 else 0,
        threads=max(1, threads * host_count // ranks),
        memory_fraction=GPU_SHARE * memory_fraction,
    )
    return WorkerSpec(
        cells=worker.cells,
        variant=variant,
        prepare=prepare,
        join=join,
        hosts=used_hosts,
        ranks=ranks,
        seed=suite.seed,
        data=suite.data,
        sources=sources,
        proves=any(cell.key not in proved for cell in worker.cells),
        fit_number=number,
        compile_cache=cache,
        reuses_compilation=plan.suite.reuse_compiled and number > 0 and _own_cache(plan, worker).is_dir(),
    )


def usable_cpus() -> list[int]:
    """Return the CPUs that this process may run on: what affinity and cpuset allow."""
    return sorted(os.sched_getaffinity(0))


def default_threads(cpus: Sequence[int], cpu_limit: float | None) -> int:
    """Return a thread for each CPU, but no more than a quota keeps running: one more would be throttled in each period.

    Args:
        cpus: that workers are pinned to.
        cpu_limit: CPUs by cgroup quota; null: none.
    """
    return len(cpus) if cpu_limit is None else max(1, min(len(cpus), int(cpu_limit)))


def threads_here() -> int:
    """Return the default for this process."""
    return default_threads(usable_cpus(), container().number("container.cpu_limit"))


def variant_of(plan: RunPlan, cell: Cell) -> Variant:
    """Return the variant of a cell, as the run starts it."""
    named = (variant for variant in plan.suite.variants if variant.name == cell.variant)
    return next(named, Variant(name=cell.variant))


def rank_count(cell: Cell, variant: Variant, hosts: int) -> int:
    """Return how many processes measure a cell, if it may use so many hosts."""
    return CATALOG[cell.backend].ranks(cell, {**os.environ, **variant.env}, min(cell.devices, hosts))


def compile_cache_folder(plan: RunPlan) -> Path:
    """Return the folder of compilations that later rounds of a run reuse."""
    return Path(tempfile.gettempdir()) / name_of(f"steadykit-{plan.id}-compiled")


def make_compile_cache(plan: RunPlan) -> None:
    """Make the folder of compilations, which workers run.

    Raises:
        KitError: another user's is there in its place.
    """
    folder = compile_cache_folder(plan)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise KitError(f"{folder} is not this user's alone; set TMPDIR to a folder that is")


def _own_cache(plan: RunPlan, worker: WorkerPlan) -> Path:
    return compile_cache_folder(plan) / hashlib.sha256(worker.name.encode()).hexdigest()[:16]


def _compile_cache(plan: RunPlan, worker: WorkerPlan, backend: str, variant: Variant) -> dict[str, str]:
    """Return the variables by which a worker's framework keeps compilations where no other worker finds them.

    What a variant sets by itself stays; to a variable of flags the cache's is added. None where it compiles anew.
    """
    if not plan.suite.reuse_compiled or COMPILE_CACHE in variant.env:
        return {}
    folder = str(_own_cache(plan, worker))
    cache = {COMPILE_CACHE: folder}
    for name, text in CATALOG[backend].compile_cache.items():
        setting = text.replace("FOLDER", folder)
        if name.endswith("_FLAGS"):
            cache[name] = f"{variant.env.get(name, os.environ.get(name, ''))} {setting}".strip()
        elif name not in variant.env:
            cache[name] = setting
    return cache
