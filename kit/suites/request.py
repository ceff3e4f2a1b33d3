"""What a run is asked for, and the suite that comes of it.

The command line, `kit launch`, `kit fleet`, the self-test and Python code each make a `RunRequest`.

RunRequest ─► requested_suite ─► Suite ─► plan
           └► to_argv ─► `kit run …` in a container or on a node ─► the same RunRequest
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field
from msgspec.structs import asdict, replace

from kit.backends.backend_catalog import FRAMEWORKS
from kit.backends.program.about import OWN_AXES
from kit.profile.cell import Feed, Task
from kit.profile.instruments import ClockChoice
from kit.suites.plan import DEFAULT_COMPILE_MODE, plan_cells
from kit.suites.program import program_file, programs_given
from kit.suites.suite import (
    DEFAULT_SUITE,
    FIELDS,
    QUICK_SUITE,
    VARIANT_NAME,
    Axes,
    Measure,
    Suite,
    SuiteError,
    VariantTable,
    load_suite,
    suite_file,
)
from kit.workloads.device_operations import OPERATIONS
from kit.workloads.workload_catalog import WORKLOADS, parameters_of

# A resumed run may have other values of these; everything else was decided when the run began.
FREE_WHEN_RESUMED = ("out", "force", "resume", "dry_run", "as_json", "budget_s", "quiet_s")
# Each value of these has its option anew, as a value may have commas.
REPEATED = ("programs", "parameters", "variants")
# Options that select among the cells of a suite's tables.
SELECTIONS = ("workloads", *FIELDS.values())
# Several values of these are compared unless something else is asked for; more workloads or tasks are more groups.
SWEPT = ("batch", "threads", "devices", "compile_mode", "feed", "precision")
# This is enough for the mean of steps that do not change over an epoch: half a minute where a step takes 0.3 s.
QUICK_FIT_STEPS = 50
# The best round of a ceiling counts: a second start shows whether the first was slow.
CEILING_ROUNDS = 2
# A comma begins the next setting of a variant only before one of these: values may have commas of their own.
_NEXT_SETTING = re.compile(r",(?=(?:python|image|env)=)")
_EXAMPLE = "for example --variant tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4"


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one run is asked for; in JSON each field has the name of its option.

    A field that is empty or null leaves the choice to the suite.
    """

    suite: str = field(name="SUITE", default="")  # a built-in name, or a .toml file
    backends: tuple[str, ...] = field(name="--backend", default=())
    workloads: tuple[str, ...] = field(name="--workload", default=())
    programs: tuple[str, ...] = field(name="--program", default=())  # my_model.py:function, or a module's
    devices: tuple[str, ...] = field(name="--device", default=())  # kinds: cpu, gpu, tpu
    device_counts: tuple[int, ...] = field(name="--devices", default=())  # that share a batch
    hosts: int = field(name="--hosts", default=1)  # of a Slurm allocation, which share the devices
    tasks: tuple[Task, ...] = field(name="--task", default=())
    batches: tuple[int, ...] = field(name="--batch", default=())  # samples
    parameters: dict[str, tuple[int, ...]] = field(name="--parameter", default_factory=dict)
    precisions: tuple[str, ...] = field(name="--dtype", default=())
    threads: tuple[int, ...] = field(name="--threads", default=())
    compile_modes: tuple[str, ...] = field(name="--compile-mode", default=())
    feeds: tuple[Feed, ...] = field(name="--feed", default=())
    variants: dict[str, VariantTable] = field(name="--variant", default_factory=dict)
    compare: tuple[str, ...] = field(name="--compare", default=())  # axes
    rounds: int | None = field(name="--rounds", default=None)
    precision_pct: float | None = field(name="--until-precision", default=None)  # of differences: measured until then
    budget_s: float | None = field(name="--budget", default=None)  # no round begins later
    quiet_s: float | None = field(name="--wait-for-quiet", default=None)  # to wait for it
    energy_s: float | None = field(name="--energy", default=None)  # of a long block; 0: no joules
    data: str = field(name="--data", default="auto")
    seed: int = field(name="--seed", default=0)
    clock: ClockChoice = field(name="--clock", default="monotonic_raw")
    label: str = field(name="--label", default="")
    ceilings: bool = field(name="--ceilings", default=False)
    reuse_compiled: bool = field(name="--reuse-compiled", default=False)  # in later rounds, what the first compiled
    out: str = field(name="--out", default="")  # the profile, or its folder
    force: bool = field(name="--force", default=False)
    resume: bool = field(name="--resume", default=False)
    names_only: bool = field(name="--env-names-only", default=False)  # of variables the profile has no values
    quick: bool = field(name="--quick", default=False)
    dry_run: bool = field(name="--dry-run", default=False)
    as_json: bool = field(name="--json", default=False)

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
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
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
OPTIONS = dict(zip(RunRequest.__struct_fields__, RunRequest.__struct_encode_fields__, strict=True))
OPTIONS |= {"no_energy": "--no-energy"}


