"""`kit launch` by rootless Podman. As root: by the unprivileged user KIT_TEST_PODMAN_USER, with the system's Python."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from kit_process import REPOSITORY
from numpy_program import RESUMED, numpy_program

from kit.profile.store import read_profile

pytestmark = pytest.mark.docker

ENDS_S = 200


@pytest.fixture(scope="module")
def user():
    """Who runs it, by uid."""
    if not shutil.which("podman"):
        pytest.skip("podman is not installed")
    name = os.environ.get("KIT_TEST_PODMAN_USER")
    if os.getuid() and not name:
        return os.getuid()
    if not name:
        pytest.skip("rootless Podman needs an unprivileged user: KIT_TEST_PODMAN_USER names one")
    return pwd.getpwnam(name).pw_uid


@pytest.fixture(scope="module")
def as_user(user):
    """What a command begins with that the user is to run."""
    if user == os.getuid():
        return ["env", f"PYTHONPATH={REPOSITORY}"]
    entry = pwd.getpwuid(user)
    installed = Path(pytest.__file__).parents[1]
    variables = {
        "HOME": entry.pw_dir, "PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "PYTHONPATH": f"{REPOSITORY}:{installed}",
        "PYTHONDONTWRITEBYTECODE": "1",
        # Else Podman copies each layer whole, where the user may not use /dev/fuse.
        "STORAGE_DRIVER": "overlay",
    }  # fmt: skip
    ids = ["--reuid", str(user), "--regid", str(entry.pw_gid), "--init-groups"]
    return ["setpriv", *ids, "env", "-i", *(f"{name}={value}" for name, value in variables.items())]


@pytest.fixture(scope="module")
def python(as_user, user):
    """A Python that the user may run, with what the kit imports."""
    python = sys.executable if user == os.getuid() else "/usr/bin/python3"
    tried = subprocess.run(
        [*as_user, python, "-m", "kit", "--version"], cwd="/", capture_output=True, text=True, check=False
    )
    if tried.returncode:
        pytest.skip(f"{python} -m kit is not for this user: {tried.stderr.strip().splitlines()[-1]}")
    return python


@pytest.fixture(scope="module")
def image(lean_image):
    """An image without frameworks: Podman takes a minute to load one that has them."""
    return lean_image("tpu")


@pytest.fixture(scope="module")
def loaded(client, image, as_user, python):
    """The image under test, in the user's Podman; its digest."""
    digest = client.images.get(image).id
    if subprocess.run([*as_user, "podman", "image", "exists", digest], cwd="/", check=False).returncode:
        with subprocess.Popen([*as_user, "podman", "load"], cwd="/", stdin=subprocess.PIPE) as load:
            for chunk in client.images.get(image).save(named=image):
                load.stdin.write(chunk)
        assert load.returncode == 0
    subprocess.run([*as_user, "podman", "tag", digest, image], cwd="/", check=True)
    return digest


@pytest.fixture
def folder(user):
    """An empty folder of the user's, not below /tmp, which a container has of its own."""
    with tempfile.TemporaryDirectory(dir=pwd.getpwuid(user).pw_dir) as name:
        os.chown(name, user, -1)
        yield Path(name)


@pytest.fixture
def start(as_user, python, loaded, folder):
    """Start kit as the user: `start(*words, **environment) -> Popen`."""
    started = []

    def begin(*words, **environment):
        variables = [f"{name}={value}" for name, value in environment.items()]
        started.append(
            subprocess.Popen(
                [*as_user, *variables, python, "-m", "kit", *words],
                cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def launch(start, image):
    """Begin `kit launch cpu` in the image by Podman: `launch(*arguments) -> Popen`."""
    return lambda *arguments: start("launch", "cpu", "--engine", "podman", "--image", image, *arguments)


def outcome(process):
    stdout, stderr = process.communicate(timeout=ENDS_S)
    assert process.returncode == 0, stderr
    return stdout


def test_a_terminated_run_is_finished_by_resume_and_its_service_ends(launch, loaded, user, folder):
    cpu = max(os.sched_getaffinity(0))
    process = launch("--cpuset", str(cpu), *numpy_program(folder, 50), "--out", "run.json")
    end = time.monotonic() + ENDS_S
    while not list(folder.glob("run.json.rounds/r0*.json")):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "no round ends"
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=ENDS_S)
    assert "kit launch cpu --engine podman" in stderr
    outcome(launch("--cpuset", str(cpu), *RESUMED, "--resume", "--out", "run.json", "--budget", "1"))
    profile = read_profile(folder / "run.json")
    identity, launches = profile.identity, profile.cells[0].launches
    assert len({launch.round for launch in launches}) > 1
    assert {tuple(launch.threads.cpus) for launch in launches} == {(cpu,)}
    assert (identity.text("container.engine"), identity.text("container.image_digest")) == ("podman", loaded)
    assert (folder / "run.json").stat().st_uid == user
    lines = subprocess.run(["ps", "-u", str(user), "-o", "args="], capture_output=True, text=True, check=False).stdout
    assert "steadykit-" not in "".join(line for line in lines.splitlines() if "system service" in line)
