"""What users install: wheels that need no compiler and no checkout, with all that an image is built from."""

import os
import platform
import re
import struct
import subprocess
import sys
import zipfile

import pytest

from kit.backends.backend_catalog import WITH_EXTRA
from kit.devices import DEVICES

pytestmark = pytest.mark.slow
# ELF, "e_machine".
MACHINES = {"x86_64": 62, "aarch64": 183}
# The kit of this run is not to be found in place of the wheel.
OUTSIDE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def wheels(root, tmp_path_factory):
    """The wheel for each processor, built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, root / "images" / "wheels.py", "--out", folder], check=True, env=OUTSIDE)
    assert len([*folder.glob("*.tar.gz")]) == 1
    return {name: next(folder.glob(f"*manylinux2014_{name}*.whl")) for name in MACHINES}


@pytest.fixture(scope="module")
def installed(wheels, tmp_path_factory):
    """A clean environment with the wheel and what it requires, without extras: the folder of its commands."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    wheel = wheels[platform.machine()]
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel]
    subprocess.run(command, check=True, env=OUTSIDE)
    return python.parent


def run(installed, tmp_path, *words, command="kit"):
    """Run it with nothing else on PATH: neither a compiler nor make."""
    environment = {"PATH": str(installed), "HOME": str(tmp_path)}
    return subprocess.run(
        [installed / command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )


def shown(installed, tmp_path, *words, command="kit"):
    done = run(installed, tmp_path, *words, command=command)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("processor", MACHINES)
def test_native_parts_are_for_the_processor_and_name_no_folder_of_the_builder(wheels, root, processor):
    with zipfile.ZipFile(wheels[processor]) as wheel:
        native = {name: wheel.read(name) for name in wheel.namelist() if name.endswith(".so")}
    assert {*native} == {"kit/_clock.abi3.so", "kit/_stamp.abi3.so"}
    for content in native.values():
        assert struct.unpack_from("<H", content, 18) == (MACHINES[processor],)
        needed = [tuple(map(int, version.split(b"."))) for version in re.findall(rb"GLIBC_([\d.]+)", content)]
        assert max(needed) <= (2, 17)
        assert not re.search(f"{root}|{sys.base_prefix}/".encode(), content)


def test_the_clock_is_certified_without_a_checkout(installed, tmp_path):
    assert "shortest step" in shown(installed, tmp_path, "clock")


def test_what_documents_published_came_with_it(installed, tmp_path):
    (file,) = (installed.parent / "share" / "steadykit").glob("**/five-nets.json")
    assert "five-nets" in shown(installed, tmp_path, "show", str(file))
    words = ["-c", "from kit.suites.suite import published_file; print(published_file('five-nets'))"]
    assert shown(installed, tmp_path, *words, command="python") == f"{file}\n"


def test_suites_and_the_doctor_answer_without_a_framework(installed, tmp_path):
    assert "five-nets" in shown(installed, tmp_path, "suites", command="steadykit")
    assert "not installed" in shown(installed, tmp_path, "doctor")


def test_its_metadata_say_that_it_is_for_linux(installed):
    (metadata,) = installed.parent.glob("lib/python*/site-packages/steadykit-*.dist-info/METADATA")
    lines = metadata.read_text().splitlines()
    assert {"Platform: Linux", "Classifier: Operating System :: POSIX :: Linux"} <= {*lines}
    assert {f"Provides-Extra: {name}" for name in WITH_EXTRA} <= {*lines}


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("plot", "{profile}"), "plot"),
        (("fleet", "--from", "{profile}"), "fleet"),
        (("launch", "cpu", "quick"), "containers"),
        (("launch", "cpu", "quick", "--print"), "containers"),
        (("run", "quick", "--variant", "a:image=steadykit:cpu"), "containers"),
        (("run", "quick", "--backend", "torch"), "torch"),
        (("run", "quick"), "tensorflow,torch,jax"),
    ],
)
def test_what_is_missing_is_one_line_with_the_extra_that_brings_it(installed, tmp_path, words, extra):
    (profile,) = (installed.parent / "share" / "steadykit").glob("**/five-nets.json")
    done = run(installed, tmp_path, *(word.format(profile=profile) for word in words))
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, done.stdout) == (2, "")
    named = re.search(r"pip install 'steadykit\[(.*)\]'", last)
    assert named, last
    assert {*named[1].split(",")} == {*extra.split(",")}
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("target", DEVICES)
def test_an_image_is_built_from_what_came_with_it(installed, tmp_path, target):
    # An engine that keeps what it is given. The kit's own wheel builds from that, as in the image.
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\ncp -r . {tmp_path}/context\necho "$@" > {tmp_path}/words\n')
    engine.chmod(0o755)
    build = (
        "import subprocess; from kit.engine.image import build_context\n"
        f"with build_context() as folder: subprocess.run(['sh', 'images/build', '{target}'], cwd=folder, check=True)"
    )
    environment = {**OUTSIDE, "DOCKER": str(engine), "DOCKER_BUILD_FLAGS": "--build-arg 'FRAMEWORKS=torch jax'"}
    subprocess.run([installed / "python", "-c", build], cwd=tmp_path, env=environment, check=True)
    words = (tmp_path / "words").read_text()
    assert f"--file Dockerfile.{target} ." in words
    assert "--build-arg FRAMEWORKS=torch jax" in words
    context = tmp_path / "context"
    copied = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", (context / f"Dockerfile.{target}").read_text(), re.M)
    assert [name for names in copied for name in names.split() if not (context / name).exists()] == []
    if target == "cpu":
        source = tmp_path / "source"
        source.mkdir()
        for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "native", "kit"):
            (context / name).rename(source / name)
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path]
        subprocess.run([sys.executable, "-m", "pip", "wheel", *options, source], check=True, env=OUTSIDE)
        (wheel,) = tmp_path.glob("*.whl")
        assert {"kit/cli/run_and_selftest.py", "kit/suites/quick.toml", "kit/_stamp.abi3.so"} <= {
            *zipfile.ZipFile(wheel).namelist()
        }
