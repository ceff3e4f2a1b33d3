"""Did you mean …? The name among those that there are which is nearest to what was typed."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the name that is nearest to what was typed; None where none is near."""
    # Only a refusal needs this module of Python's, which takes a while to import.
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean train?``, which ends a refusal; empty where no name is near."""
    match = nearest(name, known)
    return "" if match is None else f"; did you mean {match}?"


def choices(name: str, known: Collection[str], unless: str = "") -> str:
    """Return ``choose from fit, infer, train; did you mean train?``, with what to do `unless` one of them fits."""
    return f"choose from {', '.join(known)}{unless}{did_you_mean(name, known)}"
