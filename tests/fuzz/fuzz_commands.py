"""The commands and the Python interface, run in this process: what they print, write, touch, raise and leave behind."""

from __future__ import annotations

import contextlib
import gc
import io
import locale
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import kit
from kit.cli import main
from kit.report.records import Columns

# Longer than any command takes on a profile as small as these, on the slowest machine.
LIMIT_S = 60
FORMATS = ("text", "markdown", "csv", "json", "jsonl", "junit", "prometheus")
KINDS = ("times", "rounds", "batch", "platforms", "gain", "devices", "layers", "roofline")
# By the kind of a subject: what each mutation is read by, then what some of them are.
USUAL: dict[str, tuple[str, ...]] = {
    "profile": ("compare a.json",),
    "suite": ("python suite own.toml",),
    "journal": ("python journal out/j.json",),
}
CHEAP: dict[str, tuple[str, ...]] = {
    "profile": (
        *(f"compare a.json --format {name}" for name in FORMATS[1:]),
        *(f"audit a.json --format {name}" for name in FORMATS),
        *(f"show a.json --format {name}" for name in FORMATS if name not in ("junit", "prometheus")),
        "compare a.json --why", "compare a.json --wide", "compare a.json --why --format markdown",
        "compare a.json --all-cycles --fail-if-slower 5", "compare a.json --metric latency --format csv",
        "compare a.json --metric compile", "compare a.json --metric energy_per_sample --wide", "compare a.json --metric fit_score", "compare a.json --metric fit_test",
        "compare a.json --rows batch --columns backend", "compare a.json --split task --rows workload --format markdown",
        "compare a.json --filter batch>=1 --baseline torch", "compare a.json --price-hour 2 --price-kwh 0.3 --wide",
        "compare a.json --table five-nets", "compare b.json a.json", "compare b.json --against a.json --why",
        "compare a.json b.json --wide --format markdown", "compare b.json a.json --format json --force",
        "compare b.json a.json --format junit --fail-if-slower 5", "compare b.json a.json --rows file --columns backend",
        "audit a.json b.json", "fleet --from b.json --from a.json", "fleet --from a.json --format markdown",
        "fleet --from a.json --from b.json --format json", "show a.json --steps --format csv", "show a.json --steps --json",
        "export bmf a.json", "export github-benchmark a.json", "export trace a.json", "export trace a.json -o out/t.json",
        "export asv a.json -o out/asv --commit 0123456789012345678901234567890123456789", "export asv a.json -o out/asv",
        "export parquet a.json -o out/c.parquet", "export parquet a.json -o out/b.parquet --level blocks",
        "export parquet a.json -o out/s.parquet --level steps", "report a.json -o out/page.html",
        "report b.json a.json -o out/page.html",
        *(f"python columns {level}" for level in ("cells", "launches", "blocks", "steps")),
        *(f"python frame {level}" for level in ("cells", "launches", "blocks", "steps")),
        "python compare step", "python compare latency", "python together step",
    ),
    "suite": ("compare own.toml", "python table own.toml"),
    "journal": ("python journal out/j.json",),
}  # fmt: skip
# A tenth of a second and more.
DEAR: dict[str, tuple[str, ...]] = {
    "profile": (
        "plot a.json -o out/p.svg", "plot b.json a.json -o out/p.svg", "plot a.json -o out/p.png",
        "plot a.json -o out/p.pdf", *(f"plot a.json -o out/p.svg --kind {kind}" for kind in KINDS), "python plot step",
    ),
    "suite": ("run own.toml --dry-run --out out/x.json", "run own.toml --dry-run --quick --out out/x.json"),
    "journal": ("run --resume --dry-run --out out/j.json",),
}  # fmt: skip


class Ran(NamedTuple):
    """What a command did."""

    words: str
    code: object
    printed: bytes
    complained: bytes
    error: BaseException | None
    warned: list[str]
    left: list[str]  # what it left otherwise than it was
    elapsed_s: float
    result: Any = None  # of the Python interface

    @property
    def is_refused(self) -> bool:
        """Whether it said that its input is not right."""
        return self.code == 2 or isinstance(self.code, str)


class TooLongError(BaseException):
    """A command did not end in its time. It is no Exception, so that no handler of the kit takes it for its own."""


def commands_for(kind: str, rng: random.Random, cheap: int, dear: float) -> list[str]:
    """Return the usual commands of a kind of subject, `cheap` others, and a dear one with this probability."""
    chosen = [*USUAL[kind], *rng.sample(CHEAP[kind], min(cheap, len(CHEAP[kind])))]
    return chosen + ([rng.choice(DEAR[kind])] if DEAR[kind] and rng.random() < dear else [])


