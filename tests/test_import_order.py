"""What Steadykit starts imports nothing of the user's, and a user's program imports as `python FILE` does."""

import hashlib
import os
import subprocess
import sys
import venv

import pytest
from kit_process import REPOSITORY, kit
from small_suite import measure

from kit.import_order import module_command
from kit.profile.store import read_profile

RAISES = "raise RuntimeError('imported by Steadykit')\n"
# One of the user's own for each kind that Steadykit imports: of the standard library, of its environment, itself.
PLANTED = ("socket.py", "platform.py", "select.py", "statistics.py", "msgspec.py", "psutil.py", "kit/__init__.py")
PROGRAM = """
import numpy as np
import beside, given, here

def program(batch, device):
    assert [module.WHERE for module in (beside, given, here)] == ["benchmarks", "path", "."]
    x = np.ones((batch, 64))
    return lambda: x @ x.T
"""
# Folder -> modules in it; the program is in the first.
PLACES = {"benchmarks": ["beside"], "path": ["beside", "given"], ".": ["beside", "given", "here"]}
SUITE = """
name = "short"
title = "Short"
[cells]
batches = [64]
[programs.model]
path = "benchmarks/model.py"
[variants.default]
env = {PYTHONPATH = "path"}
""" + measure(block_s=0.05, energy_s=0)


def plant(folder):
    for name in PLANTED:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RAISES)


@pytest.mark.parametrize("python_path", ["", ".", "{here}", "{here}:{kit}"])
@pytest.mark.parametrize(
    "words",
    [
        ["kit.worker", "--probe", "program"],
        ["kit.worker.supervisor", "true"],
        ["kit.sensors.sampler"],
        ["kit", "--help"],
    ],
    ids=lambda words: words[0],
)
def test_modules_beside_the_users_code_are_not_imported(tmp_path, words, python_path):
    plant(tmp_path)
    module, *arguments = words
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    given = python_path.format(here=tmp_path, kit=REPOSITORY)
    done = subprocess.run(
        # By `env`: the tests' own planted modules would come first.
        ["env", "-u", "PYTHONPATH", *([f"PYTHONPATH={given}"] if given else []),
         *module_command(sys.executable, module), *arguments],
        cwd=tmp_path, env=variables,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and "imported by Steadykit" not in done.stderr, done.stderr


def test_the_kit_that_python_path_names_is_the_one_that_runs(tmp_path):
    """As for measuring one Steadykit against another."""
    (tmp_path / "kit/worker").mkdir(parents=True)
    for name, text in {
        "__init__": "",
        "worker/__init__": "",
        "worker/supervisor": "",
        "other": "print('other')",
    }.items():
        (tmp_path / f"kit/{name}.py").write_text(text)
    done = subprocess.run(
        module_command(sys.executable, "kit.other"), env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout == "other\n", done.stderr


def test_python_m_kit_does_not_import_what_lies_in_the_current_folder(tmp_path):
    for name in PLANTED[:-1]:
        (tmp_path / name).write_text(RAISES)
    done = kit(tmp_path, "run", "--dry-run", "--backend", "torch", "--workload", "mlp", "--out", "run.json")
    assert done.returncode == 0, done.stderr


def test_a_program_imports_as_plain_python_does_and_the_current_folder_comes_last(tmp_path):
    for place, names in PLACES.items():
        (tmp_path / place).mkdir(exist_ok=True)
        for name in names:
            (tmp_path / place / f"{name}.py").write_text(f"WHERE = {place!r}\n")
    plant(tmp_path)
    (tmp_path / "benchmarks/model.py").write_text(PROGRAM)
    (tmp_path / "short.toml").write_text(SUITE)
    # As the command `kit` does: `python -m kit` would run the user's.
    done = kit(tmp_path, "run", "short.toml", "--out", "run.json", start=module_command(sys.executable, "kit"))
    assert done.returncode == 0, done.stderr


@pytest.fixture
def environments(tmp_path):
    """Two environments, each with its own normal copy of a package, and a checkout with a third."""
    for side in ("base", "head"):
        folder = tmp_path / f"env-{side}"
        venv.create(folder, symlinks=True)
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "here.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
        (site / "package.py").write_text(f"SIDE = {side!r}\n")
        info = site / "package-1.0.dist-info"
        info.mkdir()
        (info / "RECORD").write_text("package.py,,\n")
        (info / "direct_url.json").write_text('{"url": "file:///checkout", "dir_info": {}}')
    (tmp_path / "package.py").write_text("SIDE = 'checkout'\n")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/model.py").write_text(
        "import numpy as np, package\ndef program(batch, device):\n    return lambda: np.ones((batch, 64)).sum()\n"
    )
    return tmp_path


def test_variants_of_two_environments_import_the_installed_copies_in_a_checkout(environments):
    """As the pipelines of docs/how-to/ci.md do."""
    variants = "".join(f'[variants.{side}]\npython = "env-{side}/bin/python"\n' for side in ("base", "head"))
    suite = SUITE.replace('[variants.default]\nenv = {PYTHONPATH = "path"}\n', variants)
    (environments / "short.toml").write_text(suite)
    done = kit(environments, "run", "short.toml", "--out", "run.json")
    assert done.returncode == 0, done.stderr
    loaded = [
        {file.sha256 for file in launch.imported.files if file.path == "package.py"}
        for result in read_profile(environments / "run.json").cells
        for launch in result.launches[:1]
    ]
    assert loaded == [{hashlib.sha256(f"SIDE = {side!r}\n".encode()).hexdigest()} for side in ("base", "head")]
