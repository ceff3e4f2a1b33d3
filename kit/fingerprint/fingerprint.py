"""The fingerprint of machine and software, by which two profiles are compared: facts, and their hashes.

processor, memory, devices, container ──────────────┐
kit, Python, operating system, packages, variables ─┴─► facts ─► cleaned ─► hashed: the hardware, and everything

This file names the packages and variables that several frameworks read and that could change a number; `kit.backends`
names those of each framework.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from msgspec.structs import replace

from kit.devices import DEVICES
from kit.environment import FRAMEWORK_DEFAULTS, NOT_OF_FRAMEWORKS, REVISION
from kit.fingerprint import private
from kit.fingerprint.private import is_secret, recorded
from kit.fingerprint.this_machine import CpuInfo, container, processor
from kit.profile.facts import FINGERPRINT_B, Accelerator, Identity, Values, device_facts, fact_of
from kit.profile.fields import Reason, reason
from kit.profile.store import sha256_of
from kit.version import __version__

# Names of distributions, not of modules: numerical libraries, CUDA's, and those that the kit itself measures with.
PACKAGES = (
    "numpy", "scipy", "ml-dtypes", "opt-einsum", "mkl", "intel-openmp", "tbb", "onednn",
    "nvidia-cublas-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12", "nvidia-cublas",
    "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-ml-py",
    "cffi", "msgspec", "psutil", "py-cpuinfo",
)  # fmt: skip
# Prefixes of environment variables, one or more for each library: new versions bring new variables.
PREFIXES = (
    "KMP_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "ONEDNN_", "DNNL_",
    "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "NVIDIA_", "GLOO_", "MALLOC_", "TCMALLOC_", "JEMALLOC_",
)  # fmt: skip
NAMES = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "NPROC", "HIP_VISIBLE_DEVICES", FRAMEWORK_DEFAULTS,
    "PYTHONDEVMODE", "PYTHONHASHSEED", "PYTHONMALLOC", "PYTHONOPTIMIZE", "PYTHON_GIL", "PYTHON_JIT",
)  # fmt: skip
# The Dockerfile writes the image's variables to this file. A zero byte ends each of them, as in /proc/PID/environ.
BAKED = "etc/steadykit-environment"
# Launcher -> a variable that it gives all its processes, and those that it sets and that can change speed. PyTorch's
# torchrun (torch/distributed/run.py) sets OMP_NUM_THREADS to 1 for several processes a node, Ray to a task's CPUs.
# Slurm and mpirun set no number of threads; scripts of their users may.
LAUNCHERS = {
    "torchrun": ("TORCHELASTIC_RUN_ID", ("OMP_NUM_THREADS", "TORCH_NCCL_ASYNC_ERROR_HANDLING")),
    "Ray": ("RAY_RAYLET_PID", ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")),
    "Slurm": ("SLURM_JOB_ID", ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")),
}

# This program runs in any interpreter, with or without the kit. It reads metadata and imports no framework.
_VERSIONS = """
import json, sys
from importlib import metadata
found = {name: next(iter(metadata.distributions(name=name)), None) for name in json.loads(sys.argv[1])}
print(json.dumps({name: package.version for name, package in found.items() if package}))
"""
# Reading metadata takes a tenth of a second; a cold network disk may take many.
ASK_TIMEOUT_S = 30.0


def identity(
    pythons: Iterable[str] = (), *, packages: Iterable[str] = (), prefixes: Iterable[str] = (), names_only: bool = False
) -> Identity:
    """Identify this machine, once a run; `software` explains the arguments."""
    reasons: dict[str, Reason] = {}
    return _identity(reasons, lambda: software(reasons, pythons, packages, prefixes, names_only=names_only))


def hardware_sha256() -> str:
    """Return that hash of this machine's identity which its software does not change. Takes a second."""
    return _identity({}, dict).hardware_sha256


def _identity(reasons: dict[str, Reason], installed: Callable[[], Values]) -> Identity:
    cpu_info = CpuInfo()  # it works while the others are asked
    facts = {
        **device_facts(_accelerators(reasons)),
        **container().facts,
        **installed(),
        **processor(reasons, cpu_info.answer()),
        "memory_b": psutil.virtual_memory().total,
        "hostname_sha256": private.hashed(hashlib.sha256(platform.node().encode()).hexdigest()),
    }
    # Before it is hashed: the profile is written with what is hashed.
    facts = {name: private.cleaned(value) if isinstance(value, str) else value for name, value in facts.items()}
    known = {private.cleaned(name): why for name, why in reasons.items()}
    return hashed(Identity(facts=facts, reasons=known))


def identity_of_devices() -> Identity:
    """Identify the accelerators alone, for a run that measures nothing: no process is started."""
    reasons: dict[str, Reason] = {}
    return hashed(Identity(facts=device_facts(_accelerators(reasons)), reasons=reasons))


