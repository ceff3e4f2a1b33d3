"""Options that something else has decided: a run that is resumed, launches that are given."""

from __future__ import annotations

import click
from click.core import ParameterSource


def refuse_given(option: str, free: frozenset[str], why: str) -> None:
    """Raise UsageError where the command line also gives anything that is not `free` (by parameter name).

    Args:
        option: that leaves nothing else to decide, ``--resume``.
        free: names of parameters that may still be given.
        why: nothing else may be.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name not in free:
            name = parameter.make_metavar(context) if isinstance(parameter, click.Argument) else parameter.opts[0]
            raise click.UsageError(f"{name.strip('[]')} cannot be given with {option}: {why}")
