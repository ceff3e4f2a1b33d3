"""Installs PyTorch's CPU build, and never another: `PYTHON images/install_torch.py [--index URL] LOCK`.

    the CPU index (--index) ──no answer──► pip's configured indexes and folders
              │                                         │
              └────────► is it a CPU build? ◄───────────┘     asked of the metadata, before the wheel is fetched
                             │         │
                           install   refuse, naming TORCH_INDEX

On Linux the default index's torch asks for gigabytes of CUDA libraries. Its CPU builds lie on an index of their own.
Exit status 0: a CPU build of the locked version is installed; 1: it is not, and one line says why.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement

# How the names of the CUDA, ROCm and Intel GPU runtimes and their compiler begin. A CPU build asks for none of them.
ACCELERATOR_PREFIXES = ("nvidia-", "cuda-", "triton", "pytorch-triton", "rocm", "intel-", "onemkl")

# For asking an index whether it is there. A slow answer beats none, but a machine that cannot reach it should not wait
# for pip's own 5 retries of 15 s each.
ASK = ("--retries", "1", "--timeout", "10")

# The lock is complete, so there is nothing to resolve; whoever calls this compiles all packages at once, on every core.
QUIETLY = ("--quiet", "--quiet", "--no-deps", "--no-compile")


class NotCpuError(Exception):
    """One line for the user."""


class Offer(NamedTuple):
    """What pip would install."""

    version: str
    url: str
    accelerator_packages: list[str]


def locked_version(lock: Path) -> str:
    """The version of torch that `lock` pins for this Python."""
    pins = [Requirement(line) for line in lock.read_text(encoding="utf-8").splitlines() if line.startswith("torch==")]
    for pin in pins:
        if pin.marker is None or pin.marker.evaluate():
            return str(pin.specifier).removeprefix("==")
    raise NotCpuError(f"{lock} does not pin torch; run make lock")


def accelerator_packages(requirements: list[str]) -> list[str]:
    """Names of the accelerator runtimes among `requirements` that this machine and Python would install."""
    needed = [Requirement(text) for text in requirements]
    return [
        package.name
        for package in needed
        if package.name.lower().startswith(ACCELERATOR_PREFIXES)
        and (not package.marker or package.marker.evaluate({"extra": ""}))
    ]


def pip(*arguments: str, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Run this interpreter's pip."""
    return subprocess.run([sys.executable, "-m", "pip", *arguments], check=False, text=True, capture_output=capture)


def ask(version: str, options: tuple[str, ...]) -> Offer | None:
    """What pip would install as torch `version`; None: nothing. Only metadata is fetched where the index has it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        # fmt: off
        asked = pip(
            "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", str(report),
            *options, f"torch=={version}", capture=True,
        )
        # fmt: on
        if asked.returncode != 0:
            return None
        wheel: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))["install"][0]
    metadata = wheel["metadata"]
    packages = accelerator_packages(metadata.get("requires_dist", []))
    return Offer(metadata["version"], wheel["download_info"]["url"], packages)


def choose(version: str, index: str) -> tuple[str, ...]:
    """pip's options under which torch `version` is a CPU build. Raises NotCpuError where there are none."""
    attempts = [("--index-url", index), ()] if index else [()]
    for source in attempts:
        offer = ask(version, (*ASK, *source) if source else ())
        if offer is None:
            where = index if source else "the indexes that pip is configured with"
            sys.stderr.write(f"steadykit: no torch {version} from {where}\n")
        elif offer.accelerator_packages:
            raise NotCpuError(
                f"{offer.url} is not a CPU build of torch (it needs {', '.join(offer.accelerator_packages)}); "
                "set TORCH_INDEX to an index of CPU builds"
            )
        else:
            sys.stderr.write(f"steadykit: torch {offer.version} is a CPU build: {offer.url}\n")
            return source
    raise NotCpuError(
        f"found no torch {version} for this Python ({sys.version_info.major}.{sys.version_info.minor}); set "
        "TORCH_INDEX to an index of CPU builds that this machine can reach, or PYTHON to another Python"
    )


def check_installed(version: str) -> bool:
    """Whether torch `version` is installed. Raises NotCpuError if what is installed is no CPU build."""
    importlib.invalidate_caches()  # pip may have installed it since this process began
    spec = importlib.util.find_spec("torch")
    if not spec or not spec.origin:
        return False
    facts = runpy.run_path(str(Path(spec.origin).with_name("version.py")))  # torch itself takes seconds to import
    built_for = [name for name in ("cuda", "hip", "xpu") if facts.get(name)]
    if built_for:
        raise NotCpuError(f"the installed torch is a build for {built_for[0]}; run make clean, then make again")
    return str(facts["__version__"]).split("+")[0] == version


def install(lock: Path, index: str) -> None:
    """Install torch and its dependencies as `lock` pins them. Raises NotCpuError; CalledProcessError if pip failed."""
    version = locked_version(lock)
    if not check_installed(version):
        pip("install", *QUIETLY, *choose(version, index), f"torch=={version}").check_returncode()
        if not check_installed(version):
            raise NotCpuError(f"pip installed torch, but not {version}")
    pip("install", *QUIETLY, "--requirement", str(lock)).check_returncode()


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description="Install PyTorch's CPU build.")
    parser.add_argument(
        "--index", default="", help="index of CPU builds; empty: only the indexes pip is configured with"
    )
    parser.add_argument("lock", type=Path, help="requirements file that pins torch and its dependencies")
    arguments = parser.parse_args()
    try:
        install(arguments.lock, arguments.index)
    except NotCpuError as error:
        sys.stderr.write(f"steadykit: {error}\n")
        return 1
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
