"""What the kit refuses: one printable line."""

from __future__ import annotations

from collections.abc import Callable

import click
import pytest
from click.testing import Result

from kit.errors import KitError


def refused(call: Callable[..., object], *arguments: object, **options: object) -> str:
    """The line that the call ends with."""
    with pytest.raises(KitError) as error:
        call(*arguments, **options)
    assert str(error.value).isprintable()
    return str(error.value)


def refusal(ended: Result) -> str:
    """The line that a command ends with, of its user's making."""
    error = ended.exception
    assert isinstance(error, click.ClickException | KitError), error
    line = error.format_message() if isinstance(error, click.ClickException) else str(error)
    assert "\n" not in line
    return line
