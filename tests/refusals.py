"""What the kit refuses: one printable line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kit.errors import KitError


def refused(call: Callable[..., object], *arguments: object, **options: object) -> str:
    """The line that the call ends with."""
    with pytest.raises(KitError) as error:
        call(*arguments, **options)
    assert str(error.value).isprintable()
    return str(error.value)
