"""The software below a workload: kit, Python, operating system, and the packages that could change a number."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata

from kit.fingerprint.environment import relevant_environment
from kit.profile.identity import Software
from kit.version import __version__

# Distributions, not modules: frameworks, their compilers and the numerical libraries they call.
DISTRIBUTIONS = (
    "tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-keras", "keras",
    "torch", "torch-xla", "torchvision", "triton", "pytorch-triton",
    "jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt", "libtpu",
    "flax", "optax", "orbax-checkpoint",
    "numpy", "scipy", "ml-dtypes", "opt-einsum", "mkl", "intel-openmp", "tbb", "onednn",
    "nvidia-cublas-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12", "nvidia-cublas",
    "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-ml-py",
    "cffi", "msgspec", "psutil", "ruptures",
)  # fmt: skip

# Runs in another interpreter, which need not have the kit: metadata is read, no framework is imported.
_ASK = """
import json, sys
from importlib import metadata
found = {}
for name in json.loads(sys.argv[1]):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""
# Reading metadata takes a tenth of a second; a cold network disk may take many.
ASK_TIMEOUT_S = 30.0


def packages(names: Iterable[str] = DISTRIBUTIONS, python: str | None = None) -> dict[str, str]:
    """Versions of the distributions that an interpreter has installed; one that is not installed is left out.

    Args:
        names: distributions.
        python: the interpreter asked; the running one, if not given.

    Raises:
        OSError: the interpreter does not start.
        subprocess.SubprocessError: it fails or does not answer.
    """
    if python is None or python == sys.executable:
        return {name: version for name in names if (version := _version(name)) is not None}
    asked = subprocess.run(
        [python, "-c", _ASK, json.dumps(list(names))], capture_output=True, check=True, timeout=ASK_TIMEOUT_S
    )
    found: dict[str, str] = json.loads(asked.stdout)
    return found


def software(pythons: Iterable[str], reasons: dict[str, str]) -> Software:
    """Software of this process and of the interpreters that run the frameworks.

    A distribution that two interpreters have in different versions is given as "1.2 / 1.3". Why an interpreter could
    not be asked is noted in `reasons`.
    """
    versions: dict[str, set[str]] = {}
    for python in dict.fromkeys([sys.executable, *pythons]):
        try:
            found = packages(python=python)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            reasons[f"software.packages {python}"] = f"{python} could not be asked for its packages: {error}"
            continue
        for name, version in found.items():
            versions.setdefault(name, set()).add(version)
    libc, libc_version = platform.libc_ver()
    if not libc:
        reasons["software.libc"] = "the C library does not name itself (musl does not)"
    return Software(
        kit=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        os=operating_system(),
        kernel=platform.release(),
        libc=f"{libc} {libc_version}".strip() or None,
        packages={name: " / ".join(sorted(found)) for name, found in sorted(versions.items())},
        environment=relevant_environment(),
    )


def operating_system() -> str:
    """The distribution as it names itself, else the kernel's name."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
