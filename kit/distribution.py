"""The distribution as pip has installed it: the repository's files that come with it, and the extras that it can have.

Its files are Dockerfiles and what they copy, and published profiles. Extras install what only some commands or backends
need; pyproject.toml lists both.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

from kit.errors import KitError

CHECKOUT = Path(__file__).parents[1]
FOLDER = "share/steadykit"


def shipped() -> Path:
    """Return the folder that holds them by their paths in the repository: the checkout, else the environment's own.

    pip's record of the package knows it where it is not below `sys.prefix`, as after `pip install --user`.
    """
    if (CHECKOUT / "Dockerfile.cpu").is_file():
        return CHECKOUT
    from importlib.metadata import distributions  # slow, and only an installed package needs it

    files = (file for package in distributions(name="steadykit") for file in package.files or ())
    recorded = next((file for file in files if file.match(f"{FOLDER}/pyproject.toml")), None)
    return Path(sys.prefix, FOLDER) if recorded is None else Path(recorded.locate()).resolve().parent


def install_command(*extras: str) -> str:
    """Return the command that installs extras, in an environment of any kind: a checkout's, too."""
    return f"`pip install 'steadykit[{','.join(extras)}]'`"


def need(module: str, extra: str) -> None:
    """Raise a KitError that names the extra where `module` is not installed."""
    if find_spec(module) is None:
        raise KitError(f"this needs {module}, which is not installed; install it with {install_command(extra)}")
