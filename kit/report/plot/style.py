"""How pictures look: lines that are told apart in black and white, and by people of any colour vision."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl

# Okabe and Ito's, made to be told apart with any colour vision; without yellow, which white paper swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
# Eight, five and seven have no common divisor: 280 lines differ in one of them.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (6, 1.5, 1, 1.5, 1, 1.5)))
GREY = "#555555"
GRID = "#DDDDDD"
BAND = "#F3F3F3"

TITLE_PT = 10
TEXT_PT = 8
SMALL_PT = 6.5
# A line of more points than these has small markers.
CROWDED = 20

SETTINGS: dict[Any, Any] = {  # as matplotlib calls them
    "font.size": TEXT_PT,
    "axes.titlesize": TEXT_PT,
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT_PT,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "text.parse_math": False,  # names come from other people; a `$` in one is a `$`
    "svg.fonttype": "none",  # text stays text: searched, copied, read aloud
    "svg.hashsalt": "kit",  # ids in the file are drawn from it: the same picture has the same bytes
}


class Look(NamedTuple):
    """Of one line."""

    colour: str
    marker: str
    line: Any  # a name, or offset and dashes


@contextmanager
def our_style() -> Iterator[None]:
    """Draw and save in it: matplotlib's defaults and `SETTINGS`, whatever the user's own matplotlibrc says."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        # A name may be in a script that the font lacks: an empty box says so in the picture.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Return the look of each name, in their order."""
    return {
        name: Look(COLOURS[at % len(COLOURS)], MARKERS[at % len(MARKERS)], LINES[at % len(LINES)])
        for at, name in enumerate(dict.fromkeys(names))
    }


def marker_size(points: int) -> float:
    """Return the marker's size, in points, in a line of so many points."""
    return 2.5 if points > CROWDED else 4.0
