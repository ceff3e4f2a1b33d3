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


# Interrupts itself as `click` begins to be imported, which is left half done.
INTERRUPTED = """
import os, signal, sys
class Interrupting:
    def find_spec(name, path, target=None):
        if name == "click.core":
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Interrupting)
{before}
from kit.cli import main
main()
"""
# A command that is interrupted, and what it does on its way out.
BEGUN = """
from kit.cli import app
def command(**options):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    finally:
        print("removed", flush=True)
        {at_last}
app.app.main = command
"""


def interrupted(number=0, before=""):
    program = INTERRUPTED.format(number=int(number), before=before)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_a_command_that_has_nothing_to_lose_as_its_signal_does(number):
    """While it imports, too, and without a word."""
    answer = interrupted(number)
    assert (answer.returncode, answer.stdout, answer.stderr) == (-number, "", "")


@pytest.mark.parametrize(
    ("at_last", "number"),
    [("pass", signal.SIGTERM), ("os.kill(os.getpid(), signal.SIGINT); signal.pause()", signal.SIGINT)],
)
def test_what_was_half_made_is_removed_first_unless_another_comes(at_last, number):
    answer = interrupted(before=BEGUN.format(at_last=at_last))
    assert (answer.returncode, answer.stdout, answer.stderr) == (-number, "removed\n", "")


def test_an_interrupt_that_is_ignored_stays_so():
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nsys.argv[1:] = ['--version']"
    answer = interrupted(signal.SIGINT, before=ignored)
    assert (answer.returncode, answer.stderr) == (0, "")
