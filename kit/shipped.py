"""Files of the repository that come with the package: Dockerfiles and what they copy, and published profiles."""

import sys
from importlib.metadata import distributions
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
FOLDER = "share/steadykit"


def shipped() -> Path:
    """Return the folder that holds them by their paths in the repository: the checkout, else the environment's own.

    pip's record of the package knows it where it is not below `sys.prefix`, as after `pip install --user`.
    """
    if (CHECKOUT / "Dockerfile.cpu").is_file():
        return CHECKOUT
    files = (file for package in distributions(name="steadykit") for file in package.files or ())
    recorded = next((file for file in files if file.match(f"{FOLDER}/pyproject.toml")), None)
    return Path(sys.prefix, FOLDER) if recorded is None else Path(recorded.locate()).resolve().parent
