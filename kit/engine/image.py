"""An image on an engine: found or built, what it says of itself, and one answer of a program in it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kit.backends.catalog import CATALOG
from kit.engine.connection import EngineError
from kit.engine.contained import Contained
from kit.engine.options import Bind, ContainerOptions
from kit.engine.target import Target
from kit.version import __version__

if TYPE_CHECKING:
    import docker

# A probe takes a second where the engine is at rest.
ASK_TIMEOUT_S = 60.0
VERSION_LABEL = "org.opencontainers.image.version"
CHECKOUT = Path(__file__).parents[2]


class Image(NamedTuple):
    """An image that is on the engine."""

    name: str
    digest: str  # of its configuration, sha256:…: the same image has the same on every engine
    environment: Mapping[str, str]
    labels: Mapping[str, str]
    entrypoint: Sequence[str]

    def python(self, backend: str) -> str:
        """Return the interpreter in it that has the framework."""
        return self.environment.get(CATALOG[backend].interpreter_variable) or "python"


def find_image(client: docker.DockerClient, name: str) -> Image | None:
    """Return the image of that name; None where the engine has none."""
    import docker

    try:
        found = client.images.get(name)
    except docker.errors.ImageNotFound:
        return None
    config = found.attrs["Config"]
    environment = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
    return Image(name, str(found.id), environment, found.labels, config.get("Entrypoint") or ())


def need_image(client: docker.DockerClient, name: str) -> Image:
    """Return the image of that name. EngineError where the engine has none."""
    found = find_image(client, name)
    if found is None:
        raise EngineError(f"the engine has no image {name}; build it, or `docker pull {name}`")
    return found


def find_or_build(client: docker.DockerClient, url: str, target: Target) -> Image:
    """Return the target's image, built from this checkout where the engine has none of this kit's version.

    Args:
        client: of the engine.
        url: where the engine is, for the docker command that builds.
        target: whose image.

    Raises:
        EngineError: there is none, and it cannot be built.
    """
    found = find_image(client, target.image)
    if found is not None and found.labels.get(VERSION_LABEL) == __version__:
        return found
    if not (CHECKOUT / target.dockerfile).is_file():
        had = (
            "no image"
            if found is None
            else f"another version ({found.labels.get(VERSION_LABEL)}, not {__version__}) of"
        )
        raise EngineError(
            f"the engine has {had} {target.image}, and no {target.dockerfile} is here to build it from; "
            f"run `make image-{target.name}` in a checkout, or name an image with --image"
        )
    environment = {**os.environ, "DOCKER_HOST": url}
    built = subprocess.run(["make", f"image-{target.name}"], cwd=CHECKOUT, env=environment, stdout=2, check=False)
    if built.returncode or (found := find_image(client, target.image)) is None:
        raise EngineError(
            f"{target.dockerfile} could not be built, as the lines above say; where the base image or the packages "
            "cannot be reached, give make BASE_IMAGE=… or load a built image with `docker load`"
        )
    return found


def ask(
    client: docker.DockerClient,
    image: str,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    binds: Sequence[Bind] = (),
) -> bytes:
    """Return what a command writes to standard output in a container of the image.

    Raises:
        EngineError: with its last line, where it fails; or it does not end.
    """
    options = ContainerOptions(
        image=image,
        entrypoint=(command[0],),
        command=list(command[1:]),
        environment=tuple((environment or {}).items()),
        binds=tuple(binds),
    )
    output, errors = b"", b""
    deadline = time.monotonic() + ASK_TIMEOUT_S
    with Contained(client, options) as contained:
        while (outputs := contained.receive(1.0)) is not None:
            output += b"".join(one.data for one in outputs if not one.is_error)
            errors += b"".join(one.data for one in outputs if one.is_error)
            if time.monotonic() > deadline:
                raise EngineError(f"image {image}: {command[0]} has not ended within {ASK_TIMEOUT_S:.0f} s")
        status = contained.wait().status
    if status:
        last = (errors.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise EngineError(f"image {image}: {command[0]} failed: {last}")
    return output
