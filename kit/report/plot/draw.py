"""One picture of some profiles, as the bytes of a file."""

from __future__ import annotations

from importlib import import_module

from kit.report.plot.frame import Asked, Picture, saved
from kit.report.plot.kinds import KINDS
from kit.report.plot.style import our_style


def draw(asked: Asked) -> Picture:
    """Return the picture of the kind asked for.

    Raises:
        KitError: there is nothing to draw, or no such baseline.
    """
    with our_style():
        picture: Picture = import_module(f"kit.report.plot.{KINDS[asked.kind]}").draw(asked)
        return picture


def file_of(picture: Picture, ending: str) -> bytes:
    """Return the picture as a file with this ending, .svg or .png."""
    with our_style():
        return saved(picture.figure, ending)
