"""The software below a workload: kit, Python, operating system, and packages and variables that could change a number.

Frameworks name their own packages and variables (`kit.backends`); those that several of them read are named here.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from kit.environment import FRAMEWORK_DEFAULTS, REVISION
from kit.fingerprint.container import container
from kit.profile.identity import Values
from kit.profile.reason import Reason, reason
from kit.version import __version__

# Distributions, not modules: numerical libraries, CUDA's, and what the kit itself measures with.
PACKAGES = (
    "numpy", "scipy", "ml-dtypes", "opt-einsum", "mkl", "intel-openmp", "tbb", "onednn",
    "nvidia-cublas-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12", "nvidia-cublas",
    "nvidia-cuda-runtime", "nvidia-cudnn-cu13", "nvidia-nccl-cu13", "nvidia-ml-py",
    "cffi", "msgspec", "psutil",
)  # fmt: skip
# Prefixes of environment variables: each library's own, of which new versions bring new ones.
PREFIXES = (
    "KMP_", "OMP_", "GOMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "ONEDNN_", "DNNL_",
    "CUBLAS_", "CUDNN_", "NCCL_", "MALLOC_", "TCMALLOC_", "JEMALLOC_",
)  # fmt: skip
NAMES = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES",
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
    "NVIDIA_TF32_OVERRIDE", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", FRAMEWORK_DEFAULTS,
    "PYTHONDEVMODE", "PYTHONHASHSEED", "PYTHONMALLOC", "PYTHONOPTIMIZE", "PYTHON_GIL", "PYTHON_JIT",
)  # fmt: skip
# The Makefile's own, which say where a framework was installed from.
OF_MAKE = frozenset({"TORCH_INDEX"})
# Terraform's variables share TensorFlow's prefix, and some are credentials.
NEVER_PREFIXES = ("TF_VAR_", "TF_TOKEN_", "TF_HTTP_", "TF_CLI_", "TF_CLOUD_")
# Whatever the prefix: a profile is passed on, a credential is not.
NEVER_WORDS = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "ACCESS_KEY")

# Who sets variables: the image had these when it was built, by its Dockerfile; entries end with a zero byte, as the
# kernel's do.
BAKED = "etc/steadykit-environment"
# Launchers, by a variable that each of them gives its processes, and what it sets of those that decide speed. PyTorch's
# torchrun (torch/distributed/run.py) sets OMP_NUM_THREADS to 1 for more than one process a node, Ray to the CPUs of a
# task. Slurm and mpirun set none for threads by themselves: that is their users' script.
LAUNCHERS = {
    "torchrun": ("TORCHELASTIC_RUN_ID", ("OMP_NUM_THREADS", "TORCH_NCCL_ASYNC_ERROR_HANDLING")),
    "Ray": ("RAY_RAYLET_PID", ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")),
    "Slurm": ("SLURM_JOB_ID", ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")),
}

# Runs in any interpreter, which need not have the kit: metadata is read, no framework is imported.
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


def software(
    reasons: dict[str, Reason],
    pythons: Iterable[str] = (),
    packages: Iterable[str] = (),
    prefixes: Iterable[str] = (),
) -> Values:
    """Return the facts of the software of this process and of `pythons`, the interpreters that run the frameworks.

    `packages` and `prefixes` are recorded with `PACKAGES` and `PREFIXES`. A distribution that two
    interpreters have in different versions is given as "1.2 / 1.3". `reasons` says why one could not be asked.
    """
    versions: dict[str, set[str]] = {}
    for python in dict.fromkeys([sys.executable, *pythons]):
        command = [python, "-c", _ASK, json.dumps([*PACKAGES, *packages])]
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
        **{f"environment.{name}": value for name, value in environment.items()},
        **{f"environment_set_by.{name}": who for name, who in setters.items()},
    }


def relevant_environment(variables: Mapping[str, str], prefixes: Iterable[str] = ()) -> dict[str, str]:
    """Return those of `variables` that could change a number, sorted by name; never a credential."""
    known = (*PREFIXES, *prefixes)
    return {
        name: variables[name]
        for name in sorted(variables)
        if (name in NAMES or name.startswith(known))
        and name not in OF_MAKE
        and not name.startswith(NEVER_PREFIXES)
        and not any(word in name.upper() for word in NEVER_WORDS)
    }


def set_by(names: Iterable[str], variables: Mapping[str, str], engine: str | None, root: Path) -> dict[str, str]:
    """Return who set each of these names: the image, whoever started the container, a launcher of jobs, or the user.

    Args:
        names: in `variables`.
        variables: of this process.
        engine: of the container that it runs in; null: in none.
        root: where /proc and /etc are looked for.
    """
    given: dict[str, set[str]] = {"image": set(), "container": set()}
    for who, file in (("image", BAKED), ("container", "proc/1/environ")):
        # On a host the first process says nothing; somebody else's cannot be read.
        with suppress(OSError):
            given[who].update((root / file).read_bytes().decode(errors="replace").split("\0") if engine else ())
    setters = {}
    for name in names:
        marked = [who for who, (marker, sets) in LAUNCHERS.items() if marker in variables and name in sets]
        gave = [who for who, entries in given.items() if f"{name}={variables[name]}" in entries]
        setters[name] = [*gave, *marked, "user"][0]
    return setters


def kit_revision(tree: Path = Path(__file__).parents[2]) -> str | None:
    """Return the git revision of the kit's source tree, with "-dirty" where it was changed; None: neither is known.

    KIT_REVISION stands for it in an image, which holds no repository. (A kit that was installed into an environment
    inside some other repository has no revision: the package's parent folder has to be the work tree itself.)
    """
    if named := os.environ.get(REVISION):
        return named
    if not (tree / ".git").exists():
        return None
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        shown = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True, timeout=ASK_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return shown.stdout.strip() or None
