"""The evidence that a program leaves once its blocks are over: what it loaded, what it used, and what it computes.

    code      modules, distributions and native libraries: two variants, or two programs, differ in what was measured
    threads   CPU time of each, from the program's first block on, and its CPUs: how many threads compute, and where
    waits     a wait with nothing to wait for; steps by the device's own event timers beside the host's clock
    ran       what a step runs, by the framework's own profiler: it was compiled or not, as the cell's mode says
    losses    of the first steps of SGD: two cells whose losses agree ran the same arithmetic

Modules are read from `sys.modules`, after the blocks. Steadykit itself is left out.

    module ─┬─ below a folder of libraries ─┬─ of a distribution that pip built from a folder or a repository ─► file
            │                               └─ of another: name and version say what it is ─► environment
            └─ elsewhere ─► file            path relative to its repository, SHA-256 of its content
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import site
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kit.backends.protocol import Backend, DeviceBatch, Program, Runnable
from kit.clock import now_ns
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.facts import cpus_listed
from kit.profile.fields import Reason, reason
from kit.profile.schema import (
    Compilations,
    DeviceEvents,
    ImportedCode,
    ImportedFile,
    LaunchPart,
    Parity,
    ThreadsOnCpus,
    WhatRan,
)  # fmt: skip
from kit.sensors.linux import TICK_NS
from kit.sensors.sources import FAILURES
from kit.worker.inputs import Inputs
from kit.workloads.parity_proof import PARITY_STEPS, parity_form
from kit.workloads.seeded_arrays import HostBatch, initial_weights, pool_sha256, weights_sha256
from kit.workloads.workload import Workload

# Read and hashed in about 10 ms by a processor without instructions for SHA-256. People's own packages have fewer; a
# framework on PYTHONPATH has thousands, and is told apart by those that are read.
FILES_MAX = 192
BYTES_MAX = 2 << 20
KIT = str(Path(__file__).parents[1])
# Of a distribution: pip writes where it came from, unless that is an index (PEP 610).
DIST_INFO, ORIGIN, RECORD = ".dist-info", "direct_url.json", "RECORD"
EDITABLE = "__editable__"
TASKS = Path("/proc/self/task")
ALLOWED = "Cpus_allowed_list:"  # proc(5), in a thread's status
# A thread counts if it has this fraction of the busiest thread's time: one that only waits and hands over has less.
USED_SHARE_LEAST = 0.05
# The busiest thread has at least this: with fewer ticks of the kernel, chance decides who has the share.
BUSIEST_LEAST_NS = 20 * TICK_NS
# A framework's message is cut.
MESSAGE_LENGTH = 200
# Each empty wait takes microseconds; the median leaves out what a stall adds to some.
EMPTY_WAITS = 20
# The group counts on which both clocks agree best: a stall of the host adds to its side alone.
EVENT_GROUPS = 3


def imported_code() -> ImportedCode:
    """Return what this process has imported until now."""
    libraries = tuple(f"{folder}{os.sep}" for folder in _library_folders())
    versions, built_here = _installed()
    paths = {
        path: built_here.get(path) or _relative(path)
        for path in dict.fromkeys(_module_files())
        if not path.startswith(f"{KIT}{os.sep}")
        and (path in built_here or not path.startswith(libraries))
        # What was compiled in this launch lies there, and differs in each.
        and not path.startswith(f"{tempfile.gettempdir()}{os.sep}steadykit-")
        # An installer's own, which leads to what was installed in place.
        if not os.path.basename(path).startswith(EDITABLE)  # noqa: PTH119 - as text
    }
    files, left_b = list[ImportedFile](), BYTES_MAX
    # Of a file that is not read: that the same one was loaded is told by where it lies and when it was changed.
    unread = list[str]()
    for path, name in sorted(paths.items(), key=lambda item: (item[1], item[0])):
        try:
            status = os.stat(path)  # noqa: PTH116 - as text: it is called for each file
            if len(files) < FILES_MAX and status.st_size <= left_b:
                files.append(ImportedFile(path=name, sha256=hashlib.sha256(Path(path).read_bytes()).hexdigest()))
                left_b -= status.st_size
            else:
                unread.append(f"{os.path.realpath(path)} {status.st_size} {status.st_mtime_ns}")
        except OSError:
            unread.append(path)
    return ImportedCode(
        files=files,
        left_out=len(unread),
        left_out_sha256=hashlib.sha256("\0".join(unread).encode(errors="surrogateescape")).hexdigest(),
        environment_sha256=_environment_sha256(versions, libraries, paths),
    )


def _module_files() -> Iterator[str]:
    """Yield the file of each module. A module that loads on the first access to it is not loaded here."""
    for module in list(sys.modules.values()):
        try:
            path = object.__getattribute__(module, "__dict__").get("__file__")
        except AttributeError:
            continue
        if isinstance(path, str):
            yield path


@cache
def _library_folders() -> list[str]:
    """Return the folders of the standard library and of installed packages, also those of a base environment."""
    named = [*map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")), *site.getsitepackages()]
    named += [site.getusersitepackages(), str(Path(os.__file__).parent)]
    named += [path for path in sys.path if os.path.basename(path) in {"site-packages", "dist-packages"}]  # noqa: PTH119
    return list(dict.fromkeys([*named, *map(os.path.realpath, named)]))


@cache
def _installed() -> tuple[list[str], dict[str, str]]:
    """Return name, version and origin of distributions, and the files of those that pip built here, by their path.

    A version does not say what these hold. Of an archive its hash does, which pip has written.
    """
    versions, built_here = list[str](), dict[str, str]()
    for folder in dict.fromkeys(map(os.path.realpath, _library_folders())):
        with suppress(OSError):
            for entry in os.scandir(folder):
                if not entry.name.endswith((DIST_INFO, ".egg-info")):
                    continue
                known_from = os.path.join(entry.path, ORIGIN)  # noqa: PTH118 - as text: there may be hundreds
                try:
                    origin = json.loads(Path(known_from).read_bytes()) if os.path.exists(known_from) else {}  # noqa: PTH110
                except (OSError, ValueError):
                    origin = {}
                if "dir_info" in origin or "vcs_info" in origin:
                    for line in Path(entry.path, RECORD).read_text("utf-8", errors="replace").splitlines():
                        name = line.split(",", 1)[0]
                        built_here[os.path.join(folder, name)] = name  # noqa: PTH118 - as text: there may be thousands
                else:
                    versions.append(f"{entry.name} {json.dumps(origin.get('archive_info'), sort_keys=True)}")
    return sorted(versions), built_here


def _relative(path: str) -> str:
    """Return a path from its repository on, else from the folder that it was imported from."""
    folder = _repository(os.path.dirname(path))  # noqa: PTH120 - as text, which `_repository` remembers
    if folder is None:
        folder = max(
            (known for known in sys.path if known and path.startswith(f"{known}{os.sep}")), key=len, default=""
        )
    return os.path.relpath(path, folder) if folder else Path(path).name


@cache
def _repository(folder: str) -> str | None:
    if os.path.exists(os.path.join(folder, ".git")):  # noqa: PTH110, PTH118 - as text; a worktree's is a file
        return folder
    parent = os.path.dirname(folder)  # noqa: PTH120
    return None if parent == folder else _repository(parent)


def _environment_sha256(versions: list[str], libraries: tuple[str, ...], modules: Iterable[str]) -> str:
    """Return a hash of the interpreter, the installed distributions and the native libraries that are loaded.

    Two builds of one version differ in the sizes of their libraries. A library from elsewhere is named with its path.
    """
    known, left_out = {*modules}, (f"{KIT}{os.sep}", tempfile.gettempdir())
    native = set[str]()
    with suppress(OSError):
        # psutil's memory_maps reads smaps, for which the kernel walks all pages: 40 to 60 ms instead of 0.3 ms.
        for path in {
            line.partition("/")[2] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line
        }:
            full = f"/{path}"
            if full in known or full.startswith(left_out):  # hashed, the kit's, or compiled in this launch
                continue
            with suppress(OSError):
                name = full.rpartition("/")[2] if full.startswith(libraries) else full
                native.add(f"{name} {os.stat(full).st_size}")  # noqa: PTH116 - as text
    # A kit that lies outside the environment is a checkout, and two checkouts are two kits.
    checkout = "" if KIT.startswith(libraries) else KIT
    facts = [sys.version, os.path.realpath(sys.base_prefix), checkout, *versions, *sorted(native)]
    return hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()


class Computing(NamedTuple):
    """Threads that have computed."""

    threads: int
    placement: list[ThreadsOnCpus] | None  # None: it is not known


class ThreadUse:
    """CPU times of threads since an instant. One read takes up to a millisecond, so none stands beside each block."""

    def __init__(self, tasks: Path = TASKS) -> None:
        self._tasks = tasks
        self._before = _times_ns(tasks)

    def used(self) -> Computing | Reason:
        """Return which threads have computed since, or why that is not known."""
        after = _times_ns(self._tasks)
        used_ns = {thread: time_ns - self._before.get(thread, 0) for thread, time_ns in after.items()}
        busiest_ns = max(used_ns.values(), default=0)
        if not after:
            return reason("not_shown", source=str(self._tasks))
        if busiest_ns < BUSIEST_LEAST_NS:
            return reason("threads_hardly_ran", busiest_ns=busiest_ns, needed_ns=BUSIEST_LEAST_NS)
        computing = [thread for thread, time_ns in used_ns.items() if time_ns >= USED_SHARE_LEAST * busiest_ns]
        return Computing(len(computing), _placement(self._tasks, computing))


def _placement(tasks: Path, threads: Iterable[str]) -> list[ThreadsOnCpus] | None:
    """Return how many threads may run on which CPUs; None where that is not known of one of them."""
    counts = Counter[tuple[int, ...]]()
    try:
        for thread in threads:
            lines = (tasks / thread / "status").read_text().splitlines()
            listed = next(line for line in lines if line.startswith(ALLOWED))
            counts[tuple(cpus_listed(listed.removeprefix(ALLOWED).strip()))] += 1
    except (*FAILURES, StopIteration):  # one may have ended since
        return None
    return [ThreadsOnCpus(threads=count, cpus=list(cpus)) for cpus, count in sorted(counts.items())]


def _times_ns(tasks: Path) -> dict[str, int]:
    """Return the CPU time of each thread; without those that end while they are listed."""
    times_ns = {}
    try:
        folders = list(tasks.iterdir())
    except OSError:
        return {}
    for folder in folders:
        try:
            # proc(5): the fields behind the name, which may hold anything; utime and stime in ticks.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            times_ns[folder.name] = (int(fields[11]) + int(fields[12])) * TICK_NS
        except FAILURES:
            continue
    return times_ns


def empty_wait_ns(program: Runnable) -> int:
    """Return the median time of a wait with nothing to wait for."""
    waits_ns = []
    program.synchronize()
    for _ in range(EMPTY_WAITS):
        begin_ns = now_ns()
        program.synchronize()
        waits_ns.append(now_ns() - begin_ns)
    return round(float(np.median(waits_ns)))


def timed_on_device(program: Runnable, batches: Iterator[DeviceBatch], steps: int) -> DeviceEvents | None:
    """Return the step by both clocks, of groups of `steps` with one wait; None: the framework has no events.

    A pair of events around each step would leave launch and return of its wait to the host's clock alone.
    """
    if program.device_event() is None:
        return None
    program.synchronize()
    groups = [_timed_group(program, batches, steps) for _ in range(EVENT_GROUPS)]
    return min(groups, key=lambda group: abs(group.host_ns - group.device_ns))


def _timed_group(program: Runnable, batches: Iterator[DeviceBatch], steps: int) -> DeviceEvents:
    begin_ns, before = now_ns(), program.device_event()
    for batch in islice(batches, steps):
        program.step(batch)
    after = program.device_event()
    program.synchronize()
    host_ns = now_ns() - begin_ns
    assert before is not None
    assert after is not None
    return DeviceEvents(steps=steps, host_ns=host_ns / steps, device_ns=1e6 * before.elapsed_time(after) / steps)


def compilations(program: Runnable) -> Compilations:
    """Return what was compiled for a program; no framework promises these counts, so a failure is a reason."""
    try:
        return program.compilations()
    except Exception as error:
        return Compilations(count=None, reason=reason("compilations_not_counted", error=_message(error)))


def what_ran(program: Runnable, batches: Iterator[DeviceBatch]) -> WhatRan:
    """Return what one more step runs; no framework promises what its profiler shows, so a failure is a reason."""
    try:
        return program.what_ran(next(batches))
    except StopIteration:
        return WhatRan(reason=reason("fit_is_over"))
    except (Exception, SystemExit) as error:
        return WhatRan(reason=reason("profiler_failed", error=_message(error)))


def name_kernels(program: Program, part: LaunchPart) -> LaunchPart:
    """Put the names of a program's kernels into `part`; no framework promises them, so a failure is a reason."""
    try:
        part.kernels = program.kernels()
    except Exception as error:
        part.kernels_unnamed = reason("kernels_not_named", error=_message(error))
    return part


