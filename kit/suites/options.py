"""A suite as the options of `kit run` narrow or change it, and how these name variants and parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from kit.backends.program.about import OWN_AXES
from kit.suites.plan import plan_cells
from kit.suites.suite import (
    FIELDS,
    QUICK_SUITE,
    VARIANT_NAME,
    Axes,
    Measure,
    ProgramTable,
    Suite,
    SuiteError,
    VariantTable,
    load_suite,
)
from kit.workloads.catalog import WORKLOADS, parameters_of
from kit.workloads.operations import OPERATIONS

# Of a fit: enough for the mean of steps that do not change over an epoch, and half a minute where they take 0.3 s.
QUICK_FIT_STEPS = 50

# Options of several values that are compared unasked; more workloads or tasks are more groups.
SWEPT = ("batch", "threads", "devices", "compile_mode", "feed", "precision")
# A comma begins the next setting of a variant only before one: values may have commas of their own.
_NEXT_SETTING = re.compile(r",(?=(?:python|image|env)=)")
_EXAMPLE = "for example --variant tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4"


def apply_options(
    suite: Suite,
    axes: Mapping[str, list[Any]],
    *,
    compare: Sequence[str] = (),
    variants: dict[str, VariantTable] | None = None,
    programs: dict[str, ProgramTable] | None = None,
    parameters: Mapping[str, list[int]] | None = None,
    rounds: int | None = None,
    energy_s: float | None = None,
    quick: bool = False,
) -> Suite:
    """Return `suite`, or its `quick` form, with what is given in place of what its file says.

    `axes` holds values by the field of `Axes`, of the types that it has; an empty list is not given. Programs take the
    place of workloads.

    Raises:
        SuiteError: an axis that there is not, or one that programs bring themselves.
    """
    axes = {axis: values for axis, values in axes.items() if values}
    parameters = parameters or {}
    tables = suite.axes
    if programs:
        for axis in ("workloads", *OWN_AXES):
            if axis in axes:
                option = "dtype" if axis == "precisions" else axis.replace("_", "-").rstrip("s")
                raise SuiteError(f"a user program has its own {axis}; leave out --{option}")
        axes |= OWN_AXES | {"workloads": list(programs)}
        tables = [replace(tables[0], parameters={})]
        suite = replace(suite, table=None, compare=[], baseline=None, programs=programs, folder="")
    elif quick and suite.quick.cells is not None:
        tables = suite.quick.cells if isinstance(suite.quick.cells, list) else [suite.quick.cells]
    for axis, values in axes.items():
        tables = _narrowed(tables, axis, values)
    measure = _quick(suite) if quick else suite.measure
    if energy_s is not None:
        measure = replace(measure, energy_s=energy_s)
    compared = compare or ([] if variants else _swept(suite, axes, parameters) or suite.compare)
    try:
        changed = replace(
            suite,
            name=f"{suite.name}-{QUICK_SUITE}" if quick and suite.name != QUICK_SUITE else suite.name,
            cells=_with_parameters(tables, parameters),
            compare=list(compared),
            variants=variants or suite.variants,
            measure=measure if rounds is None else replace(measure, rounds=rounds),
        )
    except ValueError as error:
        raise SuiteError(f"{error}; `kit run --help` lists the options") from None
    if changed.baseline is None or not (axes or compare or variants or parameters):
        return changed
    # Where no cell has the baseline any more, it is the first.
    left = {str(cell.value(axis)) for cell in plan_cells(changed) for axis in changed.compare}
    return changed if changed.baseline in left else replace(changed, baseline=None)


def _swept(suite: Suite, axes: Mapping[str, list[Any]], parameters: Mapping[str, list[int]]) -> list[str]:
    """Return the axes of which the command line gives several values and which the suite does not compare anyway."""
    values = {axis: axes.get(FIELDS[axis], []) for axis in SWEPT} | dict(parameters)
    several = [axis for axis in values if len(set(values[axis])) > 1 and axis not in suite.compared]
    return [] if suite.variants else several


def _narrowed(tables: list[Axes], axis: str, values: list[Any]) -> list[Axes]:
    """Return the tables with these values alone; where a table has none of them and others have all, without it."""
    kept = [[value for value in values if value in getattr(table, axis)] for table in tables]
    if not all(any(value in left for left in kept) for value in values):
        kept = [values for _ in tables]
    return [replace(table, **{axis: left}) for table, left in zip(tables, kept, strict=True) if left]


def _with_parameters(tables: list[Axes], parameters: Mapping[str, list[int]]) -> list[Axes]:
    """Return the tables with the parameters that their workloads have, and those that none has, to be refused."""
    known_names = {*WORKLOADS, *OPERATIONS}
    known = [
        {name for workload in table.workloads if workload in known_names for name in parameters_of(workload)}
        for table in tables
    ]
    unknown = set(parameters).difference(*known)
    return [
        replace(table, parameters=table.parameters | {n: v for n, v in parameters.items() if n in here | unknown})
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
    of_suite = {name: value for name, value in asdict(suite.quick).items() if name != "cells" and value is not None}
    return replace(measure, **general | of_suite)


def parameters_given(texts: Sequence[str]) -> dict[str, list[int]]:
    """Return the values of each parameter of ``units=64`` and ``units=32,64``.

    Raises:
        SuiteError: a text gives no whole numbers of 1 and more.
    """
    parameters: dict[str, list[int]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        numbers = values.split(",")
        if not name or not all(number.isdecimal() and int(number) > 0 for number in numbers):
            raise SuiteError(f"--parameter {text!r}: give whole numbers of 1 or more, such as units=64 or units=32,64")
        parameters.setdefault(name, []).extend(map(int, numbers))
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
        variants[name] = _table(text, settings)
    if list(variants.values()) == [VariantTable()]:
        raise SuiteError(f"--variant {name} sets nothing and is the only variant; give it a setting, {_EXAMPLE}")
    return variants


def _table(text: str, settings: str) -> VariantTable:
    given: dict[str, str] = {}
    env: dict[str, str] = {}
    for setting in _NEXT_SETTING.split(settings) if settings else []:
        kind, _, value = setting.partition("=")
        name, equals, content = value.partition("=")
        if kind in ("python", "image") and value:
            given[kind] = value
        elif kind == "env" and name and equals:
            env[name] = content
        else:
            sets = "give python=PATH, image=NAME or env=NAME=VALUE"
            raise SuiteError(f"--variant {text!r}: {setting!r} is not a setting; {sets}, {_EXAMPLE}")
    if len(given) > 1:
        raise SuiteError(f"--variant {text!r}: an image has its own Python; give either python or image")
    return VariantTable(python=given.get("python"), image=given.get("image"), env=env)
