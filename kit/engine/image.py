"""An image on an engine: found or built, and what it says of itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from kit.backends.backend_catalog import CATALOG
from kit.distribution import CHECKOUT, shipped
from kit.engine.connection import EngineError, podman_version
from kit.fingerprint.fingerprint import kit_revision
from kit.version import __version__

if TYPE_CHECKING:
    import docker

VERSION_LABEL = "org.opencontainers.image.version"
REVISION_LABEL = "org.opencontainers.image.revision"
# A target has this image where none is named.
TARGET_IMAGE = "steadykit:{}"


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
        image = client.images.get(name)
    except docker.errors.ImageNotFound:
        return None
    config = image.attrs["Config"]
    environment = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
    return Image(name, str(image.id), environment, image.labels, config.get("Entrypoint") or ())


def need_image(client: docker.DockerClient, name: str) -> Image:
    """Return the image of that name. EngineError where the engine has none."""
    image = find_image(client, name)
    if image is None:
        engine = engine_name(client)
        raise EngineError(f"{engine} has no image {name}; build it, or `{engine.lower()} pull {name}`")
    return image


def engine_name(client: docker.DockerClient) -> str:
    """Return ``Docker`` or ``Podman``; each has a command of that name."""
    return "Podman" if podman_version(client) else "Docker"


def find_or_build(client: docker.DockerClient, target: str) -> Image:
    """Return the target's image, built from this kit where the engine's is of another.

    The engine's own command builds.

    Raises:
        EngineError: there is none, and it cannot be built.
    """
    name = TARGET_IMAGE.format(target)
    image, engine = find_image(client, name), engine_name(client)
    if image is not None and _is_this_kit(image):
        return image
    if not (shipped() / f"Dockerfile.{target}").is_file():
        other = image and f"another version ({image.labels.get(VERSION_LABEL)}, not {__version__}) of"
        raise EngineError(
            f"{engine} has {other or 'no image'} {name}, and there is no Dockerfile.{target} to build it from; "
            "name an image with --image"
        )
    environment = {**os.environ, "DOCKER": "podman"} if engine == "Podman" else {**os.environ}
    with build_context() as folder:
        built = subprocess.run(["sh", "images/build", target], cwd=folder, env=environment, stdout=2, check=False)
    if built.returncode or (built_image := find_image(client, name)) is None:
        old = f"; --image {name} measures in the one of another revision that is there" if image else ""
        raise EngineError(
            f"Dockerfile.{target} could not be built, see the lines above; if the base image or the packages cannot be "
            f"reached, set DOCKER_BUILD_FLAGS='--build-arg BASE_IMAGE=…' or load a built image with "
            f"`{engine.lower()} load`{old}"
        )
    return built_image


@contextmanager
def build_context() -> Iterator[Path]:
    """Give the folder that images are built from: the checkout, or a copy of what came with the package, and of it."""
    if (folder := shipped()) == CHECKOUT:
        yield folder
        return
    with TemporaryDirectory(prefix="steadykit-") as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        without = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(Path(__file__).parents[1], Path(copy, "kit"), ignore=without)
        yield Path(copy)


def _is_this_kit(image: Image) -> bool:
    """Return whether it was built from what is here; nothing is said of the unknown."""
    if image.labels.get(VERSION_LABEL) != __version__:
        return False
    of_image, here = image.labels.get(REVISION_LABEL), kit_revision()
    return not of_image or here is None or (of_image == here and not here.endswith("-dirty"))