def _message(error: BaseException) -> str:
    """Return an exception in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:MESSAGE_LENGTH]}"


def record_parity(backend: Backend, inputs: Inputs, cell: Cell, seed: int) -> LaunchPart:
    """Run `PARITY_STEPS` steps of `cell`, which is small, on a fresh program; return their losses and what ran.

    Losses are of this rank's part of each batch, or of the whole of it.

    Raises:
        KitError: a loss is not finite.
    """
    workload, pool = inputs.workload, inputs.pool
    weights = initial_weights(workload, seed)
    if not cell.traits.trains:
        # A forward pass would not show what a scale of zero multiplies.
        weights |= {name: np.ones_like(scale) for name, scale in weights.items() if name.endswith("_scale")}
    program = backend.build(parity_form(workload), cell, weights, seed)
    program.trace()
    program.compile()
    whole = [pool[index % len(pool)] for index in range(PARITY_STEPS)]
    batches = [HostBatch(batch.inputs[: cell.batch], batch.targets[: cell.batch]) for batch in whole]
    losses: list[float] = []
    # Decoding goes on from one step to the next.
    answer = program.put(batches[0]) if cell.task == "decode" else None
    for batch in map(inputs.part, batches):
        fed = answer if answer is not None else program.put(batch) if cell.feed == "device" else batch
        output = program.step(fed)
        program.synchronize()
        values = program.to_host(output)
        losses.append(float(values) if values.ndim == 0 else _loss_of(workload, values, batch))
        if not math.isfinite(losses[-1]):
            raise KitError(f"parity check: the loss is {losses[-1]} at step {len(losses) - 1}; check the learning rate")
    parity = Parity(losses=losses, weights_sha256=weights_sha256(weights), batches_sha256=pool_sha256(batches))
    return name_kernels(program, LaunchPart(parity=parity))


def _loss_of(workload: Workload, outputs: NDArray[np.float32], batch: HostBatch) -> float:
    """Return the workload's loss of what a forward pass gave, in float64. Outputs (batch, …)."""
    if workload.loss == "reconstruction":
        return float(np.square(outputs.astype(np.float64) - batch.inputs).mean())
    logits = outputs.astype(np.float64)
    # Of tokens, the logits are those of one.
    targets = batch.targets if batch.targets.ndim == 1 else batch.targets[:, -1]
    target_logits = logits[np.arange(len(logits)), targets]
    return float((np.logaddexp.reduce(logits, axis=1) - target_logits).mean())
