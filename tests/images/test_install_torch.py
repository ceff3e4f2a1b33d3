"""install_torch.py with the real pip, on indexes of small made-up wheels that lie in folders."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import packaging
import pytest

NO_CACHE = {"PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0"}
NOBODY_ANSWERS = "http://127.0.0.1:9/simple"
CUDA = ['nvidia-cublas==13.1.1.3; platform_system != "Nowhere"', "triton==3.7.1"]
ELSEWHERE = ['nvidia-cublas==13.1.1.3; platform_system == "Nowhere"']


def add_wheel(index, version, requires, built_for="None"):
    """Put a torch into a folder that pip can use as an index."""
    folder = index / "torch"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"torch-{version}-py3-none-any.whl"
    info = f"torch-{version}.dist-info"
    metadata = ["Metadata-Version: 2.1", "Name: torch", f"Version: {version}"]
    metadata += [f"Requires-Dist: {requirement}" for requirement in requires]
    with zipfile.ZipFile(folder / name, "w") as wheel:
        wheel.writestr("torch/__init__.py", "")
        wheel.writestr("torch/version.py", f"__version__ = {version!r}\ncuda = {built_for}\nhip = None\n")
        wheel.writestr(f"{info}/METADATA", "\n".join(metadata) + "\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    return index


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """An environment with pip and packaging, as the frameworks' lock leaves it when PyTorch's turn comes."""
    folder = tmp_path_factory.mktemp("scratch")
    venv.create(folder, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    shutil.copytree(Path(packaging.__file__).parent, site / "packaging")
    return folder


@pytest.fixture
def install(root, scratch, tmp_path):
    """Run the script in the environment, emptied of torch; answer what it said and the version then installed."""
    (site,) = scratch.glob("lib/python*/site-packages")
    for left in site.glob("torch*"):
        shutil.rmtree(left)
    lock = tmp_path / "torch.txt"
    lock.write_text(
        "torch==2.9.0 ; python_full_version < '3.11'\ntorch==2.13.0 ; python_full_version >= '3.11'\n    # via\n"
    )

    def run(index, default, lock_text=None):
        if lock_text is not None:
            lock.write_text(lock_text)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        done = subprocess.run(
            [scratch / "bin" / "python", root / "images" / "install_torch.py", "--index", index, lock],
            env={**inherited, "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": default, **NO_CACHE},
            capture_output=True,
            text=True,
            check=False,
        )
        return done, sorted(path.name for path in site.glob("torch-*"))

    return run


@pytest.fixture
def indexes(tmp_path):
    """By name, the address of each index."""
    (tmp_path / "empty").mkdir()
    folders = {
        "cpu": add_wheel(tmp_path / "cpu", "2.13.0+cpu", ELSEWHERE),
        "plain cpu": add_wheel(tmp_path / "plain", "2.13.0", ELSEWHERE),
        "cuda": add_wheel(tmp_path / "cuda", "2.13.0", CUDA, "'13.0'"),
        "named cuda": add_wheel(tmp_path / "named", "2.13.0+cu130", CUDA, "'13.0'"),
        "empty": tmp_path / "empty",
    }
    return {"nobody": NOBODY_ANSWERS, "off": ""} | {name: folder.as_uri() for name, folder in folders.items()}


@pytest.mark.parametrize(
    ("index", "default", "version"),
    [("cpu", "cuda", "2.13.0+cpu"), ("nobody", "plain cpu", "2.13.0"), ("off", "cpu", "2.13.0+cpu")],
)
def test_a_cpu_build_is_taken_wherever_it_lies(install, indexes, index, default, version):
    done, installed = install(indexes[index], indexes[default])
    assert done.returncode == 0, done.stderr
    assert installed == [f"torch-{version}.dist-info"]
    assert "is a CPU build" in done.stderr
    # An index that is turned off is not asked.
    assert (f"no torch 2.13.0 from {NOBODY_ANSWERS}" in done.stderr) == (index == "nobody")


@pytest.mark.parametrize(
    ("index", "default", "says"),
    [
        ("nobody", "cuda", ["nvidia-cublas, triton", "TORCH_INDEX"]),
        ("named cuda", "nobody", ["is not a CPU build"]),
        ("nobody", "empty", ["TORCH_INDEX", f"({sys.version_info.major}.{sys.version_info.minor})"]),
    ],
)
def test_without_a_cpu_build_nothing_is_installed(install, indexes, index, default, says):
    done, installed = install(indexes[index], indexes[default])
    assert (done.returncode, installed) == (1, [])
    assert all(words in done.stderr.splitlines()[-1] for words in says)


def test_a_build_that_hides_what_it_is_for_is_refused_once_installed(install, tmp_path):
    liar = add_wheel(tmp_path / "liar", "2.13.0", [], "'13.0'")
    done, _ = install(liar.as_uri(), NOBODY_ANSWERS)
    assert done.returncode == 1
    assert "a build for cuda" in done.stderr


def test_a_lock_without_torch_is_refused(install):
    done, installed = install("", NOBODY_ANSWERS, lock_text="numpy==2.4.6\n")
    assert (done.returncode, installed) == (1, [])
    assert "does not pin torch" in done.stderr
