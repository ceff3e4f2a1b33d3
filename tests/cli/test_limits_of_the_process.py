"""Closed streams, full disks and limits of the process: one line and a documented exit code, and nothing is lost."""

import resource
import shlex
import subprocess
import sys

import pytest
from kit_process import REPOSITORY, kit
from msgspec.structs import replace
from profile_builder import group, member, profile, write
from small_suite import SUITE

from kit.profile.store import read_profile

REFERENCE = REPOSITORY / "profiles/reference/cpu-xeon-2-vcpu-quick.json"
PRINT_PEAK = (
    "atexit.register(lambda: print(next(line for line in open('/proc/self/status') if 'VmPeak' in line).split()[1], "
    "file=sys.stderr))"
)
MODEL = "def program(batch, device):\n    return lambda: sum(range(2000))\n"


def in_shell(folder, words, redirected):
    """Run the command with streams as a shell redirects them; its own standard error is kept in a file."""
    line = f"{shlex.join([sys.executable, '-m', 'kit', *map(str, words)])} {redirected}"
    return subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("words", [("compare",), ("audit",), ("show",), ("export", "bmf")], ids=" ".join)
@pytest.mark.parametrize("redirected", [">&-", "<&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_like_the_null_device(tmp_path, words, redirected):
    expected = in_shell(tmp_path, [*words, REFERENCE], "")
    done = in_shell(tmp_path, [*words, REFERENCE], redirected)
    assert (done.returncode, "Traceback" in done.stderr) == (expected.returncode, False)
    if ">&-" not in redirected.replace("2>&-", ""):
        assert done.stdout == expected.stdout


def test_a_run_without_streams_writes_its_profile(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "small.toml").write_text(SUITE)
    done = in_shell(tmp_path, ["run", "small.toml", "--program", "model.py", "--out", "run.json"], "<&- >&- 2>&-")
    assert done.returncode == 0
    assert read_profile(tmp_path / "run.json").cells


@pytest.mark.parametrize("words", [("compare",), ("show",), ("export", "bmf")], ids=" ".join)
def test_a_full_device_is_one_line(tmp_path, words):
    done = in_shell(tmp_path, [*words, REFERENCE], "> /dev/full")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "make room" in done.stderr


def limited(folder, words, limit, most):
    def plant():
        resource.setrlimit(limit, (most, most))

    command = [sys.executable, "-m", "kit", *map(str, words)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False, preexec_fn=plant
    )


def test_few_descriptors_are_one_line_and_what_was_measured_stays(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "small.toml").write_text(SUITE)
    codes = set()
    for most in (8, 11, 200):
        words = ["run", "small.toml", "--program", "model.py", "--out", f"{most}.json"]
        done = limited(tmp_path, words, resource.RLIMIT_NOFILE, most)
        assert "Traceback" not in done.stderr
        assert done.returncode == 0 or done.stderr.splitlines()[-1].startswith("kit: ")
        codes.add(done.returncode)
    assert codes == {0, 2}


def test_little_memory_is_one_line(tmp_path):
    built = profile(*(group(f"g{number}", member("torch", 1.0)) for number in range(300)), rounds=20, cycles=12)
    write(tmp_path / "large.json", built)
    write(tmp_path / "small.json", profile(rounds=2, cycles=2))
    # Enough for a small profile, whatever this Python and its libraries take.
    code = (
        f"from kit.cli import main; import sys, atexit; sys.argv[1:] = ['compare', 'small.json']; {PRINT_PEAK}; main()"
    )
    small = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    peak_b = int(small.stderr.split()[-1]) << 10
    done = limited(tmp_path, ["compare", "large.json"], resource.RLIMIT_AS, peak_b + (8 << 20))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "memory" in done.stderr


@pytest.mark.parametrize("columns", ["40", "72", "100"])
def test_names_wider_than_the_page_are_cut(tmp_path, columns):
    built = profile(group("mlp", member("torch", 2.0), member("jax", 1.0)), rounds=4, cycles=4)
    for name in "xy":
        write(tmp_path / f"{name}.json", replace(built, label=name * 400, id=name))
    for more in ((), ("--wide",)):
        done = kit(tmp_path, "compare", "x.json", "y.json", "--why", *more, COLUMNS=columns)
        assert done.returncode == 0, done.stderr
        assert "…" in done.stdout
