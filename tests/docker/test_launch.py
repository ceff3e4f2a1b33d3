"""`kit launch` as a user runs it: a process of its own, the real engine, the real image."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from kit_process import kit
from numpy_program import RESUMED, numpy_program

from kit.engine.container import LABEL
from kit.profile.store import read_profile

pytestmark = pytest.mark.docker

SHORT = ("--quick", "--workload", "mlp", "--task", "infer", "--backend", "torch", "--data", "synthetic", "--rounds=1")
ENDS_S = 120


@pytest.fixture
def launch(image, tmp_path):
    """Run `kit launch cpu --image IMAGE …` in an empty folder: `launch(*arguments) -> CompletedProcess`."""

    def once(*arguments, **environment):
        return kit(tmp_path, "launch", "cpu", "--image", image, *arguments, timeout_s=ENDS_S, **environment)

    return once


@pytest.fixture
def begun(image, tmp_path):
    """Begin a run of many rounds and wait until one is kept: `begun(out, *arguments) -> Popen`."""
    started = []

    def begin(out, *arguments):
        process = subprocess.Popen(
            command(image, *arguments, *numpy_program(tmp_path, 50), "--out", out),
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        wait_for(lambda: list((tmp_path / f"{out}.rounds").glob("r0*.json")))
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()


def command(image, *arguments):
    return [sys.executable, "-m", "kit", "launch", "cpu", "--image", image, *arguments]


def wait_for(done, seconds=60):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.1)


def containers(client):
    return client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True)


def test_the_profile_lands_here_is_the_callers_and_names_the_image_by_digest(launch, client, image, tmp_path):
    ended = launch(*SHORT, "--out", "one.json")
    assert ended.returncode == 0, ended.stderr
    path = tmp_path / "one.json"
    assert path.stat().st_uid == os.getuid()
    identity = read_profile(path).identity
    inside = identity.text("container.image"), identity.text("container.image_digest")
    assert inside == (image, client.images.get(image).id)
    assert ended.stdout.strip().endswith("one.json")
    assert containers(client) == []


def test_the_printed_line_does_the_same_by_itself(launch, client, image, tmp_path):
    printed = launch("--print", *SHORT, "--out", "line.json")
    assert printed.returncode == 0, printed.stderr
    if not shutil.which("docker"):
        pytest.skip("no docker command")
    ended = subprocess.run(printed.stdout, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert read_profile(tmp_path / "line.json").identity.text("container.image_digest") == client.images.get(image).id


def test_an_interrupt_leaves_a_run_that_resume_finishes(begun, launch, client, image, tmp_path):
    process = begun("run.json")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=ENDS_S)
    assert process.returncode == 130
    assert f"`kit launch cpu --image {image} {' '.join(RESUMED)} --resume --out" in stderr
    assert containers(client) == []
    ended = launch(*RESUMED, "--resume", "--out", "run.json", "--budget", "1")
    assert ended.returncode == 0, ended.stderr
    assert len({kept.round for kept in read_profile(tmp_path / "run.json").cells[0].launches}) > 1


def test_a_killed_client_takes_its_container_with_it_and_nothing_finished_is_lost(begun, launch, client, tmp_path):
    process = begun("run.json")
    process.kill()
    wait_for(lambda: containers(client) == [])
    kept = len(list((tmp_path / "run.json.rounds").glob("r0*.json")))
    ended = launch(*RESUMED, "--resume", "--out", "run.json", "--budget", "1")
    assert ended.returncode == 0, ended.stderr
    assert len(read_profile(tmp_path / "run.json").cells[0].launches) > kept


def test_too_little_memory_is_named_with_what_to_do(launch, tmp_path):
    ended = launch("--memory", "200m", *SHORT, "--out", "run.json")
    assert ended.returncode not in (0, 2)
    assert "memory" in ended.stderr


def test_two_images_take_turns(client, image, tmp_path):
    client.images.get(image).tag("steadykit", "test-other")
    variants = ("--variant", f"old:image={image}", "--variant", "new:image=steadykit:test-other")
    done = kit(tmp_path, "run", *numpy_program(tmp_path, 1), *variants, "--out", "ab.json", timeout_s=ENDS_S)
    client.images.remove("steadykit:test-other")
    assert done.returncode == 0, done.stderr
    profile = read_profile(tmp_path / "ab.json")
    launches = [launch for cell in profile.cells for launch in cell.launches]
    assert {launch.turns for launch in launches} == {"blocks"}
    assert all(launch.gave_number for launch in launches)
    assert {variant.image_digest for variant in profile.suite.variants} == {client.images.get(image).id}
    assert containers(client) == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("cpu", "--image", "no-such:image"), "has no image no-such:image"),
        (("gpu",), "NVIDIA runtime"),
        (("tpu",), "no TPU on the engine's host"),
    ],
)
def test_what_cannot_be_is_one_line(image, tmp_path, words, says):
    named = () if "--image" in words else ("--image", image)
    done = kit(tmp_path, "launch", *words, *named, timeout_s=ENDS_S, KIT_DATA=str(tmp_path))
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("target", ["gpu", "tpu"])
def test_a_lean_image_without_frameworks_says_what_it_lacks(client, lean_image, target):
    shown = client.containers.run(
        lean_image(target), ["doctor"], remove=True, network_mode="none", read_only=True, tmpfs={"/profiles": ""}
    ).decode()
    assert shown.count("not installed") >= 3
