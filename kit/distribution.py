"""Distributions as pip has installed them: Steadykit, with its files and extras, and those that add to it.

Its files are Dockerfiles and what they copy, and published profiles. Extras install what only some commands or backends
need; pyproject.toml lists both. Other distributions add workloads, data sets and backends as Python entry points
(packaging.python.org, "Entry points").
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kit.errors import KitError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

CHECKOUT = Path(__file__).parents[1]
FOLDER = "share/steadykit"
KINDS = ("workload", "dataset", "backend")


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


@functools.cache
def _entry_points() -> Any:  # noqa: ANN401 - of another type in each Python; both have `select`
    """Read the metadata of all distributions, once: of a hundred it takes 5 ms, and the import 25 ms."""
    import importlib.metadata

    return importlib.metadata.entry_points()


def _of_kind(kind: str) -> EntryPoints:
    return _entry_points().select(group=f"steadykit.{kind}s")  # type: ignore[no-any-return]


def installed(
    kind: str,
    types: tuple[type, ...],
    taken: Collection[str],
    load: Callable[[EntryPoint], Any] = lambda point: point.load(),
) -> dict[str, tuple[Any, EntryPoint]]:
    """Return what the group ``steadykit.<kind>s`` adds, by its own `name`, each with its entry point.

    Args:
        kind: one of KINDS.
        types: what each is one of.
        taken: names of the kit's own.
        load: imports what an entry point names.

    Raises:
        KitError: one cannot be imported, is of another type, or has a name that is taken.
    """
    added: dict[str, tuple[Any, EntryPoint]] = {}
    for point in _of_kind(kind):
        who = f"{distribution_of(point)}: entry point {point.name} = {point.value}"
        try:
            value = load(point)
            is_right = isinstance(value, types)
        except Exception as error:
            raise KitError(
                f"{who} cannot be loaded: {type(error).__name__}: {error}; fix or uninstall {distribution_of(point)}"
            ) from error
        if not is_right:
            wanted = " or ".join(wanted.__name__ for wanted in types)
            raise KitError(f"{who} is a {type(value).__name__}; {kind}s are {wanted}")
        if value.name in taken or value.name in added:
            other = distribution_of(added[value.name][1]) if value.name in added else "steadykit"
            raise KitError(
                f"{other} and {distribution_of(point)} both have a {kind} {value.name!r}; rename or uninstall one"
            )
        added[value.name] = value, point
    return added


def distribution_of(point: EntryPoint) -> str:
    """Return the name of the distribution that an entry point comes from."""
    return point.dist.name if point.dist is not None else point.value


def adding_distributions() -> list[str]:
    """Return the distributions that add anything: what they add is measured."""
    return sorted({distribution_of(point) for kind in KINDS for point in _of_kind(kind)})
