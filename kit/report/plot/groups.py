"""A small panel for each group of the profiles, as `blocks` and `rounds` have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from kit.compare.rows import GroupRows
from kit.compare.within import compare_within
from kit.profile.schema import Profile
from kit.report.plain import one_line
from kit.report.plot.frame import PlotRequest, cut, no_number, short_names
from kit.report.quantity import counted
from kit.workloads.parity import PARITY_TOLERANCE

HEIGHT_IN = 1.9
TITLE_CHARS = 44
LABEL_CHARS = 16  # of that, where several profiles are shown
# A group of more rows than these takes the whole width.
NARROW_ROWS_MAX = 6
# Of a page, and of what a canvas can be high: the rest is named.
PANELS_MAX = 40


class GroupPanel(NamedTuple):
    """One group of one profile."""

    title: str
    profile: Profile
    group: GroupRows


def group_panels(request: PlotRequest) -> tuple[list[GroupPanel], list[str]]:
    """Return every group of every profile, and a line for each row that has no number.

    Raises:
        BaselineError: a profile has no such baseline.
    """
    found, left_out = [], []
    short_labels = short_names((label for label, _ in request.profiles), LABEL_CHARS)
    for label, profile in request.profiles:
        compared = compare_within(label, profile, baseline=request.baseline, parity_tolerance=PARITY_TOLERANCE)
        of = f"{short_labels[label]} · " if len(request.profiles) > 1 else ""
        places = {result.cell.key: place for place, result in enumerate(profile.cells)}
        for group in compared.groups:
            # A table has the fastest first; side by side, a member has its place and its look in all panels.
            rows = sorted(group.rows, key=lambda row: places[row.cell.key])
            title = cut(of + " · ".join(group.title), TITLE_CHARS)
            found.append(GroupPanel(title, profile, msgspec.structs.replace(group, rows=rows)))
            left_out += [no_number(f"{of}{row.cell.key}", row.failure) for row in rows if not row.numbers.step_ns]
    return found, left_out


def columns_of(shown: Sequence[GroupPanel]) -> int:
    """Return how many panels stand side by side."""
    return 1 if any(len(one.group.rows) > NARROW_ROWS_MAX for one in shown) else 2


def beyond(count: int) -> list[str]:
    """Return the line for panels that a picture has no room for; none where it has room for so many."""
    return [f"{counted(count - PANELS_MAX, 'group')} more than a picture has room for"] if count > PANELS_MAX else []


def shown_name(name: str, request: PlotRequest) -> str:
    """Return the name of a row as people write it."""
    return one_line(request.titles.get(name, name))
