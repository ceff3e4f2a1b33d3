"""Profiles in Python: read, as frames, and compared.

profiles = kit.load("before.json", "after.json")
profiles.to_dataframe("blocks")                 a pandas or polars frame
profiles.compare(metric="latency")              the table of `kit compare`, in a notebook as HTML
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.api.argument_types import check_zeros, checks_types
from kit.cli.compare_and_audit import CompareRequest, check_measured, compared, titles_of
from kit.cli.options import labelled_profiles, labels_of, profile_files, read_meter
from kit.compare.metrics import metric_named
from kit.compare.rows import Comparison
from kit.distribution import need
from kit.errors import KitError
from kit.profile.schema import Profile
from kit.profile.store import read_profile
from kit.report.comparison_report import comparison_report
from kit.report.formats import write
from kit.report.records import Columns, Level, columns_of, records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AxisNames = str | Sequence[str]


@contextmanager
def _without_collector() -> Iterator[None]:
    """Do without Python's search for cycles of objects, as `kit.cli.options` does, and leave it as it was."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def load(*paths: str | os.PathLike[str]) -> Profiles:
    """Read profiles; a folder stands for the profiles in it.

    Raises:
        KitError: a file cannot be read, or is no profile of this schema.
    """
    if not paths:
        raise KitError("kit.load() names no profile; give files that `kit run` wrote, or folders of them")
    if wrong := [path for path in paths if not isinstance(path, (str, os.PathLike))]:
        raise KitError(f"kit.load() got {wrong[0]!r}; give paths, as kit.load(*paths)")
    for path in paths:
        check_zeros("a path of kit.load()", path)
    return Profiles([(path, read_profile(path)) for path in profile_files(map(Path, paths))])


class Profiles(Sequence[Profile]):
    """Profiles that were read, in order. An item is the profile as its schema has it (docs/reference/profile.md)."""

    def __init__(self, files: Sequence[tuple[Path, Profile]]) -> None:
        self.paths = [path.absolute() for path, _ in files]
        self.labels = labels_of(self.paths)  # the files' names, as tables have them
        self._profiles = [profile for _, profile in files]

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as of any sequence
        if isinstance(index, slice):
            return Profiles(list(zip(self.paths, self._profiles, strict=True))[index])
        return self._profiles[index]

    def __len__(self) -> int:
        return len(self._profiles)

    def __iter__(self) -> Iterator[Profile]:
        return iter(self._profiles)

    def __repr__(self) -> str:
        return f"<kit.Profiles {', '.join(self.labels)}>"

    @checks_types()
    def to_columns(self, level: Level = "cells") -> Columns:
        """Return what they hold as lists by name: a row for each of "cells", "launches", "blocks" or "steps".

        Raises:
            KitError: there is no such level, or the file of raw steps is missing.
        """
        return columns_of(zip(self.labels, self.paths, self._profiles, strict=True), level)

    @checks_types()
    def to_dataframe(self, level: Level = "cells") -> Any:  # noqa: ANN401 - of whichever library is installed
        """Return `to_columns` as a pandas.DataFrame, or as polars.DataFrame where pandas is not installed.

        Raises:
            KitError: as `to_columns`, or neither library is installed.
        """
        return self.to_columns(level).to_dataframe()

    @checks_types()
    @_without_collector()
    def compare(
        self,
        *,
        rows: AxisNames = (),
        columns: AxisNames = (),
        split: AxisNames = (),
        metric: str = "",
        baseline: str | None = None,
        filter: str | None = None,
        meter: str | os.PathLike[str] | Sequence[str] | None = None,
        meter_zone: str = "",
        meter_column: AxisNames = (),
    ) -> Compared:
        """Compare the cells of one profile, or each cell of several with the same cell of the first.

        Args:
            rows: axes of which each value is a row, such as "batch"; with `columns` and `split` as of `kit compare`.
            columns: axes whose values are compared side by side.
            split: axes of which each value has a table.
            metric: a column of `kit compare --format csv` that has a verdict, such as "latency"; empty: the step,
                or the figure of commands.
            baseline: the row, profile or platform to compare with; None: the groups' own, or the first.
            filter: keep these cells, such as "backend=torch,jax batch>=64".
            meter: logs of power, whose joules replace those of the machine's own sensors.
            meter_zone: of times in a log that do not say theirs, such as "Europe/Berlin"; "run": that of the machine.
            meter_column: columns, GPUs or rails of a log that are added up.

        Raises:
            KitError: nothing has an axis or a name that was given or the metric, or none of it may be compared.
        """
        from kit.compare.compare import OF_MANY_RUNS

        rows, columns, split = ((axes,) if isinstance(axes, str) else tuple(axes) for axes in (rows, columns, split))
        for path, profile in zip(self.paths, self._profiles, strict=True):
            if read_profile(path).digest != profile.digest:
                raise KitError(f"{path} has changed since it was loaded; load it again")
        request = CompareRequest(
            profiles=tuple(self.paths),
            rows=rows,
            columns=columns,
            split=split,
            baseline=baseline,
            terms=filter,
            meter_files=tuple(map(Path, (meter,) if isinstance(meter, str | os.PathLike) else meter or ())),
            meter_zone=meter_zone,
            meter_columns=(meter_column,) if isinstance(meter_column, str) else tuple(meter_column),
        )
        comparison = compared(request, metric_named(metric).name if metric else "", OF_MANY_RUNS)
        check_measured(comparison)
        return Compared(self, comparison, request)


