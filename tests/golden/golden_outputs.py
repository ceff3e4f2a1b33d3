"""Runs a golden case in this process and compares what it printed with the file that holds it."""

from __future__ import annotations

import contextlib
import gc
import io
import math
import os
import re
import shlex
import signal
import sys
import warnings
from itertools import chain
from pathlib import Path
from unittest import mock

from kit.cli import main

FOLDER = Path(__file__).parent
OUTPUTS = FOLDER / "outputs"
LINES = (FOLDER / "cases.txt").read_text(encoding="utf-8").splitlines()
# Name -> words after `kit`, before them its environment.
CASES = dict(line.split(None, 1) for line in LINES if line and not line.startswith("#"))
ENDINGS = {"markdown": "md", "csv": "csv", "json": "json", "jsonl": "jsonl", "junit": "xml", "prometheus": "prom"}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
# Of raw steps: their archive has another SHA-256, and the profile another digest, with another release of zlib.
COMPRESSED = re.compile(r'(?<=json\.)[0-9a-f]{8}(?=\.steps)|(?<="sha256": ")[0-9a-f]{64}|(?<="digest": ")[0-9a-f]{64}')
# Other CPUs may round the last bits of a logarithm otherwise; zero may come out as such a last bit.
RELATIVE, ABSOLUTE = 1e-9, 1e-12


class Terminal(io.TextIOWrapper):
    """Standard output of a case that sets COLUMNS."""

    def isatty(self) -> bool:
        return True


def output_path(name: str) -> Path:
    """Return the file of a case; its ending is that of the format."""
    given = re.search(r"--format (\w+)|--(json)", CASES[name])
    ending = "txt" if given is None else ENDINGS[given[1] or "json"]
    return OUTPUTS / f"{name}.{ending}"


def run_case(name: str, folder: Path) -> str:
    """Return the command of a case, what it printed in `folder`, and its exit code.

    Words of the form NAME=VALUE before the command are its environment; with COLUMNS its output is a terminal. A word
    with `*`, `?` or `[` stands for the files that match, as in a shell.
    """
    environment, words = split_environment(shlex.split(CASES[name]))
    code, stdout, stderr = run_main(words, environment, folder)
    command = " ".join([*(f"{key}={value}" for key, value in environment.items()), "kit"])
    printed = [f"$ {command} {CASES[name].split(None, len(environment))[-1]}\n", stdout]
    for picture in folder.glob("*.svg"):
        # Where they stand depends on the fonts.
        drawn = re.findall(r">([^<>\n]+)</t", picture.read_text(encoding="utf-8"))
        printed += [f"--- {picture.name}\n", *(f"{line}\n" for line in drawn)]
        picture.unlink()
    if stderr:
        printed += ["--- stderr\n", stderr]
    whole = "".join([*printed, f"--- exit {code}\n"])
    return COMPRESSED.sub("…", whole) if "--steps" in words else whole


def split_environment(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the environment that stands before a command, and the command's words."""
    count = next(index for index, word in enumerate(words) if "=" not in word)
    return dict(word.split("=", 1) for word in words[:count]), words[count:]


def run_main(words: list[str], environment: dict[str, str], folder: Path) -> tuple[object, str, str]:
    """Run `kit` of these words in `folder`; return its exit code, standard output and standard error."""
    environment = {"NO_COLOR": "1", **environment}
    stream = Terminal if "COLUMNS" in environment else io.TextIOWrapper
    stdout, stderr = stream(io.BytesIO(), encoding="utf-8"), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    signals = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    code: object = None
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", ["kit", *chain(*map(_expanded, words))]),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        warnings.catch_warnings(),
    ):
        # A warning of a library would be a line that no user should see; what is open, the end of a process closes.
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            main()
        except SystemExit as end:
            code = end.code
        finally:
            gc.enable()
            stdout.flush()
            stderr.flush()
            for number, handler in signals.items():
                signal.signal(number, handler)
    return code, stdout.buffer.getvalue().decode(), stderr.buffer.getvalue().decode()


def _expanded(word: str) -> list[str]:
    return sorted(map(str, Path().glob(word))) if re.search(r"[*?\[]", word) else [word]


def agree(path: Path, before: str, after: str) -> bool:
    """Return whether two outputs are the same: text exactly, numbers of CSV, JSON, XML and Prometheus to 1e-9."""
    if before == after or path.suffix in (".txt", ".md"):
        return before == after
    if NUMBER.sub("0", before) != NUMBER.sub("0", after):
        return False
    pairs = zip(NUMBER.findall(before), NUMBER.findall(after), strict=True)
    return all(
        old == new or math.isclose(float(old), float(new), rel_tol=RELATIVE, abs_tol=ABSOLUTE) for old, new in pairs
    )
