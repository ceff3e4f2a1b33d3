"""Where a worker runs is the command line in front of it: this machine, a container, or a node of a Slurm allocation.

local        [python -m kit.worker.supervisor …]                                        python -m kit.worker
container    [python -m kit.engine.container OPTIONS] ─ engine ─ python … supervisor …  python -m kit.worker
Slurm node   [srun … python -m kit.worker.supervisor …]                                 python -m kit.worker

Each `python -m` stands for the words of `kit.import_order.module_command`, which import no module of the user's. Which
python that is, whether it has the framework, and which nodes there are is asked here, too.

To add a target, write what gives its `Command`, and the case in `command_of`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from kit.backends.backend_catalog import CATALOG, ENVIRONMENT_PREFIXES
from kit.backends.entry import THREAD_VARIABLES
from kit.devices import DEVICES, worker_environment
from kit.engine.connection import local_engine
from kit.engine.container import Bind, ContainerOptions, ask, for_kind, with_devices
from kit.engine.container_run import data_bind
from kit.engine.image import need_image
from kit.errors import KitError
from kit.fingerprint.fingerprint import relevant_environment
from kit.import_order import module_command
from kit.profile.cell import DEFAULT_VARIANT, Cell, Variant
from kit.runner.worker_spec import WorkerSpec
from kit.version import __version__
from kit.worker.probe import Probe

# A step beside the job's own script; a node that has gone is not waited for.
SRUN = ("srun", "--overlap", "--nodes=1", "--ntasks=1", "--cpu-bind=none", "--mpi=none", "--export=ALL")
SRUN_LIMIT_S = 30
# CUDA counts GPUs as NVML does: by bus id, not fastest first; unless the user has chosen.
WORKER_ENVIRONMENT = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
# Libraries of this host, which an image has not.
HOST_LIBRARIES = ("LD_PRELOAD", "LD_LIBRARY_PATH")
# The probe imports no framework; an interpreter that takes longer than this to start is not usable for measuring.
PROBE_TIMEOUT_S = 60
# The allocator that docs/reference/audit/index.md recommends, and its Debian package.
PACKAGES = {"libtcmalloc_minimal.so.4": "libtcmalloc-minimal4"}
DEFAULT = Variant(name=DEFAULT_VARIANT)
# Slurm sets these in a job's script and in a step.
NODES, NODE = "SLURM_JOB_NODELIST", "SLURMD_NODENAME"


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
    threads, shown = _threads(spec), _shown(spec)
    if variant.image is not None:
        return _container(spec, threads | shown)
    order = _order()
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


def own_variables(spec: WorkerSpec) -> dict[str, str]:
    """Return the variables that Steadykit itself sets for a worker; what a variant sets is its user's."""
    return {**_order(), **_threads(spec), **_shown(spec), **spec.compile_cache}


def _order() -> dict[str, str]:
    return {name: value for name, value in WORKER_ENVIRONMENT.items() if name not in os.environ}


def _threads(spec: WorkerSpec) -> dict[str, str]:
    return {} if spec.prepare.has_own_threads else dict.fromkeys(THREAD_VARIABLES, str(spec.join.threads))


def _shown(spec: WorkerSpec) -> dict[str, str]:
    prepare = spec.prepare
    return worker_environment(prepare.device, prepare.devices, os.environ | spec.variant.env)


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


def interpreter_for(backend: str, variant: Variant = DEFAULT) -> str:
    """Return the variant's interpreter, else the one named in KIT_PYTHON_<BACKEND>, else the running one."""
    return variant.python or os.environ.get(CATALOG[backend].interpreter_variable) or sys.executable


