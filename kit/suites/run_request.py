"""What a run is asked for.

The command line, `kit launch`, `kit fleet`, the self-test and Python code each make a `RunRequest`.

RunRequest ─► `kit.suites.plan`: Plan
           └► to_argv ─► `kit run …` in a container or on a node ─► the same RunRequest
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from kit.devices import DEVICES
from kit.option import TypedRequest, flag, option, options_of, several
from kit.printable import printable_line
from kit.profile.cell import Feed, Task
from kit.profile.fields import BATCH_MAX, CPU_MAX, PRECISION_MAX_PCT, ROUNDS_MAX, YEAR_NS
from kit.profile.instruments import ClockChoice
from kit.suites.programs import program_file
from kit.suites.suite import DEFAULT_SUITE, QUICK_SUITE, VARIANT_NAME, SuiteError, VariantTable, suite_file

# What every framework takes for a seed.
SEED_MAX = 2**31 - 1
# No run takes a year.
SECONDS_MAX = YEAR_NS // 10**9
# Who allows more allows anything.
ALLOWED_MAX_PCT = 1e6
# Longer names make rows of a table that nobody reads.
LABEL_MAX = 60
PRECISIONS = ("float32", "bfloat16", "tf32", "default")
# A resumed run may have other values of these; everything else was decided when the run began.
FREE_WHEN_RESUMED = ("out", "force", "resume", "dry_run", "as_json", "budget_s", "quiet_s", "allowed_pct")
# Each value of these has its option anew, as a value may have commas.
REPEATED = ("programs", "commands", "serve", "parameters", "variants")
# These name code that runs, or what of it counts.
OF_COMMANDS = ("commands", "serve", "figure", "better", "unit", "prepare", "shell", "ignore_failure")
# A comma begins the next setting of a variant only before one of these: values may have commas of their own.
_NEXT_SETTING = re.compile(r",(?=(?:python|image|env)=)")
_SETTING = re.compile(r"(?:python|image|env)=")
_EXAMPLE = "for example --variant tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4"

Names = tuple[str, ...]
Counts = tuple[int, ...]


def label_given(text: str) -> str:
    """Return the label. ValueError where it is long, or no line."""
    if len(text) > LABEL_MAX or text != printable_line(text):
        raise ValueError(f"give one line of at most {LABEL_MAX} printable characters")
    return text


def parameters_given(texts: Sequence[str]) -> dict[str, Counts]:
    """Return the values of each parameter of ``units=64`` and ``units=32,64``.

    Raises:
        SuiteError: a text gives no whole numbers of 1 and more.
    """
    parameters: dict[str, Counts] = {}
    for text in texts:
        name, _, values = text.partition("=")
        numbers = values.split(",")
        if not name or not all(number.isdecimal() and int(number) > 0 for number in numbers):
            raise SuiteError(f"--parameter {text!r}: give whole numbers of 1 or more, such as units=64 or units=32,64")
        parameters[name] = (*parameters.get(name, ()), *map(int, numbers))
    return parameters


def variants_given(texts: Iterable[str]) -> dict[str, VariantTable]:
    """Return the variants of ``NAME`` and ``NAME:python=/envs/new/bin/python,env=OMP_WAIT_POLICY=active`` by name.

    Raises:
        SuiteError: a name twice, or a text that names no variant.
    """
    variants: dict[str, VariantTable] = {}
    for text in texts:
        name, colon, settings = text.partition(":")
        if not colon and "=" in name:
            setting = name.lstrip("=")
            setting = setting if _SETTING.match(setting) else f"env={setting}"
            raise SuiteError(f"--variant {text!r}: the name is missing; give --variant NAME:{setting}, {_EXAMPLE}")
        if not name:
            raise SuiteError(f"--variant {text!r}: the name is missing; give --variant NAME{text}, {_EXAMPLE}")
        if not VARIANT_NAME.fullmatch(name):
            raise SuiteError(f"--variant {text!r}: {name!r} is not a name; use letters, digits and . _ + -, {_EXAMPLE}")
        if name in variants:
            raise SuiteError(f"--variant {name}: two variants have this name; rename one")
        given: dict[str, str] = {}
        env: dict[str, str] = {}
        for setting in _NEXT_SETTING.split(settings) if settings else []:
            kind, _, value = setting.partition("=")
            variable, equals, content = value.partition("=")
            if kind in ("python", "image") and value:
                given[kind] = value
            elif kind == "env" and variable and equals:
                env[variable] = content
            else:
                sets = "give python=PATH, image=NAME or env=NAME=VALUE"
                raise SuiteError(f"--variant {text!r}: {setting!r} is not a setting; {sets}, {_EXAMPLE}")
        if len(given) > 1:
            raise SuiteError(f"--variant {text!r}: an image has its own Python; give either python or image")
        variants[name] = VariantTable(python=given.get("python"), image=given.get("image"), env=env)
    if list(variants.values()) == [VariantTable()]:
        raise SuiteError(f"--variant {name} sets nothing and is the only variant; give it a setting, {_EXAMPLE}")
    return variants


class RunRequest(TypedRequest):
    """What one run is asked for. A field that is empty or null leaves the choice to the suite."""

    suite: str = option("SUITE", usual="")  # a built-in name, or a .toml file
    backends: Names = several("--backend", "Measure only this framework; several are compared (repeatable).", "NAME,…")
    workloads: Names = several("--workload", "Measure this network, not the suite's (repeatable).", "NAME,…")
    programs: Names = several(
        "--program", "Measure a user program: your own network (repeatable).", "[NAME=]FILE.py[:FUNCTION]", read=tuple
    )
    commands: Names = several(
        "--command", "Measure a command: a step is one run of it (repeatable).", "[NAME=]WORDS", read=tuple
    )
    serve: Names = several(
        "--serve", "Start a server for the command NAME in each round; {port} is a free port.", "NAME=WORDS", read=tuple
    )
    figure: str = option(
        "--figure", "Compare what commands print: a pattern with one group, or json:PATH.", "PATTERN", usual=""
    )
    better: Literal["less", "more"] | None = option("--better", "Which figure is better (default: less).")
    unit: str = option("--unit", "Unit of the figure.", "TEXT", read=label_given, usual="")
    prepare: str = option("--prepare", "Run this before each run of a command, outside of its time.", "WORDS", usual="")
    warmup_runs: int | None = option("--warmup-runs", "Run each command N times before it counts.", "N", 1, ROUNDS_MAX)
    shell: bool = flag("--shell", "Run commands by /bin/sh.")
    ignore_failure: str = option("--ignore-failure", "Accept these exit codes, or all.", "CODE,…", usual="")
    devices: Names = several("--device", "Measure on this kind of device.", choices=tuple(DEVICES))
    device_counts: Counts = several(
        "--devices", "Number of devices that share a batch; several values are compared.", "N,…", 1, CPU_MAX
    )
    hosts: int = option("--hosts", "Divide --devices over N hosts of this Slurm allocation.", "N", 1, CPU_MAX, usual=1)
    tasks: tuple[Task, ...] = several("--task", "Measure only this task (repeatable).")
    batches: Counts = several("--batch", "Samples per step; several values are compared.", "N,…", 1, BATCH_MAX)
    parameters: Mapping[str, Counts] = option(
        "--parameter",
        "Set a parameter of the network, such as units=64 (repeatable).",
        "NAME=N,…",
        read=parameters_given,
        usual=MappingProxyType({}),
    )
    precisions: Names = several("--dtype", "Set the numeric precision (axis `precision`).", choices=PRECISIONS)
    threads: Counts = several("--threads", "Number of threads; several values are compared.", "N,…", 1, CPU_MAX)
    compile_modes: Names = several(
        "--compile-mode", "Choose graph, xla, eager, jit, compile, reduce-overhead or max-autotune.", "MODE,…"
    )
    feeds: tuple[Feed, ...] = several("--feed", "Keep batches on the device, or copy each.", choices=("device", "host"))
    variants: Mapping[str, VariantTable] = option(
        "--variant",
        "Compare a variant; SET: python=PATH, image=NAME or env=NAME=VALUE (repeatable).",
        "NAME:SET",
        read=variants_given,
        usual=MappingProxyType({}),
    )
    compare: Names = several("--compare", "Compare over this axis (repeatable).", "AXIS,…")
    rounds: int | None = option("--rounds", "Measure N rounds; each starts every cell anew.", "N", 1, ROUNDS_MAX)
    precision_pct: float | None = option(
        "--until-precision", "Measure until differences are known to PCT %.", "PCT", above=0, most=PRECISION_MAX_PCT
    )
    budget_s: float | None = option(
        "--budget", "Start no round after S seconds; the first runs to its end.", "S", above=0, most=SECONDS_MAX
    )
    quiet_s: float | None = option(
        "--wait-for-quiet", "Wait up to S seconds for other programs to stop.", "S", above=0, most=SECONDS_MAX
    )
    energy_s: float | None = option(
        "--energy",
        "Measure joules in a block of S seconds, or longer if a sensor needs it. An external meter needs it.",
        "S",
        above=0,
        most=SECONDS_MAX,
        off="Skip the energy blocks; the run is shorter.",
    )
    allowed_pct: float | None = option(
        "--fail-if-slower",
        "Exit 1 if a row is more than PCT slower in two runs, 5 if unresolved; the second only where it decides.",
        "PCT",
        least=0,
        most=ALLOWED_MAX_PCT,
    )
    data: str = option(
        "--data", "Data set; auto: the set of each network, else synthetic.", "NAME", shows_default=True, usual="auto"
    )
    seed: int = option(
        "--seed", "Seed for weights, data and order.", least=0, most=SEED_MAX, shows_default=True, usual=0
    )
    clock: ClockChoice = option("--clock", "Use this clock to time steps.", shows_default=True, usual="monotonic_raw")
    label: str = option(
        "--label", "Name the run in tables (default: its file name).", "TEXT", read=label_given, usual=""
    )
    ceilings: bool = flag("--ceilings", "Also measure peak throughput; report networks as a percentage of it.")
    reuse_compiled: bool = flag("--reuse-compiled", "Compile in the first round; later rounds reuse that.")
    names_only: bool = flag("--env-names-only", "Record names of environment variables, without their values.")
    out: str = option("--out", "Write the profile to this file or folder.", "PATH", usual="")
    force: bool = flag("--force", "Replace the profile at --out.")
    resume: bool = flag("--resume", "Resume the unfinished run of --out.")
    quick: bool = flag("--quick", "Measure fewer rounds and part of each fit; SUITE defaults to quick.")
    dry_run: bool = flag("--dry-run", "Print cells, groups and the estimated time; measure nothing.")
    as_json: bool = flag("--json", "Print the outcome as JSON.")

    @property
    def suite_name(self) -> str:
        """The name or file of the suite: the quick form of the default has a name of its own."""
        name = self.suite or DEFAULT_SUITE
        return QUICK_SUITE if self.quick and name == DEFAULT_SUITE else name

    @property
    def files(self) -> list[Path]:
        """The files that it names: of the suite and of programs."""
        named = [suite_file(self.suite), *map(program_file, self.programs)]
        return [file for file in named if file is not None]

    def typed(self) -> dict[str, Any]:
        """Return each field's value as it is typed: lists of words, numbers, text, or whether a flag is given."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        values["parameters"] = [f"{name}={','.join(map(str, given))}" for name, given in self.parameters.items()]
        values["variants"] = [_variant_text(name, table) for name, table in self.variants.items()]
        return values | {"no_energy": self.energy_s == 0, "energy_s": self.energy_s or None}

    def decided(self) -> dict[str, Any]:
        """Return the values, by option, that a run keeps until its end, however often it is resumed."""
        return {OPTIONS[name]: value for name, value in self.typed().items() if name not in FREE_WHEN_RESUMED}

    def to_argv(self) -> list[str]:
        """Return the words after `kit run` that make this request.

        Raises:
            SuiteError: a variant injects a delay or has a value that no option can say.
        """
        usual, words = RunRequest().typed(), [self.suite] if self.suite else []
        for name, value in self.typed().items():
            if value == usual[name] or name == "suite":
                continue
            if value is True:
                words.append(OPTIONS[name])
            elif name in REPEATED:
                words += [word for text in value for word in (OPTIONS[name], text)]
            else:
                words += [OPTIONS[name], ",".join(map(str, value)) if isinstance(value, list) else str(value)]
        return words


# The option of each field; no joules are 0 s of them.
OPTIONS = {name: option.flag for name, option in options_of(RunRequest).items()}
OPTIONS |= {"no_energy": "--no-energy"}


def _variant_text(name: str, table: VariantTable) -> str:
    """Return what `variants_given` reads as this variant."""
    settings = [f"{kind}={value}" for kind, value in (("python", table.python), ("image", table.image)) if value]
    settings += [f"env={variable}={value}" for variable, value in table.env.items()]
    text = f"{name}:{','.join(settings)}" if settings else name
    if table.slowdown_pct or len(_NEXT_SETTING.split(text.partition(":")[2])) > max(1, len(settings)):
        raise SuiteError(f"variant {name}: an option cannot say this; give it in the suite's file")
    return text
