"""Programs measured from Python: each in fresh processes that take turns, as `kit run --program` measures them."""

from __future__ import annotations

import inspect
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kit.api.argument_types import checks_types
from kit.api.profiles import Profiles
from kit.api.sent_programs import send
from kit.errors import KitError
from kit.profile.cell import Task
from kit.suites.run_request import RunRequest, variants_given
from kit.suites.suite import VARIANT_NAME

ProgramToMeasure = str | Callable[..., Any]


@checks_types("programs", "batch", "variants")
def measure(
    programs: Mapping[str, ProgramToMeasure],
    *,
    rounds: int | None = None,
    until_precision_pct: float | None = None,
    budget_s: float | None = None,
    batch: int | Sequence[int] = (),
    device: str = "cpu",
    task: Task | None = None,
    threads: int | None = None,
    variants: Mapping[str, str] | None = None,
    energy_s: float | None = None,
    reuse_compiled: bool = False,
    quick: bool = False,
    label: str | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Profiles:
    """Measure programs against each other, and write their profile.

    A program is a function `program(batch, device)` that returns a step: ``file.py``, ``file.py:function``,
    ``package.module:function``, or the function itself, also one of a notebook. The page
    https://github.com/steadykit/steadykit/blob/main/docs/how-to/own-model.md has examples.

    Functions travel by cloudpickle, in files that only their user can read and that go when the run is complete.

    Args:
        programs: by the name that tables have.
        rounds: each starts every program anew; None: as many as `kit run` measures.
        until_precision_pct: measure until differences are known to so many percent, instead of `rounds`.
        budget_s: no round begins later.
        batch: samples a step, which a program gets; several are compared.
        device: "cpu", "gpu" or "tpu", which a program gets.
        task: that a table shows, or that a program with a parameter `task` gets; None: "train", or both.
        threads: of each framework; None: one for each usable CPU.
        variants: settings of each by its name, as ``{"old": "python=/envs/old/bin/python"}``; "" sets nothing.
        energy_s: seconds of the block for joules; 0: none; None: where a sensor answers.
        reuse_compiled: later rounds start from what the first one compiled.
        quick: fewer rounds, and shorter ones.
        label: of the run, in tables.
        out: the profile, or its folder; None: a new name in the working directory.
        force: replace the profile at `out`.

    Returns:
        The profile. Programs that failed are in it with their reason, which is printed, too.

    Raises:
        KitError: a program or an option that cannot be, in one line; nothing was measured.
        KeyboardInterrupt: the run was interrupted. What was finished is saved, and the line that resumes it printed.
    """
    from kit.cli import in_plain_words
    from kit.cli.run_and_selftest import as_typed, begin, say_failures
    from kit.cli.run_and_selftest import measure as measure_run
    from kit.profile.store import read_profile

    if threading.current_thread() is not threading.main_thread():
        raise KitError("kit.measure() handles signals, which only the main thread can; call it there")
    if not isinstance(programs, Mapping) or not programs:
        shown = "nothing" if not programs else getattr(programs, "__name__", None) or type(programs).__name__
        example = f'{{"{shown}": {shown}}}' if inspect.isroutine(programs) else '{"old": old, "new": new}'
        raise KitError(f"kit.measure() takes programs by their names, and got {shown}; give kit.measure({example})")
    batches = tuple(batch) if isinstance(batch, Sequence) else (batch,)
    if not all(type(size) is int for size in batches):
        raise KitError(f"batch is {batch!r}; give a whole number, or a list of them")
    if variants is not None and not isinstance(variants, Mapping):
        raise KitError(
            f'variants is {variants!r}; give a dictionary, as {{"old": "python=/envs/old/bin/python", "new": ""}}'
        )
    for name, program in programs.items():
        if not isinstance(name, str) or not VARIANT_NAME.fullmatch(name):
            raise KitError(f"{name!r} is not a name of a program; use letters, digits and . _ + -, such as compiled")
        if not (isinstance(program, str) or callable(program)):
            raise KitError(f"program {name} is a {type(program).__name__}; give a function, or FILE.py:FUNCTION")
    folder = Path(tempfile.mkdtemp(prefix="steadykit-"))  # which only the user can read
    is_finished = True
    try:
        sent = send({name: program for name, program in programs.items() if callable(program)}, folder)
        request = RunRequest(
            programs=tuple(f"{name}={sent.get(name, program)}" for name, program in programs.items()),
            rounds=rounds,
            precision_pct=until_precision_pct,
            budget_s=budget_s,
            batches=batches,
            devices=(device,),
            tasks=() if task is None else (task,),
            threads=() if threads is None else (threads,),
            variants=variants_given(f"{name}:{text}" if text else name for name, text in (variants or {}).items()),
            # Programs are compared with each other, in each batch.
            compare=("workload",) if len(programs) > 1 and not variants else (),
            energy_s=energy_s,
            reuse_compiled=reuse_compiled,
            quick=quick,
            label=label or "",
            out=os.fspath(out or ""),
            force=force,
        )
        try:
            request = as_typed(request)
        except click.ClickException as error:
            raise KitError(in_plain_words(error)) from None
        running = begin(request)
        is_finished = False
        profile = measure_run(running, request)
        is_finished = profile is not None and not profile.interrupted
    finally:
        # A run that is resumed needs its programs again.
        if is_finished:
            shutil.rmtree(folder, ignore_errors=True)
    say_failures(running)
    if profile is None:
        raise KeyboardInterrupt
    return Profiles([(running.path, read_profile(running.path))])
