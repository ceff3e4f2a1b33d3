"""One picture of some profiles, as the bytes of a file."""

from __future__ import annotations

from importlib import import_module

from kit.report.plot.frame import LABEL_CHARS, Picture, PlotRequest, saved, short_names
from kit.report.plot.kinds import KINDS
from kit.report.plot.style import our_style


def draw(request: PlotRequest) -> Picture:
    """Return the picture of the kind asked for.

    Raises:
        KitError: there is nothing to draw, or no such baseline.
    """
    labels = short_names((label for label, _ in request.profiles), LABEL_CHARS)
    request = request._replace(
        profiles=[(labels[label], profile) for label, profile in request.profiles],
        baseline=labels.get(request.baseline or "", request.baseline),
    )
    with our_style():
        picture: Picture = import_module(f"kit.report.plot.{KINDS[request.kind]}").draw(request)
        return picture


def file_of(picture: Picture, ending: str) -> bytes:
    """Return the picture as a file with this ending, .svg, .png or .pdf."""
    with our_style():
        return saved(picture.figure, ending)
