"""Where a message says that more is written: an address, because an installed Steadykit has no `docs/`."""

DOCUMENTATION = "https://github.com/steadykit/steadykit/blob/main/docs/"


def page(path: str) -> str:
    """Return the address of a page of the documentation, such as ``how-to/own-model.md``."""
    return f"{DOCUMENTATION}{path}"