def find_backend(backend: str, variant: Variant = DEFAULT, *, devices: bool = False) -> Probe:
    """Ask the interpreter, in the variant's environment, for the framework; with `devices`, import it and ask it, too.

    Raises:
        KitError: it is missing, lacks the kit or has another version of it, or a library of LD_PRELOAD was
            not loaded.
    """
    python = variant.image or interpreter_for(backend, variant)
    who = f"{python} cannot run the worker for {backend}"
    named = variant.name != DEFAULT_VARIANT
    needs = f"a Python in which steadykit and {CATALOG[backend].distributions[0]} are installed"
    remedy = (
        f"give variant {variant.name} {needs}" if named else f"set {CATALOG[backend].interpreter_variable} to {needs}"
    )
    try:
        probe = msgspec.json.decode(_answer(backend, variant, devices=devices).strip().rpartition(b"\n")[2], type=Probe)
    except OSError as error:
        raise KitError(f"{who}: {error.strerror or error}; {remedy}") from None
    except subprocess.TimeoutExpired:
        raise KitError(f"{who}: no answer within {PROBE_TIMEOUT_S} s; {remedy}") from None
    except subprocess.CalledProcessError as error:
        if error.returncode == -signal.SIGKILL:
            raise KitError(
                f"{who}: it was killed, most likely for lack of memory; free some, or give the container more"
            ) from None
        lines = error.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        last = "it is older than Python 3.11" if lines[0].startswith("Unknown option: -P") else lines[-1]
        raise KitError(f"{who}: {last}; {remedy}") from None
    except msgspec.DecodeError:
        raise KitError(f"{who}: its answer is not from this kit; {remedy}") from None
    if probe.kit != __version__:
        raise KitError(f"{who}: it has kit {probe.kit}, and this is kit {__version__}; install the same in both")
    if libraries := probe.not_preloaded:
        packages = [PACKAGES[name] for library in libraries if (name := os.path.basename(library)) in PACKAGES]  # noqa: PTH119
        known = f" (Debian, Ubuntu: {', '.join(packages)})" if packages else ""
        raise KitError(
            f"variant {variant.name}: LD_PRELOAD names {', '.join(libraries)}, which did not load; "
            f"install the library{known}, or give its full path"
        )
    return probe


def _answer(backend: str, variant: Variant, *, devices: bool) -> bytes:
    """Return what the probe says. OSError, SubprocessError and EngineError pass."""
    arguments = ["--probe", backend, *(["--devices"] if devices else [])]
    if variant.image is not None:
        client = local_engine()
        python = need_image(client, variant.image).python(backend)
        return ask(client, variant.image, [*module_command(python, "kit.worker"), *arguments], variant.env)
    command = [*module_command(interpreter_for(backend, variant), "kit.worker"), *arguments]
    environment = {**os.environ, **variant.env}
    return subprocess.run(command, capture_output=True, timeout=PROBE_TIMEOUT_S, check=True, env=environment).stdout


def allocated_hosts(count: int) -> list[str]:
    """Return so many hosts of the allocation, this one first; none where one host is enough.

    Raises:
        KitError: this is no host of an allocation, or it has fewer.
    """
    if count == 1:
        return []
    nodes, node = os.environ.get(NODES), os.environ.get(NODE)
    if not nodes or not node:
        raise KitError(
            f"--hosts {count}: this is no node of a Slurm allocation; run it in a script for `sbatch --nodes={count}`"
        )
    try:
        done = subprocess.run(["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise KitError(f"scontrol did not list the allocation's hosts: {error}; check that it is on PATH") from None
    names = done.stdout.split()
    if len(names) < count:
        raise KitError(f"--hosts {count}: the allocation has {len(names)} ({nodes}); give fewer, or allocate more")
    return [node, *(name for name in names if name != node)][:count]


def check_hosts(cells: Sequence[Cell], variants: Sequence[Variant], count: int) -> None:
    """Raise KitError where the devices of a cell cannot be divided over so many hosts, or these are not here."""
    if count > 1 and all(cell.devices == 1 for cell in cells):
        raise KitError(f"--hosts {count}: every cell has one device; give several, as --devices {count}")
    if count > 1 and any(variant.image for variant in variants):
        raise KitError(f"--hosts {count}: an image variant runs on only one host; leave out --hosts or the image")
    for devices in {cell.devices for cell in cells}:
        if devices % min(devices, count):
            raise KitError(f"--devices {devices} cannot be divided over {count} hosts; give a multiple of {count}")
    allocated_hosts(count)
