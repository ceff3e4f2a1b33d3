"""Where a worker runs is the command line in front of it: this machine, a container, or a node of a Slurm allocation.

local        [python -m kit.worker.supervisor …]                                        python -m kit.worker
container    [python -m kit.engine.container OPTIONS] ─ engine ─ python … supervisor …  python -m kit.worker
Slurm node   [srun … python -m kit.worker.supervisor …]                                 python -m kit.worker

Each `python -m` stands for the words of `kit.import_order.module_command`, which import no module of the user's.

To add a target, write what gives its `Command`, and the case in `command_of`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from kit.backends.backend_catalog import ENVIRONMENT_PREFIXES
from kit.backends.entry import THREAD_VARIABLES
from kit.devices import DEVICES, worker_environment
from kit.engine.connection import local_engine
from kit.engine.container import Bind, ContainerOptions, for_kind, with_devices
from kit.engine.container_run import data_bind
from kit.engine.image import need_image
from kit.fingerprint.fingerprint import relevant_environment
from kit.import_order import module_command
from kit.runner.interpreters import interpreter_for
from kit.runner.worker_spec import WorkerSpec

# A step beside the job's own script; a node that has gone is not waited for.
SRUN = ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none", "--export=ALL")
SRUN_LIMIT_S = 30
# CUDA counts GPUs as NVML does: by bus id, not fastest first; unless the user has chosen.
WORKER_ENVIRONMENT = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
# Libraries of this host, which an image has not.
HOST_LIBRARIES = ("LD_PRELOAD", "LD_LIBRARY_PATH")


class Command(NamedTuple):
    """What starts a worker's supervisor."""

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str = ""  # of the worker's temporary files, where they are on this machine
    network: Sequence[int] = ()  # descriptors of the network that it enters


def command_of(spec: WorkerSpec, rank: int, network: Sequence[int] = ()) -> Command:
    """Return what starts a rank where it is to run.

    Args:
        spec: of the worker.
        rank: which of its ranks.
        network: descriptors of the network that ranks of this machine are to be in; none: that of this process.

    Raises:
        EngineError: it runs in a container, and no engine answers on this machine.
    """
    prepare, variant = spec.prepare, spec.variant
    threads = {} if prepare.has_own_threads else dict.fromkeys(THREAD_VARIABLES, str(spec.join.threads))
    shown = worker_environment(prepare.device, prepare.devices, os.environ | variant.env)
    if variant.image is not None:
        return _container(spec, threads | shown)
    order = {name: value for name, value in WORKER_ENVIRONMENT.items() if name not in os.environ}
    name = f"steadykit-{uuid.uuid4().hex[:12]}"
    python = interpreter_for(prepare.backend, variant)
    cpus = ",".join(map(str, prepare.cpus))
    if (host := spec.host_of(rank)) == spec.host_of(0):
        folder = str(Path(tempfile.gettempdir()) / name)
        variables = {**order, **threads, **shown, **variant.env, **spec.compile_cache}
        inside = ["--network", ",".join(map(str, network))] if network else []
        words = _supervised(python, variables, "--folder", folder, "--cpus", cpus, *inside)
        return Command(words, os.environ, folder, network)
    # Which devices a worker sees is left to it: on another host they have other names.
    hidden = DEVICES[prepare.device].shown_by(prepare.devices, os.environ)
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    words = _supervised(python, order | threads | variant.env, "--folder", name)
    return Command([*SRUN, f"--immediate={SRUN_LIMIT_S}", f"--nodelist={host}", *words], environment)


def _supervised(python: str, variables: Mapping[str, str], *options: str) -> list[str]:
    """Return the words of a supervisor and its worker, which has these variables."""
    named = (f"--env={name}={value}" for name, value in variables.items())
    supervisor, worker = (module_command(python, f"kit.worker{part}") for part in (".supervisor", ""))
    return [*supervisor, *options, *named, *worker]


def _container(spec: WorkerSpec, variables: Mapping[str, str]) -> Command:
    client, prepare, digest = local_engine(), spec.prepare, spec.variant.image_digest
    assert digest is not None
    python, *words = _supervised(need_image(client, digest).python(prepare.backend), {})
    folders = {str(Path(source.path).parent) for source in prepare.sources}
    data, data_variables = data_bind()
    # The container has the variables that decide a number, as a process on this machine has them.
    here = relevant_environment(os.environ, ENVIRONMENT_PREFIXES)
    here = {name: value for name, value in here.items() if name not in HOST_LIBRARIES}
    options = ContainerOptions(
        image=digest,
        user=f"{os.getuid()}:{os.getgid()}",
        entrypoint=(python, *words[: words.index(python)]),
        command=words[words.index(python) :],
        binds=(*data, *(Bind(folder, folder) for folder in sorted(folders))),
        environment={**WORKER_ENVIRONMENT, **here, **variables, **data_variables, **spec.variant.env},
        cpuset=",".join(map(str, prepare.cpus)),
    )
    options = with_devices(client, prepare.device, for_kind(client, options))
    return Command(
        [*module_command(sys.executable, "kit.engine.container"), msgspec.json.encode(options).decode()], os.environ
    )
