"""What the frameworks that a user program has imported say of it: what they compiled for it, and what its step runs.

A process may hold several programs, one step after another: each counts what was compiled between `begin` and `end`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from kit.backends.protocol import DeviceBatch, Stepping
from kit.profile.fields import Reason, reason
from kit.profile.schema import Compilations, WhatRan

# Their backends have a file proof.py, which imports nothing but the framework.
FRAMEWORKS = ("jax", "torch", "tensorflow")


class ProgramCompilations:
    """Compilations of one program."""

    def __init__(self) -> None:
        self._counted: dict[str, int] = {}
        self._at_begin: dict[str, int] = {}
        self._reason: Reason | None = None
        self._is_known = False

    def begin(self) -> None:
        """Note what was compiled before this program goes on."""
        self._at_begin = self._read()

    def end(self) -> None:
        """Count what was compiled since."""
        for name, count in self._read().items():
            self._counted[name] = self._counted.get(name, 0) + count - self._at_begin.get(name, 0)

    def counted(self) -> Compilations:
        """Return what was compiled for this program so far; null without a framework that Steadykit knows."""
        if not self._is_known:
            return Compilations(count=None, reason=self._reason or reason("own_program"))
        counts = self._counted
        torchs = {name: counts[name] for name in ("tried", "graph_breaks") if name in counts}
        return Compilations(count=counts.get("count", 0), reason=self._reason, **torchs)

    def _read(self) -> dict[str, int]:
        """Return the counts of this process, of all its frameworks together."""
        counts: dict[str, int] = {}
        for framework in imported():
            try:
                so_far: Compilations = _proof(framework).compiled_so_far()
            except Exception as error:  # no framework promises these counts
                self._reason = reason("compilations_not_counted", error=f"{type(error).__name__}: {error}")
                continue
            self._is_known = True
            self._reason = so_far.reason or self._reason
            for name in ("count", "tried", "graph_breaks"):
                counts[name] = counts.get(name, 0) + (getattr(so_far, name) or 0)
        return counts


def what_ran(program: Stepping, batch: DeviceBatch, frameworks: Collection[str]) -> WhatRan:
    """Return what a step runs, by the framework of what it returns; if that is of none, by the imported one."""
    asked = list(frameworks or imported())
    if len(asked) != 1:
        return WhatRan(reason=reason("several_frameworks" if asked else "own_program"))
    ran: WhatRan = _proof(asked[0]).what_ran(program, batch, asks=True)
    return ran


def imported() -> list[str]:
    """Return the frameworks that this process has imported; JAX, which TensorFlow imports, once it has compiled."""
    named: Iterable[str] = (name for name in FRAMEWORKS if name in sys.modules)
    return [name for name in named if name != "jax" or "tensorflow" not in sys.modules or _has_compiled(name)]


def _has_compiled(framework: str) -> bool:
    """Return whether a framework has compiled something since this was first asked."""
    with suppress(Exception):  # no framework promises these counts
        return bool(_proof(framework).compiled_so_far().count)
    return False


def _proof(framework: str) -> Any:  # noqa: ANN401 - a module
    return import_module(f"kit.backends.{framework}.proof")
