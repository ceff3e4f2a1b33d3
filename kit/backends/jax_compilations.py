"""Counting what XLA compiles, from the event that JAX itself reports for every compilation in the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax.monitoring

COMPILATION_EVENT = "/jax/core/compile/backend_compile_duration"


class CompilationCounter:
    """Compilations since it was made, those inside `pause` left out. It sees plain jit, AOT and one-op programs."""

    def __init__(self) -> None:
        self.count = 0
        self._counting = True
        jax.monitoring.register_event_duration_secs_listener(self._on_event)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Do not count what is compiled in here."""
        self._counting = False
        try:
            yield
        finally:
            self._counting = True

    def _on_event(self, event: str, _duration_s: float, **_: object) -> None:
        if event == COMPILATION_EVENT and self._counting:
            self.count += 1
