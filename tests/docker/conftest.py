"""A real Docker engine and the real image. KIT_TEST_IMAGE names one that is built; else `make image-cpu` builds it."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import docker
import pytest

ROOT = Path(__file__).parents[2]
STARTER = ROOT.parent / "shared" / "engine" / "start"
BUILD_S = 900
RUN_S = 240


class Ended(NamedTuple):
    """What a container did."""

    status: int
    stdout: str
    stderr: str


@pytest.fixture(scope="session")
def client():
    """The engine. Where there is none: skip, but in CI that has one to start, fail."""
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        missing = f"no Docker engine answers ({error})"
        if os.environ.get("CI") == "true" and STARTER.exists():
            pytest.fail(f"{missing}, though {STARTER.name} is there to start one")
        pytest.skip(missing)
    return client


@pytest.fixture(scope="session")
def image(client):
    """The image under test, by name."""
    named = os.environ.get("KIT_TEST_IMAGE")
    if named:
        return client.images.get(named).tags[0]
    subprocess.run(["make", "image-cpu", "IMAGE=steadykit:test"], cwd=ROOT, check=True, timeout=BUILD_S)
    return client.images.get("steadykit:test").tags[0]


@pytest.fixture(scope="session")
def lean_image(client):
    """Build the image of a target without frameworks: `lean_image(target) -> name`."""
    built = set()

    def build(target):
        name = f"steadykit:test-lean-{target}"
        if name not in built:
            flags = shlex.split(os.environ.get("DOCKER_BUILD_FLAGS", ""))
            words = ["--build-arg", "FRAMEWORKS=none", "--tag", name, "--file", f"Dockerfile.{target}", "."]
            command = [os.environ.get("DOCKER", "docker"), "build", *flags, *words]
            subprocess.run(command, cwd=ROOT, env={**os.environ, "DOCKER_BUILDKIT": "1"}, check=True, timeout=BUILD_S)
            built.add(name)
        return name

    yield build
    for name in built:
        client.images.remove(name)


@pytest.fixture
def run(client, image):
    """Run the image once, without a network, and remove the container: `run(*arguments, **docker_options) -> Ended`."""
    started = []

    def once(*arguments, **options):
        container = client.containers.run(image, list(arguments), detach=True, network_mode="none", **options)
        started.append(container)
        status = container.wait(timeout=RUN_S)["StatusCode"]
        stdout, stderr = (container.logs(stdout=out, stderr=not out).decode() for out in (True, False))
        return Ended(status, stdout, stderr)

    yield once
    for container in started:
        container.remove(force=True, v=True)


@pytest.fixture
def folder_of(tmp_path):
    """Make a folder that belongs to a uid, to mount as /profiles: `folder_of(uid) -> (folder, volumes)`."""

    def make(uid, mode="rw"):
        folder = tmp_path / f"profiles-{uid}"
        folder.mkdir()
        if os.getuid() == 0:
            os.chown(folder, uid, uid)
        elif uid != os.getuid():
            pytest.skip(f"only root can make a folder of uid {uid}'s")
        return folder, {str(folder): {"bind": "/profiles", "mode": mode}}

    return make
