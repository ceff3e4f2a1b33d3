"""Which Python runs which backend and variant, and whether it can."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

import msgspec

from kit.backends.backend_catalog import CATALOG
from kit.engine.connection import local_engine
from kit.engine.container import ask
from kit.engine.image import need_image
from kit.errors import KitError
from kit.import_order import module_command
from kit.profile.cell import DEFAULT_VARIANT, Variant
from kit.version import __version__
from kit.worker.probe import Probe

# The probe imports no framework; an interpreter that takes longer than this to start is not usable for measuring.
PROBE_TIMEOUT_S = 60
# The allocator that docs/reference/audit/index.md recommends, and its Debian package.
PACKAGES = {"libtcmalloc_minimal.so.4": "libtcmalloc-minimal4"}
DEFAULT = Variant(name=DEFAULT_VARIANT)


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
    if probe.not_preloaded:
        raise KitError(
            f"variant {variant.name}: LD_PRELOAD names {', '.join(probe.not_preloaded)}, which did not load; "
            f"install {_named(probe.not_preloaded)}, or give its full path"
        )
    return probe


def _named(libraries: Sequence[str]) -> str:
    """Return "the library", with the packages that have it where they are known."""
    packages = [PACKAGES[name] for library in libraries if (name := os.path.basename(library)) in PACKAGES]  # noqa: PTH119
    return f"the library (Debian, Ubuntu: {', '.join(packages)})" if packages else "the library"


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