class Compared:
    """Rows with their numbers and verdicts; a notebook shows them as tables.

    Attributes:
        comparison: everything behind the tables (`kit.compare.rows`).
    """

    def __init__(self, profiles: Profiles, comparison: Comparison, request: CompareRequest) -> None:
        self.comparison = comparison
        self._profiles, self._request = profiles, request

    def to_columns(self) -> Columns:
        """Return a row for each row of the tables, with the names of `kit compare --format csv`."""
        return Columns.of_rows(records(self.comparison))

    def to_dataframe(self) -> Any:  # noqa: ANN401 - of whichever library is installed
        """Return `to_columns` as a pandas.DataFrame, or as polars.DataFrame where pandas is not installed.

        Raises:
            KitError: neither library is installed.
        """
        return self.to_columns().to_dataframe()

    @checks_types()
    def plot(self, kind: str | None = None, *, title: str | None = None) -> Figure:
        """Draw all cells of the profiles, as `kit plot` does; return the matplotlib figure.

        Args:
            kind: times, rounds, batch, platforms and so on; None: the one that fits the suite.
            title: above the plot; None: the kind's own.

        Raises:
            KitError: there is no such kind, or nothing to draw in it.
        """
        need("matplotlib", "plot")
        from kit.report.plot_figure import draw
        from kit.report.plot_kinds import KINDS, PlotRequest, usual_kind

        kind = kind or usual_kind([*self._profiles])
        if kind not in KINDS:
            raise KitError(f"{kind!r} is not a kind of plot; give {', '.join(KINDS)}")
        labelled = list(zip(self._profiles.labels, self._profiles, strict=True))
        if self._request.meter_files:
            labelled = labelled_profiles(self._profiles.paths, read_meter(vars(self._request)))
        baseline = self._request.baseline if KINDS[kind].compares else None
        figure, _ = draw(PlotRequest(kind, labelled, titles_of(self.comparison), baseline, title=title))
        # A notebook shows by itself only figures of pyplot; it asks others for this.
        setattr(figure, "_repr_png_", partial(_png, figure))  # noqa: B010 - matplotlib does not know it
        return figure

    def __str__(self) -> str:
        return write(comparison_report(self.comparison, titles_of(self.comparison)), "text", StringIO())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from kit.report.page_tables_and_charts import STYLE, fragment

        report = comparison_report(self.comparison, titles_of(self.comparison))
        return f"<style>{STYLE}</style>{fragment(report)}"


def _png(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    return file.getvalue()
