"""Whatever a user can get wrong: one line on standard error, exit code 2, never a traceback."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from profile_builder import build_profile, six_cells

from kit import suites
from kit.fingerprint.accelerators import absence
from kit.profile.canonical import profile_digest
from kit.profile.journal import journal_path
from kit.profile.store import write_profile


def kit(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "kit", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def one_line(answer, exit_code=2):
    assert answer.returncode == exit_code, answer.stderr
    assert "Traceback" not in answer.stderr
    lines = answer.stderr.strip().splitlines()
    assert len(lines) == 1, answer.stderr
    assert lines[0].startswith("kit: ")
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("run", "fast"), "no suite 'fast'; choose from quick, standard"),
        (("run", "--workload", "mpl"), "choose from mlp, cnn"),
        (("run", "--backend", "pytorch"), "choose from tensorflow, torch, jax"),
        (("run", "--device", "npu"), "choose from cpu, gpu, tpu"),
        (("run", "--task", "test"), "choose from train, infer"),
        (("run", "--data", "cifar"), "choose from mnist, synthetic, auto"),
        (("run", "--batch", "many"), "'many' is not a valid integer"),
        (("run", "--batch", "0"), "give 1 or more"),
        (("run", "--launches", "0"), "--launches"),
        (("run", "--lanches", "3"), "--launches"),
        (("run", "--resume"), "--resume needs --out"),
        (("run", "--resume", "--out", "none.json"), "no unfinished run"),
        (("run", "quick", "--backend", "torch", "--data", "synthetic", "--out", "no/such/x.json"), "no such folder"),
        (("rnu",), "rnu"),
        (("compare",), "PROFILES"),
        (("compare", "none.json"), "No such file"),
        (("compare", "x.json", "--fail-if-slower", "nan"), "nan is not a finite number"),
        (("compare", "x.json", "--fail-if-slower", "inf"), "inf is not a finite number"),
        (("run", "quick", "--batch", "60001", "--data", "synthetic"), "more than the 60000 samples"),
        (("clock", "--source", "sundial"), "choose from auto, monotonic_raw, tsc, cntvct"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_one_line_with_what_would_be_right(tmp_path, arguments, expected):
    assert expected in one_line(kit(*arguments, cwd=tmp_path))


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "run.json"
    write_profile(path, build_profile(six_cells()))
    return path


@pytest.mark.parametrize("verb", ["compare", "show"])
def test_damaged_profiles(profile, tmp_path, verb):
    good = profile.read_bytes()
    plain = msgspec.json.decode(good)

    profile.write_bytes(good[: len(good) // 2])
    assert "truncated" in one_line(kit(verb, profile, cwd=tmp_path))

    newer = {**plain, "schema": "steadykit.profile/9.0"}
    profile.write_bytes(msgspec.json.encode({**newer, "digest": profile_digest(newer)}))
    assert "steadykit.profile/9.0 is newer" in one_line(kit(verb, profile, cwd=tmp_path))

    profile.write_bytes(msgspec.json.encode({**plain, "kit": "edited"}))
    assert "digest does not match" in one_line(kit(verb, profile, cwd=tmp_path))

    profile.write_text("step time: fast\n")
    assert "not JSON" in one_line(kit(verb, profile, cwd=tmp_path))


def test_a_run_that_has_ended_is_not_resumed(profile, tmp_path):
    resume = ("run", "--resume", "--out", profile)
    assert f"this run is complete; `kit show {profile}` shows it" in one_line(kit(*resume, cwd=tmp_path))

    # Its journal is gone, but the profile says what was begun: on another machine than this one.
    write_profile(profile, build_profile(six_cells(), interrupted=True))
    assert "the run cannot go on: " in one_line(kit(*resume, cwd=tmp_path))

    journal_path(profile).write_text("damaged\n")
    assert "no copy of its header" in one_line(kit(*resume, cwd=tmp_path))


@pytest.mark.parametrize("device", ["gpu", "tpu"])
def test_a_device_that_is_not_here_is_said_before_the_first_launch(tmp_path, device):
    if absence(device) is None:
        pytest.skip(f"this machine may have a {device}")
    wanted = f"device {device} was asked for, and only cpu"
    options = ("run", "quick", "--data", "synthetic", "--out", "x.json", "--device")
    assert wanted in one_line(kit(*options, device, cwd=tmp_path))

    suite = tmp_path / "own.toml"
    quick = (Path(suites.__file__).parent / "quick.toml").read_text()
    suite.write_text(quick.replace('devices = ["cpu"]', f'devices = ["cpu", "{device}"]'))
    assert wanted in one_line(kit("run", suite, "--data", "synthetic", "--out", "x.json", cwd=tmp_path))
    assert not list(tmp_path.glob("x.json*"))


def test_data_that_is_not_here_yet_is_not_called_damaged(tmp_path):
    answer = kit("doctor", cwd=tmp_path, KIT_DATA=str(tmp_path))
    (line,) = (line for line in answer.stdout.splitlines() if line.startswith("  mnist"))
    assert f"not in {tmp_path / 'mnist'} yet: train-images" in line
    assert "`kit run --data mnist` downloads" in line


def test_unknown_format_and_baseline(profile, tmp_path):
    assert "choose from text, markdown, csv, json" in one_line(kit("compare", profile, "--format", "pdf", cwd=tmp_path))
    assert "mxnet" in one_line(kit("compare", profile, "--baseline", "mxnet", cwd=tmp_path))


def run_on(folder, tmp_path, *more):
    arguments = ("run", "quick", "--backend", "torch", "--workload", "mlp", "--data", "mnist", *more)
    return kit(*arguments, cwd=tmp_path, KIT_DATA=str(folder))


def test_missing_truncated_and_corrupt_data(mnist_dir, tmp_path):
    folder = tmp_path / "data"
    (folder / "mnist").mkdir(parents=True)
    for source in (mnist_dir / "mnist").glob("*.gz"):
        (folder / "mnist" / source.name).write_bytes(source.read_bytes())
    images = folder / "mnist" / "t10k-images-idx3-ubyte.gz"
    good = images.read_bytes()

    images.write_bytes(good[: len(good) // 2])
    assert images.name in one_line(run_on(folder, tmp_path))

    changed = bytearray(gzip.decompress(good))
    changed[1000] ^= 1
    images.write_bytes(gzip.compress(changed, compresslevel=1))
    assert images.name in one_line(run_on(folder, tmp_path))

    images.write_bytes(b"not gzip at all")
    assert images.name in one_line(run_on(folder, tmp_path))
    assert not list(tmp_path.glob("*.json*")), "nothing may be left behind by a run that never began"


def test_a_framework_asked_for_by_name_that_is_not_installed(tmp_path, bare_python):
    options = ("run", "quick", "--backend", "jax", "--data", "synthetic")
    assert "jax is not installed" in one_line(kit(*options, cwd=tmp_path, KIT_PYTHON_JAX=str(bare_python)))


def test_no_framework_at_all(tmp_path, bare_python):
    nowhere = {f"KIT_PYTHON_{name}": str(bare_python) for name in ("TENSORFLOW", "TORCH", "JAX")}
    assert "none of jax, tensorflow, torch is installed" in one_line(kit("run", "quick", cwd=tmp_path, **nowhere))


def test_an_interpreter_that_cannot_run_the_worker(tmp_path):
    answer = kit("run", "quick", "--data", "synthetic", cwd=tmp_path, KIT_PYTHON_TORCH="/bin/false")
    assert "KIT_PYTHON_TORCH" in one_line(answer)