def run(words: str, folder: Path) -> Ran:
    """Run a command in a folder; output is captured, and a command of `kit` may raise nothing but SystemExit."""
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    code, error, result = None, None, None
    is_python = words.startswith("python ")
    begin_s = time.perf_counter()
    with (
        contextlib.chdir(folder),
        mock.patch.object(sys, "argv", ["kit", *words.split()]),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        warnings.catch_warnings(record=True) as caught,
        _alarm(),
    ):
        warnings.simplefilter("always")
        before = _surroundings()
        try:
            if is_python:
                _, name, argument = words.split()
                result = PYTHON[name](argument)
            else:
                main()
        except SystemExit as end:
            code = end.code
        except kit.KitError as refusal:
            (error, code) = (None, str(refusal)) if is_python else (refusal, None)
        except BaseException as failure:
            error = failure
        finally:
            # What a command of its own process may switch, the Python interface may not.
            after = _surroundings()
            left = [name for name, value in before.items() if after[name] != value] if is_python else []
            _put_back(before)
            stdout.flush()
            stderr.flush()
    warned = [
        f"{item.category.__name__} at {Path(item.filename).name}:{item.lineno}: {item.message}" for item in caught
    ]
    elapsed_s = time.perf_counter() - begin_s
    return Ran(
        words, code, stdout.buffer.getvalue(), stderr.buffer.getvalue(), error, warned, left, elapsed_s, result
    )  # fmt: skip


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def over(*_: object) -> None:
        raise TooLongError(f"not done after {LIMIT_S} s")

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD, signal.SIGPIPE)


def _surroundings() -> dict[str, Any]:
    return {
        "current folder": Path.cwd(),
        "garbage collector": gc.isenabled(),
        "signals": {number: signal.getsignal(number) for number in SIGNALS},
        "locale": locale.setlocale(locale.LC_ALL),
        "environment": dict(os.environ),
        "sys.path": list(sys.path),
        "recursion limit": sys.getrecursionlimit(),
    }


def _put_back(before: dict[str, Any]) -> None:
    os.chdir(before["current folder"])
    (gc.enable if before["garbage collector"] else gc.disable)()
    for number, handler in before["signals"].items():
        signal.signal(number, handler)


def _compared(names: tuple[str, ...], metric: str) -> Any:
    compared = kit.load(*names).compare(metric=metric)
    return compared.to_columns(), str(compared), compared._repr_html_()


def _frame(level: str) -> Columns:
    loaded = kit.load("a.json")
    frame = loaded.to_dataframe(level)  # type: ignore[arg-type]
    assert len(frame.columns) == len(loaded.to_columns(level))  # type: ignore[arg-type]
    return loaded.to_columns(level)  # type: ignore[arg-type]


def _suite(file: str) -> str:
    """Return the plan of a suite as `kit suites` lists it: the whole of it, without looking for frameworks."""
    from kit.report.formats import write
    from kit.report.plan_report import suites_report
    from kit.runner.time_left import estimate
    from kit.suites.groups import plan_groups
    from kit.suites.plan import plan_cells
    from kit.suites.suite import load_suite

    suite = load_suite(f"./{file}")
    cells = plan_cells(suite)
    groups = plan_groups(cells, suite.compared, suite.baseline)
    time_left = estimate(cells, groups, suite.measure.share, suite.measure.plan(), suite.measure.rounds)
    return write(suites_report([(suite, cells, len(groups), time_left)]), "text")


def _table(file: str) -> None:
    from kit.suites.plan import requested_suite
    from kit.suites.run_request import RunRequest

    requested_suite(RunRequest(suite=f"./{file}", quick=True))


def _journal(file: str) -> None:
    """Read an unfinished run, as resuming it does, without comparing this machine with that of its begin."""
    from kit.profile.unfinished import UnfinishedRun
    from kit.runner.running import RunUnderWay

    kept = UnfinishedRun.reopen(Path(file))
    try:
        RunUnderWay(kept, kept.plan)
    finally:
        kept.close()


PYTHON: dict[str, Callable[[str], Any]] = {
    "columns": lambda level: kit.load("a.json").to_columns(level),  # type: ignore[arg-type]
    "frame": _frame,
    "compare": lambda metric: _compared(("a.json",), metric),
    "together": lambda metric: _compared(("b.json", "a.json"), metric),
    "plot": lambda metric: kit.load("a.json").compare(metric=metric).plot(),
    "suite": _suite,
    "table": _table,
    "journal": _journal,
}
