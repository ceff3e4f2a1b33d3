"""What profiles hold, as columns: the values of each name in a list, one for each cell, launch, block or step.

    level      a row is                       its numbers are
    cells      one cell of one profile        those of `kit compare --format csv`
    launches   one process that measured it   those of `kit show --format csv`
    blocks     one block of a launch          when it ran, its steps and times, and what its counters grew by
    steps      one raw step                   its time

Rounds and cycles are counted from 1. What was not measured is None. Times are in nanoseconds, as the names say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from kit.compare.comparison import Row
from kit.compare.sample import read_run
from kit.errors import KitError
from kit.extras import install_command
from kit.profile.cell import AXES, Cell
from kit.profile.schema import Blocks, Profile
from kit.profile.store import labeled_steps, launch_id, read_steps
from kit.report.profile import launch_record
from kit.report.records_and_cases import numbers

Level = Literal["cells", "launches", "blocks", "steps"]
OF_BLOCKS = tuple(name for name in Blocks.__struct_fields__ if name not in ("cycle", "counters"))


class Columns(dict[str, list[Any]]):
    """Lists of one length by name, which pandas.DataFrame, polars.DataFrame and, with pyarrow, pyarrow.table take."""

    @classmethod
    def of_rows(cls, rows: Iterable[Mapping[str, Any]]) -> Columns:
        """Return the columns of rows: every name that any row has, None where a row lacks it."""
        listed = list(rows)
        names = dict.fromkeys(name for row in listed for name in row)
        return cls({name: _alike([row.get(name) for row in listed]) for name in names})

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of pyarrow's table
        # Readers ask for this name and take the lists where it is missing.
        if name == "__arrow_c_stream__" and find_spec("pyarrow") is not None:
            import pyarrow

            return pyarrow.table(dict(self)).__arrow_c_stream__
        raise AttributeError(name)

    def to_dataframe(self) -> Any:  # noqa: ANN401 - of whichever library is installed
        """Return a pandas.DataFrame, or a polars.DataFrame where pandas is not installed.

        Raises:
            KitError: neither is installed.
        """
        for module in ("pandas", "polars"):
            if find_spec(module) is not None:
                from importlib import import_module

                return import_module(module).DataFrame(dict(self))
        raise KitError(f"pandas and polars are not installed; {install_command('notebook')}, or take to_columns()")


def _alike(values: list[Any]) -> list[Any]:
    """Return numbers of one type: polars takes no column of whole numbers and others."""
    has_floats = any(isinstance(value, float) for value in values)
    return [float(value) if type(value) is int else value for value in values] if has_floats else values


def columns_of(files: Iterable[tuple[str, Path, Profile]], level: Level) -> Columns:
    """Return the columns of profiles, each with its label and file.

    Raises:
        KitError: there is no such level, or raw steps are missing beside a profile.
    """
    if level == "steps":
        return _steps(files)
    if level not in _ROWS:
        raise KitError(f"{level!r} is not a level; give {', '.join([*_ROWS, 'steps'])}")
    rows = ((label, row) for label, _, profile in files for row in _ROWS[level](label, profile))
    return Columns.of_rows({"profile": label} | row for label, row in rows)


def _coordinates(cell: Cell) -> dict[str, Any]:
    return {axis: cell.value(axis) for axis in [*cell.parameters, *AXES]}


def _cells(label: str, profile: Profile) -> Iterator[dict[str, Any]]:
    for sample in read_run(label, profile).samples.values():
        row = Row(name=sample.name, member=sample.name, samples=[sample], metric="step_ns")
        failure = None if row.failure is None else row.failure.code
        yield {"cell": sample.cell_key, **_coordinates(sample.cell), **numbers(row), "failure": failure}


def _launches(_: str, profile: Profile) -> Iterator[dict[str, Any]]:
    for result in profile.cells:
        for launch in result.launches:
            ids = " ".join(launch.device_ids) or None
            yield launch_record(result, launch) | _coordinates(result.cell) | {"device_ids": ids}


def _blocks(_: str, profile: Profile) -> Iterator[dict[str, Any]]:
    for result in profile.cells:
        coordinates = {"cell": result.key, **_coordinates(result.cell)}
        for launch in result.launches:
            blocks = launch.blocks
            # Lists that only accelerators have are empty on a CPU.
            lists = {name: known for name in OF_BLOCKS if (known := getattr(blocks, name))} | blocks.counters
            for index, cycle in enumerate(blocks.cycle):
                yield {
                    **coordinates,
                    "group": launch.group,
                    "round": launch.round + 1,
                    "cycle": cycle + 1,
                    "step_ns": blocks.duration_ns[index] / blocks.steps[index],
                    **{name: values[index] for name, values in lists.items()},
                }


_ROWS: dict[str, Callable[[str, Profile], Iterator[dict[str, Any]]]] = {
    "cells": _cells,
    "launches": _launches,
    "blocks": _blocks,
}


def _steps(files: Iterable[tuple[str, Path, Profile]]) -> Columns:
    """Return raw steps, of which a profile has millions: whole lists are joined, and no row is made."""
    columns = Columns({name: [] for name in ("profile", "cell", "group", "round", "cycle", "kind", "step_ns")})
    for label, path, profile in files:
        steps = read_steps(path, profile)
        for result in profile.cells:
            for launch in result.launches:
                raw = steps.get(launch_id(launch))
                for cycle, kind, part in () if raw is None else labeled_steps(launch, raw):
                    number = None if cycle is None else cycle + 1
                    alike = (label, result.key, launch.group, launch.round + 1, number, kind)
                    for name, value in zip(columns, alike, strict=False):
                        columns[name].extend([value] * part.size)
                    columns["step_ns"].extend(part.tolist())
    return columns
