"""A suite as the options of `kit run` narrow or change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kit.backends.program.about import OWN_AXES
from kit.suites.plan import plan_cells
from kit.suites.suite import QUICK_SUITE, Axes, Measure, ProgramTable, Suite, SuiteError, VariantTable, load_suite
from kit.workloads.catalog import WORKLOADS, parameters_of

# Of a fit: enough for the mean of steps that do not change over an epoch, and half a minute where they take 0.3 s.
QUICK_FIT_STEPS = 50

# Options of several values that are compared unasked, each with its axis; more workloads or tasks are more groups.
SWEPT = {
    "batches": "batch",
    "threads": "threads",
    "compile_modes": "compile_mode",
    "feeds": "feed",
    "precisions": "precision",
}


def apply_options(
    suite: Suite,
    axes: Mapping[str, list[Any]],
    *,
    compare: Sequence[str] = (),
    variants: dict[str, VariantTable] | None = None,
    programs: dict[str, ProgramTable] | None = None,
    parameters: Mapping[str, list[int]] | None = None,
    rounds: int | None = None,
    quick: bool = False,
) -> Suite:
    """Return `suite` with what is given in place of what its file says.

    Args:
        suite: as its file has it.
        axes: field of `Axes` -> values, of the types that it has; an empty list is not given.
        compare: axes to compare over.
        variants: by name.
        programs: by name, in place of workloads.
        parameters: parameter of a network -> values.
        rounds: how many.
        quick: whether its quick form is measured.

    Raises:
        SuiteError: an axis that there is not, or one that programs bring themselves.
    """
    axes = {axis: values for axis, values in axes.items() if values}
    parameters = parameters or {}
    tables = suite.quick_axes if quick and not programs else suite.axes
    if programs:
        _refuse_axes_of_programs(axes)
        axes |= OWN_AXES | {"workloads": list(programs)}
        tables = [replace(tables[0], parameters={})]
        suite = replace(suite, table=None, compare=[], baseline=None, programs=programs, folder="")
    for axis, values in axes.items():
        tables = _narrowed(tables, axis, values)
    measure = _quick(suite) if quick else suite.measure
    compared = compare or ([] if variants else _swept(suite, axes, parameters) or suite.compare)
    try:
        changed = replace(
            suite,
            name=suite.name if not quick or suite.name == QUICK_SUITE else f"{suite.name}-{QUICK_SUITE}",
            cells=_with_parameters(tables, parameters),
            compare=list(compared),
            variants=variants or suite.variants,
            measure=measure if rounds is None else replace(measure, rounds=rounds),
        )
    except ValueError as error:
        raise SuiteError(f"{error}; `kit run --help` lists the options") from None
    is_narrowed = bool(axes or compare or variants or parameters)
    return _without_lost_baseline(changed) if is_narrowed else changed


def _refuse_axes_of_programs(axes: Mapping[str, list[Any]]) -> None:
    for axis in ("workloads", *OWN_AXES):
        if axis in axes:
            option = "dtype" if axis == "precisions" else axis.replace("_", "-").rstrip("s")
            raise SuiteError(f"a program brings its own {axis}: leave out --{option}")


def _swept(suite: Suite, axes: Mapping[str, list[Any]], parameters: Mapping[str, list[int]]) -> list[str]:
    """Return the axes of which the command line gives several values and which the suite does not compare anyway."""
    values = {axis: axes.get(option, []) for option, axis in SWEPT.items()} | dict(parameters)
    several = [axis for axis in values if len(set(values[axis])) > 1 and axis not in suite.compared]
    return [] if suite.variants else several


def _without_lost_baseline(suite: Suite) -> Suite:
    """Return the suite compared with the first of its cells where none of them has its baseline any more."""
    cells = plan_cells(suite) if suite.baseline is not None else []
    is_there = any(str(cell.value(axis)) == suite.baseline for cell in cells for axis in suite.compare)
    return suite if is_there else replace(suite, baseline=None)


def _narrowed(tables: list[Axes], axis: str, values: list[Any]) -> list[Axes]:
    """Return the tables with these values alone; where a table has none of them and others have all, without it."""
    kept = [[value for value in values if value in getattr(table, axis)] for table in tables]
    if not all(any(value in left for left in kept) for value in values):
        kept = [values for _ in tables]
    return [replace(table, **{axis: left}) for table, left in zip(tables, kept, strict=True) if left]


def _with_parameters(tables: list[Axes], parameters: Mapping[str, list[int]]) -> list[Axes]:
    """Return the tables with the parameters that their workloads have, and those that none has, to be refused."""
    known = [
        {name for workload in table.workloads if workload in WORKLOADS for name in parameters_of(workload)}
        for table in tables
    ]
    everywhere = set(parameters).difference(*known)
    return [
        replace(table, parameters=table.parameters | {n: v for n, v in parameters.items() if n in here | everywhere})
        for table, here in zip(tables, known, strict=True)
    ]


def _quick(suite: Suite) -> Measure:
    """Return a look in minutes at what the suite measures: fewer rounds, a part of a fit, what its own table says."""
    measure, quick = suite.measure, load_suite(QUICK_SUITE).measure
    general = {
        "rounds": min(measure.rounds, quick.rounds),
        "cycles": min(measure.cycles, quick.cycles),
        "energy_s": 0.0,
        "fit_rounds": 1,
        "fit_steps": min(measure.fit_steps or QUICK_FIT_STEPS, QUICK_FIT_STEPS),
        "share": measure.share or quick.share,
    }
    return replace(measure, **general | suite.quick.measure())


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
            raise SuiteError(f"--parameter {text!r}: give whole numbers of 1 and more, as units=64 or units=32,64")
        parameters.setdefault(name, []).extend(map(int, numbers))
    return parameters