def _accelerators(reasons: dict[str, Reason]) -> list[Accelerator]:
    """Return the accelerators of every kind; `reasons` gets why a kind cannot be listed."""
    accelerators: list[Accelerator] = []
    for kind, device in DEVICES.items():
        listed = device.listed()
        if isinstance(listed, Reason):
            reasons[kind] = listed
        else:
            accelerators += listed
    return accelerators


def hashed(plain: Identity) -> Identity:
    """Return the identity with both hashes: of the facts that FACTS calls hardware, and of every other field."""
    hardware = {
        name: round(value / FINGERPRINT_B) if name.endswith("memory_b") and isinstance(value, int) else value
        for name, value in plain.facts.items()
        if fact_of(name).is_hardware
    }
    with_hardware = replace(plain, hardware_sha256=sha256_of(hardware), sha256="")
    return replace(with_hardware, sha256=sha256_of(with_hardware))


def software(
    reasons: dict[str, Reason],
    pythons: Iterable[str] = (),
    packages: Iterable[str] = (),
    prefixes: Iterable[str] = (),
    *,
    names_only: bool = False,
) -> Values:
    """Return facts about the software of this process and of `pythons`, the interpreters that run the frameworks.

    If two interpreters have different versions of a distribution, its fact is "1.2 / 1.3".

    Args:
        reasons: gets the reason if an interpreter cannot be asked, or a fact is unknown.
        pythons: paths of interpreters.
        packages: distributions to record beside PACKAGES.
        prefixes: prefixes of environment variables to record beside PREFIXES.
        names_only: of variables, without their values.
    """
    versions: dict[str, set[str]] = {}
    for python in dict.fromkeys([sys.executable, *pythons]):
        command = [python, "-c", _VERSIONS, json.dumps([*PACKAGES, *packages])]
        try:
            listed = subprocess.run(command, capture_output=True, check=True, timeout=ASK_TIMEOUT_S)
        except (OSError, subprocess.SubprocessError) as error:
            reasons[f"software.package {python}"] = reason("interpreter_not_asked", python=python, error=str(error))
            continue
        for name, version in json.loads(listed.stdout).items():
            versions.setdefault(name, set()).add(version)
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.system()
    libc = " ".join(platform.libc_ver()).strip() or None
    if libc is None:
        reasons["libc"] = reason("libc_not_named")
    environment = relevant_environment(os.environ, prefixes)
    setters = set_by(environment, os.environ, container().text("container.engine"), Path("/"))
    return {
        "kit": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "os": system,
        "kernel": platform.release(),
        "libc": libc,
        **{f"software.package.{name}": " / ".join(sorted(numbers)) for name, numbers in sorted(versions.items())},
        **{f"environment.{name}": recorded(name, value, names_only=names_only) for name, value in environment.items()},
        **{f"environment_set_by.{name}": who for name, who in setters.items()},
    }


def relevant_environment(variables: Mapping[str, str], prefixes: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables that could change a number, sorted by name, without credentials."""
    known = (*PREFIXES, *prefixes)
    return {
        name: variables[name]
        for name in sorted(variables)
        if (name in NAMES or name.startswith(known)) and not name.startswith(NOT_OF_FRAMEWORKS) and not is_secret(name)
    }


def set_by(names: Iterable[str], variables: Mapping[str, str], engine: str | None, root: Path) -> dict[str, str]:
    """Return who set each variable: the image, whoever started the container, a launcher of jobs, or the user.

    Args:
        names: the variables, which are all in `variables`.
        variables: environment of this process.
        engine: engine of the container that this process runs in; null: it runs in none.
        root: where /proc and /etc are.
    """
    given: dict[str, list[str]] = {}
    # On a host the environment of the first process says nothing about this process.
    for who, file in (("image", BAKED), ("container", "proc/1/environ")) if engine else ():
        with suppress(OSError):  # the first process may be another user's
            given[who] = (root / file).read_bytes().decode(errors="replace").split("\0")
    setters = {}
    for name in names:
        givers = [who for who, entries in given.items() if f"{name}={variables[name]}" in entries]
        launchers = [who for who, (marker, sets) in LAUNCHERS.items() if marker in variables and name in sets]
        setters[name] = [*givers, *launchers, "user"][0]
    return setters


def kit_revision(tree: Path = Path(__file__).parents[2]) -> str | None:
    """Return the git revision of the kit's source tree, with "-dirty" if a file was changed; None: it is unknown.

    An image holds no repository; KIT_REVISION gives the revision there. `tree` has to be the work tree itself, so that
    a kit in an environment inside another repository does not take that repository's revision.
    """
    if revision := os.environ.get(REVISION):
        return revision
    if not (tree / ".git").exists():
        return None
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        shown = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True, timeout=ASK_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return shown.stdout.strip() or None
