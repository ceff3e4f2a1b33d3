"""What can be wrong with data, in one line that says which file, what was expected and what to do."""

from __future__ import annotations

from kit.errors import KitError


class DataError(KitError):
    """Data that cannot be used. The message is one line, meant for the user as it is."""


class DataUnavailableError(DataError):
    """Data that is not here and cannot be fetched, as opposed to data that is here and wrong.

    Attributes:
        why: the reason alone, without what to do about it.
    """

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"{why}; {remedy}")
        self.why = why
