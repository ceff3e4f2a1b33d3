"""A comparison to render, and the lines of its table."""

from profile_builder import build_profile, six_cells

from kit.compare.comparison import compare


def comparison(results=None, **fields):
    return compare([("run", build_profile(results if results is not None else six_cells(), **fields))])


def body(rendered):
    """Lines of the table: from its rule to the blank line before the notes."""
    lines = rendered.split("\n")
    start = next(index for index, line in enumerate(lines) if line.startswith("─"))
    end = next(index for index, line in enumerate(lines) if index > start and line.startswith(("·", "¹")))
    return [line for line in lines[start + 1 : end] if line]
