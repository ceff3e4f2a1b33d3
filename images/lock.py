"""Writes the lock files: `make lock`, or `python images/lock.py [--upgrade] [TARGET …]`.

    pyproject.toml ─┐
    cpu/*.in ───────┴─► one resolution of everything ─► constraints ─► cpu/{kit,notebook,tensorflow,torch,jax,dev}.txt

    FRAMEWORK.in, worker.in ─► a resolution each ─► {gpu,tpu}/FRAMEWORK.txt      the kit's own: cpu/kit.txt

On a CPU all the files install into one environment, so a package has the same version in each of them; `universal`
resolution writes markers for Python 3.11 to 3.13 and for every platform. Python 3.12 and 3.13 get the newest versions
that the .in files allow, 3.11 the last ones that were published for it. On GPUs and TPUs the frameworks pin runtimes
that clash: an environment each, for the Python and the platform of the images.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

IMAGES = Path(__file__).resolve().parent
ROOT = IMAGES.parent
NAMES = ("kit", "notebook", "tensorflow", "torch", "jax", "dev")
FRAMEWORKS = ("tensorflow", "torch", "jax")
COMMANDS = ("containers", "fleet", "plot")  # extras of pyproject.toml that some commands need
OLDEST_PYTHON, IMAGES_PYTHON = "3.11", "3.13"
# libtpu's wheels ask for glibc 2.31; CUDA's for older ones.
PLATFORMS = {"gpu": "x86_64-manylinux_2_28", "tpu": "x86_64-manylinux_2_31"}

# PyTorch's CPU wheels have the same version and different contents on each index. pip takes hashes for all of a file
# or for none of it, so this one file has none.
WITHOUT_HASHES = {"torch"}

# What only a CUDA build of PyTorch asks for. Left out of the CPU locks.
CUDA_ONLY = (
    "cuda-bindings",
    "cuda-toolkit",
    "nvidia-cudnn-cu13",
    "nvidia-cusparselt-cu13",
    "nvidia-nccl-cu13",
    "nvidia-nvshmem-cu13",
    "triton",
)

NOTES = {
    "torch": "# No hashes: the same version of torch is another file on each index; pip wants all hashes or none.\n"
    "# Install with images/install_torch.py: on Linux, torch from the default index brings gigabytes of CUDA.\n"
}


def kit_requirements(pyproject: Path) -> dict[str, list[str]]:
    """Return requirement strings from the kit's own metadata, by the lock that has them.

    "kit" is what it needs to build and to run its commands; the images have it. "notebook" is what data frames need.
    Frameworks have locks of their own. ReFrame is needed where jobs are started, and by tests: dev.in has it.
    """
    metadata = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    extras = metadata["project"]["optional-dependencies"]
    optional = [text for name in COMMANDS for text in extras[name] if not text.startswith("reframe-hpc")]
    return {
        "kit": [*metadata["build-system"]["requires"], *metadata["project"]["dependencies"], *optional],
        "notebook": extras["notebook"],
    }


def compile_lock(work: Path, sources: list[str], output: str, python: str, *options: str) -> None:
    """Resolve `sources` (file names in `work`) into `work/output`. Raises CalledProcessError with uv's own message."""
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--python-version", python,
        "--custom-compile-command", "make lock", *options, *sources, "--output-file", output,
    ]  # fmt: skip
    subprocess.run(command, cwd=work, check=True)


def lock_together(target: Path, *, upgrade: bool) -> None:
    """Write `target`/*.txt for one environment. Pins that still satisfy the .in files are kept unless `upgrade`."""
    everywhere = ("--universal", "--fork-strategy", "requires-python", "--excludes", "cuda_only.txt")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "cuda_only.txt").write_text("\n".join(CUDA_ONLY), encoding="utf-8")
        for name, requirements in kit_requirements(ROOT / "pyproject.toml").items():
            (work / f"{name}.in").write_text("\n".join(requirements), encoding="utf-8")
        for source in target.glob("*.in"):
            (work / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        if not upgrade:
            kept = [path.read_text(encoding="utf-8") for name in NAMES if (path := target / f"{name}.txt").exists()]
            (work / "constraints.txt").write_text("\n".join(kept), encoding="utf-8")
        sources = [f"{name}.in" for name in NAMES]
        compile_lock(work, sources, "constraints.txt", OLDEST_PYTHON, "--no-annotate", "--no-header", *everywhere)
        for name in NAMES:
            hashes = () if name in WITHOUT_HASHES else ("--generate-hashes",)
            options = ("--constraints", "constraints.txt", *hashes, *everywhere)
            compile_lock(work, [f"{name}.in"], f"{name}.txt", OLDEST_PYTHON, *options)
            text = (work / f"{name}.txt").read_text(encoding="utf-8").replace("    #   -c constraints.txt\n", "")
            (target / f"{name}.txt").write_text(NOTES.get(name, "") + text, encoding="utf-8")


def lock_apart(target: Path, *, upgrade: bool) -> None:
    """Write `target`/FRAMEWORK.txt, for an environment each. Pins that still fit are kept unless `upgrade`."""
    for name in FRAMEWORKS:
        with tempfile.TemporaryDirectory() as folder:
            work, locked = Path(folder), target / f"{name}.txt"
            for source in (target / f"{name}.in", IMAGES / "worker.in"):
                (work / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            if locked.exists() and not upgrade:
                (work / locked.name).write_text(locked.read_text(encoding="utf-8"), encoding="utf-8")
            options = ["--python-platform", PLATFORMS[target.name]]
            is_cpu_torch = (target.name, name) == ("tpu", "torch")
            if is_cpu_torch:
                (work / "cuda_only.txt").write_text("\n".join(CUDA_ONLY), encoding="utf-8")
            options += ["--excludes", "cuda_only.txt"] if is_cpu_torch else ["--generate-hashes"]
            compile_lock(work, [f"{name}.in", "worker.in"], locked.name, IMAGES_PYTHON, *options)
            text = (work / locked.name).read_text(encoding="utf-8")
            locked.write_text((NOTES[name] if is_cpu_torch else "") + text, encoding="utf-8")


def main() -> int:
    """Command line: exit status 0, or uv's."""
    parser = argparse.ArgumentParser(description="Write the lock files of the targets.")
    parser.add_argument(
        "targets", nargs="*", default=["cpu", "gpu", "tpu"], help="folders under images/ (default: all)"
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that the .in files allow")
    arguments = parser.parse_args()
    try:
        for target in arguments.targets:
            (lock_apart if target in PLATFORMS else lock_together)(IMAGES / target, upgrade=arguments.upgrade)
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
