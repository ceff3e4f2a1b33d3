"""What is there by name: folders of a package, and what other distributions add through Python entry points.

Entry points: packaging.python.org, "Entry points".
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Collection
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kit.errors import KitError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

KINDS = ("workload", "dataset", "backend")


class WorkloadError(KitError):
    """A workload, or what a distribution adds, is not there, cannot be loaded, or has a name that is taken."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Kind = TypeVar("_Kind", bound=_Named)


def discover(package: ModuleType, kind: type[_Kind], file: str) -> dict[str, _Kind]:
    """Return every object of `kind` by its name that the module `file` of a folder in `package` holds.

    Nothing else of a folder is imported.

    Raises:
        WorkloadError: two objects have one name.
    """
    objects: dict[str, _Kind] = {}
    for entry in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not entry.ispkg:
            continue
        for value in vars(import_module(f"{entry.name}.{file}")).values():
            if isinstance(value, kind) and objects.setdefault(value.name, value) is not value:
                raise WorkloadError(f"{entry.name}.{file}: another one has the name {value.name!r}; rename it")
    return objects


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
        WorkloadError: one cannot be imported, is of another type, or has a name that is taken.
    """
    added: dict[str, tuple[Any, EntryPoint]] = {}
    for point in _of_kind(kind):
        who = f"{distribution_of(point)}: entry point {point.name} = {point.value}"
        try:
            value = load(point)
            is_right = isinstance(value, types)
        except Exception as error:
            raise WorkloadError(
                f"{who} cannot be loaded: {type(error).__name__}: {error}; fix or uninstall {distribution_of(point)}"
            ) from error
        if not is_right:
            wanted = " or ".join(wanted.__name__ for wanted in types)
            raise WorkloadError(f"{who} is a {type(value).__name__}; {kind}s are {wanted}")
        if value.name in taken or value.name in added:
            other = distribution_of(added[value.name][1]) if value.name in added else "steadykit"
            raise WorkloadError(
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
