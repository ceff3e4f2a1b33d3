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
    lock.write_text("torch==2.13.0\n")

    def run(index, default, lock_text=None):
        if lock_text is not None:
            lock.write_text(lock_text)
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        done = subprocess.run(
            [scratch / "bin" / "python", root / "images" / "install_torch.py", "--index", index, lock],
            env={
                **inherited,
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_INDEX_URL": default,
                "PIP_NO_CACHE_DIR": "1",
                "PIP_RETRIES": "0",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done, sorted(path.name for path in site.glob("torch-*"))

    return run


def test_the_cpu_index_is_preferred_to_the_default_one(install, tmp_path):
    cpu = add_wheel(tmp_path / "cpu", "2.13.0+cpu", ELSEWHERE)
    cuda = add_wheel(tmp_path / "cuda", "2.13.0", CUDA, "'13.0'")
    done, installed = install(cpu.as_uri(), cuda.as_uri())
    assert done.returncode == 0, done.stderr
    assert installed == ["torch-2.13.0+cpu.dist-info"]
    assert "is a CPU build" in done.stderr


def test_without_the_cpu_index_a_cuda_build_is_refused_before_it_is_installed(install, tmp_path):
    cuda = add_wheel(tmp_path / "cuda", "2.13.0", CUDA, "'13.0'")
    done, installed = install(NOBODY_ANSWERS, cuda.as_uri())
    assert (done.returncode, installed) == (1, [])
    last = done.stderr.splitlines()[-1]
    assert "nvidia-cublas, triton" in last
    assert "TORCH_INDEX" in last


def test_without_the_cpu_index_a_cpu_build_from_elsewhere_is_taken(install, tmp_path):
    cpu = add_wheel(tmp_path / "cpu", "2.13.0", ELSEWHERE)
    done, installed = install(NOBODY_ANSWERS, cpu.as_uri())
    assert done.returncode == 0, done.stderr
    assert installed == ["torch-2.13.0.dist-info"]
    assert f"no torch 2.13.0 from {NOBODY_ANSWERS}" in done.stderr


def test_an_index_turned_off_is_not_asked(install, tmp_path):
    cpu = add_wheel(tmp_path / "cpu", "2.13.0+cpu", [])
    done, installed = install("", cpu.as_uri())
    assert done.returncode == 0, done.stderr
    assert installed == ["torch-2.13.0+cpu.dist-info"]
    assert "no torch" not in done.stderr


def test_a_cuda_index_named_by_mistake_is_refused(install, tmp_path):
    cuda = add_wheel(tmp_path / "cuda", "2.13.0+cu130", CUDA, "'13.0'")
    done, installed = install(cuda.as_uri(), NOBODY_ANSWERS)
    assert (done.returncode, installed) == (1, [])
    assert "is no CPU build" in done.stderr


def test_a_build_that_hides_what_it_is_for_is_found_out_once_installed(install, tmp_path):
    liar = add_wheel(tmp_path / "liar", "2.13.0", [], "'13.0'")
    done, _ = install(liar.as_uri(), NOBODY_ANSWERS)
    assert done.returncode == 1
    assert "a build for cuda" in done.stderr


def test_nothing_anywhere_names_the_variable_to_set(install, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    done, installed = install(NOBODY_ANSWERS, empty.as_uri())
    assert (done.returncode, installed) == (1, [])
    assert "TORCH_INDEX" in done.stderr.splitlines()[-1]
    assert f"({sys.version_info.major}.{sys.version_info.minor})" in done.stderr.splitlines()[-1]


def test_a_lock_without_torch_is_refused(install):
    done, installed = install("", NOBODY_ANSWERS, lock_text="numpy==2.4.6\n")
    assert (done.returncode, installed) == (1, [])
    assert "pins no torch" in done.stderr
