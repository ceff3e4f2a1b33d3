"""`kit compare` and `kit show`: what they exit with, and what they print where."""

import contextlib
import json
import subprocess
import sys
from itertools import chain
from pathlib import Path

import profile_builder as b
import pytest
from click.testing import CliRunner

from kit.cli.app import app
from kit.errors import KitError

KIT = f"{sys.executable} -m kit"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of one cell, in turn: three before, three that are the same, three that are slower; and one of several."""
    made = tmp_path_factory.mktemp("profiles")
    for side, (name, ms, first) in enumerate((("before", 2.0, 0), ("same", 2.0, 10), ("slow", 3.0, 20))):
        for number in range(3):
            plan = b.group("mlp train", b.member("torch", ms, sd=0.002, noise=0.002))
            built = b.profile(plan, rounds=3, cycles=3, drift=0.0, seed=first + number, id=f"{name}{number}")
            built.created = f"2026-11-26T1{number}:{10 * side:02}:00+00:00"
            b.write(made / f"{name}{number}.json", built)
    b.write(made / "cells.json", b.profile(rounds=8))
    return made


def kit(folder, *words):
    """The command in this process, in `folder`; a name ending in * stands for three files, as a shell expands it."""
    three = [[f"{word[:-1]}{n}.json" for n in range(3)] if word.endswith("*") else [word] for word in words]
    with contextlib.chdir(folder):
        return CliRunner().invoke(app, list(chain(*three)), standalone_mode=False)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["before*", "--against", "same*"], 0, "kit: 1 row passes: not more than 10 % slower (95 %)\n"),
        (["before*", "--against", "slow*"], 1, "slower by more than 10 %: mlp train · torch"),
        # Every word after --against up to the next option is a later run.
        (["before*", "--against", "slow*", "--baseline", "before0"], 1, "mlp train · torch"),
        (["before0.json", "slow0.json"], 1, "torch"),
        (["before0.json", "same0.json"], 5, "torch"),
        (["cells.json", "--baseline", "jax"], 1, "tensorflow"),
        (["before0.json"], 4, "kit: "),
    ],
)
def test_a_limit_on_slow_downs_exits_with_what_was_shown(folder, words, code, says):
    result = kit(folder, "compare", *words, "--fail-if-slower", "10")
    assert result.return_value == code
    assert "torch" in result.stdout and says in result.stderr


@pytest.mark.parametrize("name", ["text", "markdown", "csv", "json", "junit"])
def test_every_format_names_the_rule(folder, name):
    result = kit(folder, "compare", "cells.json", "--format", name)
    assert result.exit_code == 0 and "rounds" in result.stdout
    assert "rounds-4" in kit(folder, "compare", "cells.json", "--wide", "--format", name).stdout
    assert "slow0" in kit(folder, "compare", "before0.json", "slow0.json", "--format", name).stdout


def test_json_is_for_programs(folder):
    assert json.loads(kit(folder, "show", "cells.json", "--json").stdout)["id"] == "run-1"
    why = kit(folder, "compare", "before0.json", "slow0.json", "--why", "--json")
    assert json.loads(why.stdout)["mismatches"] == []


def test_the_next_command_names_the_file_and_explains_one_profile(folder):
    hint = kit(folder, "compare", "cells.json").stdout.splitlines()[-1]
    command = hint.partition(": kit ")[2]
    assert command.startswith("compare cells.json --") and "FILE" not in hint
    assert "--wide" not in kit(folder, "compare", "cells.json", "--wide").stdout
    assert "jax" in kit(folder, "compare", "cells.json", "--why").stdout


def test_a_folder_stands_for_its_profiles_and_labels_are_distinct(folder, tmp_path):
    result = kit(folder, "compare", ".", "--json")
    assert result.exit_code == 0
    (tmp_path / "before0.json").write_bytes((folder / "slow0.json").read_bytes())
    shown = kit(folder, "compare", "before0.json", str(tmp_path / "before0.json")).stdout
    assert f"{folder.name}/before0" in shown or "#2" in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["compare", ""], "does not exist"),
        (["compare", "cells.json", "--baseline", "theano"], "theano"),
        (["compare", "cells.json", "--format", "xml"], "xml"),
        (["compare", "cells.json", "--against"], "--against"),
        (["compare", "cells.json", "--fail-if-slower", "-1"], "-1"),
        (["clock", "--source", "sundial"], "sundial"),
        (["fly"], "fly"),
    ],
)
def test_bad_usage_is_one_line(folder, words, says):
    result = kit(folder, *words)
    assert result.exception is not None
    line = getattr(result.exception, "format_message", lambda: str(result.exception))()
    assert says in line and "\n" not in line.strip()


def process(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False)


def test_what_cannot_be_compared_exits_with_4_and_junit_says_why(folder, tmp_path):
    other = b.write(tmp_path / "other.json", b.profile(b.group("g", b.member("jax", 2.0, "cnn")), rounds=2, id="o"))
    done = process(f"{KIT} compare {folder / 'before0.json'} {other} --format junit")
    assert (done.returncode, done.stderr.count("\n")) == (4, 1)
    assert "<error" in done.stdout and done.stderr.startswith("kit: no cell is in both")


def test_errors_of_a_whole_process_are_one_line_without_a_traceback(folder):
    (folder / "not.txt").write_text('{"a": 1}')
    done = process(f"{KIT} compare {folder / 'not.txt'}")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    full = process(f"{KIT} compare {folder / 'cells.json'} > /dev/full")
    assert full.returncode == 2 and "make room" in full.stderr and full.stderr.count("\n") == 1
    gone = process(f"{KIT} show {folder / 'cells.json'} | head -1")
    assert gone.stderr == "" and gone.stdout.startswith("run-1")


SLOW = {"numpy", "scipy", "rich", "msgspec", "tensorflow", "torch", "jax", "keras"}
PROBE = """
import sys
sys.argv = ["kit", *sys.argv[1:]]
from kit.cli import main
try:
    main()
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(("words", "allowed"), [(["--help"], 0), (["compare", "cells.json"], 4)])
def test_nothing_slow_is_imported_that_is_not_needed(folder, words, allowed):
    done = subprocess.run([sys.executable, "-c", PROBE, *words], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout and len(SLOW & set(done.stderr.split())) <= allowed


@pytest.mark.parametrize("words", [["--fail-if-slower", "3"], ["--against", "before0.json"]])
def test_published_figures_are_never_judged(folder, words):
    published = Path(__file__).parents[2] / "profiles" / "published" / "five-nets.json"
    result = kit(folder, "compare", "same0.json", str(published), *words)
    assert isinstance(result.exception, KitError)
    assert "published, not measured" in str(result.exception)
