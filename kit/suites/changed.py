"""A suite as the command line narrows or changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

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


def changed(
    suite: Suite,
    axes: dict[str, list[Any]],
    *,
    compare: list[str] | None = None,
    variants: dict[str, VariantTable] | None = None,
    programs: dict[str, ProgramTable] | None = None,
    parameters: dict[str, list[int]] | None = None,
    rounds: int | None = None,
    quick: bool = False,
) -> Suite:
    """Return `suite` as the command line narrows or changes it: what is given replaces the suite's own.

    Raises:
        SuiteError: a value that is not among an axis's choices, or an axis that is a program's own.
    """
    if programs:
        for axis in ("workloads", *OWN_AXES):
            if axes.get(axis):
                option = "dtype" if axis == "precisions" else axis.replace("_", "-").rstrip("s")
                raise SuiteError(f"a program brings its own {axis}: leave out --{option}")
        axes = axes | OWN_AXES | {"workloads": list(programs)}
        own = msgspec.structs.replace(suite.axes[0], parameters={})
        suite = msgspec.structs.replace(
            suite, cells=own, table=None, compare=[], baseline=None, programs=programs, folder=""
        )
    measure = _quick(suite) if quick else suite.measure
    name = suite.name if not quick or suite.name == QUICK_SUITE else f"{suite.name}-{QUICK_SUITE}"
    try:
        # Converted, not replaced: types and choices are checked as those of a file are.
        cells = suite.quick_axes if quick and not programs else suite.axes
        for axis, values in axes.items():
            cells = _narrowed(cells, axis, values) if values else cells
        cells = [_with_parameters(table, cells, parameters or {}) for table in cells]
    except msgspec.ValidationError as error:
        raise SuiteError(f"{error}; `kit run --help` lists the choices") from None
    try:
        new = msgspec.structs.replace(
            suite,
            name=name,
            cells=cells,
            compare=compare or ([] if variants else _swept(suite, axes, parameters or {}) or suite.compare),
            variants=variants or suite.variants,
            measure=measure if rounds is None else msgspec.structs.replace(measure, rounds=rounds),
        )
    except ValueError as error:
        raise SuiteError(f"{error}; `kit run --help` lists the options") from None
    is_narrowed = any(axes.values()) or bool(compare or variants or parameters)
    return _without_lost_baseline(new) if is_narrowed else new


def _swept(suite: Suite, axes: dict[str, list[Any]], parameters: dict[str, list[int]]) -> list[str]:
    """Return the axes of which the command line gives several values and which the suite does not compare anyway."""
    given = {**{axis: axes.get(option, []) for option, axis in SWEPT.items()}, **parameters}
    several = [axis for axis, values in given.items() if len(set(values)) > 1]
    return [] if suite.variants else [axis for axis in several if axis not in suite.compared]


def _without_lost_baseline(suite: Suite) -> Suite:
    """Return the suite compared with the first of its cells where none of them has its baseline any more."""
    cells = plan_cells(suite) if suite.baseline is not None else []
    lost = not any(str(cell.value(axis)) == suite.baseline for cell in cells for axis in suite.compare)
    return msgspec.structs.replace(suite, baseline=None) if lost else suite


def _narrowed(tables: list[Axes], axis: str, values: list[Any]) -> list[Axes]:
    """Return the tables with these values alone; where a table has none of them and others have all, without it."""
    own: list[list[Any]] = [getattr(table, axis) for table in tables]
    if all(any(value in have for have in own) for value in values):
        kept = [[value for value in values if value in have] for have in own]
    else:
        kept = [values for _ in tables]
    return [
        msgspec.convert(msgspec.to_builtins(table) | {axis: left}, Axes)
        for table, left in zip(tables, kept, strict=True)
        if left
    ]


def parameters_given(texts: Sequence[str]) -> dict[str, list[int]]:
    """Return the values of each parameter of ``units=64`` and ``units=32,64``.

    Raises:
        SuiteError: a text gives no whole numbers of 1 and more.
    """
    found: dict[str, list[int]] = {}
    for text in texts:
        name, _, values = text.partition("=")
        numbers = values.split(",")
        if not name or not all(one.isdecimal() and int(one) > 0 for one in numbers):
            raise SuiteError(f"--parameter {text!r}: give whole numbers of 1 and more, as units=64 or units=32,64")
        found.setdefault(name, []).extend(map(int, numbers))
    return found


def _with_parameters(table: Axes, tables: list[Axes], given: dict[str, list[int]]) -> Axes:
    """Return the table with the parameters that its workloads have; and with those that nobody has, to be refused."""

    def has(own: Axes, name: str) -> bool:
        return any(name in parameters_of(workload) for workload in own.workloads if workload in WORKLOADS)

    wanted = {
        name: values
        for name, values in given.items()
        if has(table, name) or not any(has(other, name) for other in tables)
    }
    return msgspec.structs.replace(table, parameters=table.parameters | wanted)


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
    return msgspec.structs.replace(measure, **general | suite.quick.measure())
