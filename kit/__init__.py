"""Steadykit: how fast, and at what cost in power, the same network runs in TensorFlow, PyTorch and JAX.

The names below are Steadykit's Python interface; everything else in this package may change. Each is imported when it
is first used, so that `import kit` takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.api.measure import measure as measure
    from kit.api.profiles import Compared as Compared
    from kit.api.profiles import Profiles as Profiles
    from kit.api.profiles import load as load
    from kit.errors import KitError as KitError
    from kit.report.records import Columns as Columns

_MODULES = {
    "load": "kit.api.profiles",
    "measure": "kit.api.measure",
    "Profiles": "kit.api.profiles",
    "Compared": "kit.api.profiles",
    "Columns": "kit.report.records",
    "KitError": "kit.errors",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a function
    if name not in _MODULES:
        raise AttributeError(f"module 'kit' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
