"""Variables of the environment that ask for another number of threads than a run uses."""

from __future__ import annotations

import os

import click


def say_overruled(threads: int) -> None:
    """Tell on standard error which of them do not count: every launch gets a thread for each usable CPU."""
    from kit.engines.local import THREAD_VARIABLES

    asked = [
        f"{name}={value}" for name in THREAD_VARIABLES if (value := os.environ.get(name, str(threads))) != str(threads)
    ]
    if asked:
        click.echo(
            f"kit: {', '.join(asked)} does not count: frameworks get a thread for each usable CPU ({threads}); "
            "choose CPUs with taskset",
            err=True,
        )
