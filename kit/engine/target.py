"""A target: a kind of hardware with an image of its own."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """One of cpu, gpu, tpu."""

    name: str

    @property
    def image(self) -> str:
        """The name of its image where none is given."""
        return f"steadykit:{self.name}"

    @property
    def dockerfile(self) -> str:
        """The file that builds it."""
        return f"Dockerfile.{self.name}"


TARGETS = {name: Target(name) for name in ("cpu", "gpu", "tpu")}