def requested_suite(request: RunRequest) -> Suite:
    """Return the suite, in its quick form where that is asked for, with what is requested in place of what it says.

    Programs take the place of workloads.

    Raises:
        SuiteError: no such suite, an axis that there is not, or one that programs bring themselves.
    """
    suite = load_suite(request.suite_name)
    selected = {name: list(getattr(request, name)) for name in SELECTIONS if getattr(request, name)}
    tables = suite.axes
    if request.programs:
        for axis in ("workloads", *OWN_AXES):
            if axis in selected:
                raise SuiteError(f"a user program has its own {axis}; leave out {OPTIONS[axis]}")
        programs = programs_given(request.programs)
        selected |= OWN_AXES | {"workloads": list(programs)}
        tables = [replace(tables[0], parameters={})]
        suite = replace(suite, table=None, compare=[], baseline=None, programs=programs, folder="")
    elif request.quick and suite.quick.cells is not None:
        tables = suite.quick.cells if isinstance(suite.quick.cells, list) else [suite.quick.cells]
    for axis, values in selected.items():
        # A table has those of the values that are its own; where some value is in no table, each has all of them.
        narrowed = [[value for value in values if value in getattr(table, axis)] for table in tables]
        if not all(any(value in left for left in narrowed) for value in values):
            narrowed = [values for _ in tables]
        tables = [replace(table, **{axis: left}) for table, left in zip(tables, narrowed, strict=True) if left]
    measure = _quick(suite) if request.quick else suite.measure
    if request.energy_s is not None:
        measure = replace(measure, energy_s=request.energy_s)
    if request.rounds is not None:
        measure = replace(measure, rounds=request.rounds)
    name = suite.name if not request.quick or suite.name == QUICK_SUITE else f"{suite.name}-{QUICK_SUITE}"
    compared = list(request.compare) or ([] if request.variants else _swept(suite, request) or suite.compare)
    tables, variants = _with_parameters(tables, request.parameters), request.variants or suite.variants
    try:
        changed = replace(suite, name=name, cells=tables, compare=compared, variants=variants, measure=measure)
    except ValueError as error:
        raise SuiteError(f"{error}; `kit run --help` lists the options") from None
    if changed.baseline is not None and (selected or request.compare or request.variants or request.parameters):
        # Where no cell has the baseline any more, it is the first.
        left = {str(cell.value(axis)) for cell in plan_cells(changed) for axis in changed.compare}
        changed = changed if changed.baseline in left else replace(changed, baseline=None)
    return with_ceilings(changed) if request.ceilings else changed


def _swept(suite: Suite, request: RunRequest) -> list[str]:
    """Return the axes of which several values are requested and which the suite does not compare anyway."""
    values = {axis: getattr(request, FIELDS[axis]) for axis in SWEPT} | request.parameters
    several = [axis for axis in values if len(set(values[axis])) > 1 and axis not in suite.compared]
    return [] if suite.variants else several


def _with_parameters(tables: list[Axes], parameters: dict[str, tuple[int, ...]]) -> list[Axes]:
    """Return the tables with the parameters that their workloads have, and those that none has, to be refused."""
    parametric = {*WORKLOADS, *OPERATIONS}
    known = [
        {name for workload in table.workloads if workload in parametric for name in parameters_of(workload)}
        for table in tables
    ]
    unknown = set(parameters).difference(*known)
    return [
        replace(table, parameters=table.parameters | {n: [*v] for n, v in parameters.items() if n in here | unknown})
        for table, here in zip(tables, known, strict=True)
    ]


def _quick(suite: Suite) -> Measure:
    """Return a look in minutes at what the suite measures: fewer rounds, a part of a fit, what its own table says."""
    measure, quick = suite.measure, load_suite(QUICK_SUITE).measure
    general = {
        "rounds": min(measure.rounds, quick.rounds),
        "cycles": min(measure.cycles, quick.cycles),
        "energy_rounds": "last",
        "fit_rounds": 1,
        "fit_steps": min(measure.fit_steps or QUICK_FIT_STEPS, QUICK_FIT_STEPS),
        "share": measure.share or quick.share,
    }
    written = {name: value for name, value in asdict(suite.quick).items() if name != "cells" and value is not None}
    return replace(measure, **general | written)


def with_ceilings(suite: Suite) -> Suite:
    """Return the suite with every operation, in the precisions and on the devices, threads and variants of its cells.

    Programs name no framework: beside them every framework's operations are measured.
    """
    tables = [
        replace(
            axes,
            workloads=list(OPERATIONS),
            parameters={},
            tasks=["infer"],
            feeds=["device"],
            compile_modes=[DEFAULT_COMPILE_MODE],
            **({"backends": FRAMEWORKS, "precisions": ["float32"]} if suite.programs else {}),
        )
        for axes in suite.axes
        if not {*axes.workloads} <= OPERATIONS.keys() - suite.programs.keys()
    ]
    measure = replace(suite.measure, ceiling_rounds=suite.measure.ceiling_rounds or CEILING_ROUNDS)
    return replace(suite, cells=[*suite.axes, *tables], measure=measure) if tables else suite


def parameters_given(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the values of each parameter of ``units=64`` and ``units=32,64``.

    Raises:
        SuiteError: a text gives no whole numbers of 1 and more.
    """
    parameters: dict[str, tuple[int, ...]] = {}
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
            raise SuiteError(f"--variant {text!r}: the name is missing; give --variant NAME:env={text}, {_EXAMPLE}")
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


def _variant_text(name: str, table: VariantTable) -> str:
    """Return what `variants_given` reads as this variant."""
    settings = [f"{kind}={value}" for kind, value in (("python", table.python), ("image", table.image)) if value]
    settings += [f"env={variable}={value}" for variable, value in table.env.items()]
    text = f"{name}:{','.join(settings)}" if settings else name
    if table.slowdown_pct or len(_NEXT_SETTING.split(text.partition(":")[2])) > max(1, len(settings)):
        raise SuiteError(f"variant {name}: an option cannot say this; give it in the suite's file")
    return text
