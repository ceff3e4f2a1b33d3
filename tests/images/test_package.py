"""What users install: an sdist and a wheel that need no checkout."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(root, tmp_path_factory):
    """A clean environment with the wheel that the sdist builds: the folder of its commands."""
    folder = tmp_path_factory.mktemp("package")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder / "dist", root], check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel], check=True)
    return python.parent


def shown(installed, tmp_path, *words):
    done = subprocess.run([installed / "kit", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_clock_is_certified_without_a_checkout(installed, tmp_path):
    assert "shortest step" in shown(installed, tmp_path, "clock")


def test_what_documents_published_came_with_it(installed, tmp_path):
    (file,) = (installed.parent / "share" / "steadykit" / "published").glob("five-nets.json")
    assert "five-nets" in shown(installed, tmp_path, "show", str(file))


def test_suites_and_the_doctor_answer_without_a_framework(installed, tmp_path):
    assert "five-nets" in shown(installed, tmp_path, "suites")
    assert "not installed" in shown(installed, tmp_path, "doctor")


def test_its_metadata_say_that_it_is_for_linux(installed):
    (metadata,) = installed.parent.glob("lib/python*/site-packages/steadykit-*.dist-info/METADATA")
    lines = metadata.read_text().splitlines()
    assert {"Platform: Linux", "Classifier: Operating System :: POSIX :: Linux"} <= {*lines}
