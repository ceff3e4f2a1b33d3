"""README's Python example, as it stands there, in an environment with what `make setup` installs and nothing else."""

import re
import subprocess
import sys
from importlib import metadata

import pytest
from kit_process import REPOSITORY
from packaging.utils import canonicalize_name

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
LOCKS = re.findall(r"\$\(LOCKS\)/(\w+\.txt)", (REPOSITORY / "Makefile").read_text().partition("$(VENV)/.dev:")[0])
(FRAME,) = re.findall(r"^```python\nimport kit\n.*?^```\n\n```text\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
TIMEOUT_S = 600


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter that finds this checkout and, of the packages of this environment, those in the locks."""
    locked = {
        canonicalize_name(name)
        for lock in LOCKS
        for name in re.findall(r"^([\w.-]+)==", (REPOSITORY / "images/cpu" / lock).read_text(), re.MULTILINE)
    }
    folder = tmp_path_factory.mktemp("setup")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    (site,) = folder.glob("env/lib/python*/site-packages")
    (site / "checkout.pth").write_text(f"{REPOSITORY}\n")
    for package in metadata.distributions():
        if canonicalize_name(package.name) in locked:
            for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
                if not (site / name).exists():
                    (site / name).symlink_to(package.locate_file(name))
    return folder / "env/bin/python"


def run(python, folder, code):
    words = [python, "-c", code]
    shown = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


@pytest.fixture
def example(tmp_path):
    """Its blocks, where a checkout's profiles are in the working directory."""
    (tmp_path / "profiles").symlink_to(REPOSITORY / "profiles")
    return re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_its_frame_is_what_stands_below_it(python, example, tmp_path):
    assert run(python, tmp_path, example[0]) == FRAME


def test_its_functions_are_programs(python, example, tmp_path):
    """The run itself takes a minute on a busy machine: the test below has it."""
    programs, measured, _ = example[1].partition("measured = ")
    assert measured
    run(python, tmp_path, f"{programs}\nfor program in (old, new):\n    assert program(64, 'cpu')().shape == (64, 512)")


@pytest.mark.quiet
@pytest.mark.slow
def test_all_of_it_runs_after_make(python, example, tmp_path):
    (tmp_path / "example.py").write_text("\n".join(example))
    printed = run(python, tmp_path, "import runpy; runpy.run_path('example.py', run_name='__main__')")
    rows = printed.removeprefix(FRAME)
    assert rows != printed
    assert all(re.search(rf"^ +{name} +[\d.]+ \S+ ", rows, re.MULTILINE) for name in ("old", "new"))


def test_what_make_does_not_install_is_not_found(python, tmp_path):
    """The locks of `make setup` have no polars, which this environment may have for other tests."""
    asked = "from importlib.util import find_spec; print([find_spec(name) is None for name in ('polars', 'pandas')])"
    assert run(python, tmp_path, asked) == "[True, False]\n"
