"""Extras of the distribution, which install what only some commands or backends need; pyproject.toml lists them."""

from importlib.util import find_spec

from kit.errors import KitError


def install_command(*extras: str) -> str:
    """Return the command that installs them, in an environment of any kind: a checkout's, too."""
    return f"`pip install 'steadykit[{','.join(extras)}]'`"


def need(module: str, extra: str) -> None:
    """Raise a KitError that names the extra where `module` is not installed."""
    if find_spec(module) is None:
        raise KitError(f"this needs {module}, which is not installed; install it with {install_command(extra)}")
