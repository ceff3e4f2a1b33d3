"""`kit --help` and `kit compare` work, and start quickly, because they import no framework."""

import signal
import subprocess
import sys

import pytest
from profile_builder import build_profile, six_cells

from kit.profile.store import write_profile

FRAMEWORKS = ("tensorflow", "torch", "jax", "flax", "keras", "optax")
SLOW = (*FRAMEWORKS, "scipy.stats", "ruptures", "pooch", "cpuinfo")


def imported_by(arguments, cwd):
    program = (
        "import sys\n"
        f"sys.argv = ['kit', *{list(map(str, arguments))!r}]\n"
        "from kit.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "print('IMPORTED', *sys.modules)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=cwd, timeout=60, check=True
    )
    return set(answer.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("verb", [(), ("run",), ("compare",), ("show",), ("suites",), ("clock",), ("doctor",)])
def test_help_imports_nothing_slow(tmp_path, verb):
    modules = imported_by((*verb, "--help"), tmp_path)
    assert not modules.intersection(SLOW)
    assert not modules.intersection(("numpy", "rich", "msgspec"))


def test_compare_and_show_import_no_framework(tmp_path):
    write_profile(tmp_path / "run.json", build_profile(six_cells()))
    for verb in ("compare", "show"):
        assert not imported_by((verb, "run.json"), tmp_path).intersection(SLOW)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_a_command_that_has_nothing_to_lose_without_a_word(tmp_path, number, code):
    """While it imports, too, where an exception could be swallowed."""
    program = (
        "import os, sys\n"
        "class Interrupting:\n"
        "    def find_spec(name, path, target=None):\n"
        f"        if name == 'click': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Interrupting)\n"
        "from kit.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (code, "", "")
