"""What the kit asks of one kind of device. To add a kind is to write a file of this folder that ends with `DEVICE`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from kit.profile.identity import Accelerator
from kit.profile.reason import Reason, reason

DEV = Path("/dev")

# What bounds or disturbs a measurement: its subject, whether it is fine, and what to say of it.
Condition = tuple[str, bool, Reason]


class InContainer(NamedTuple):
    """What a container needs to reach a device."""

    gpus: str | None = None  # as `docker run --gpus` takes it; null: it is no GPU to the engine
    files: Sequence[str] = ()  # patterns below the host's /dev
    file_unseen: str = ""  # given in their place where the host cannot be looked at
    why_no_files: str = ""  # to be told where the host has none
    unlimited_memlock: bool = False
    # From what the engine says of itself: why it cannot give the device; None where it can.
    why_not: Callable[[Mapping[str, Any]], str | None] | None = None


class Device:
    """A kind of device; what a kind does not say itself is as it is of a CPU.

    Attributes:
        kind: its name in cells, options and profiles.
        rank: its place among the kinds.
        files: patterns below /dev; a file of them says that there may be one, listed or not.
        joule_sensors: names of the sensors whose joules together are the device's, best source first: each a pattern.
        energy_source: how the names of its own sensors of energy begin: their obstacle is why there are no joules.
        precisions: that no other kind has.
        in_passes: precisions that it computes in several passes of another: slower than anybody's default.
        shares_memory: its members are told which share of its memory is theirs.
        hidden_by: variables that leave a process none of them.
        in_container: what a container needs to reach it.
    """

    kind: str
    rank: int = 9
    files: Sequence[str] = ()
    joule_sensors: Sequence[re.Pattern[str]] = ()
    energy_source: str = ""
    precisions: Sequence[str] = ()
    in_passes: Sequence[str] = ()
    shares_memory: bool = False
    hidden_by: Mapping[str, str] = MappingProxyType({})
    in_container: InContainer = InContainer()

    def listed(self) -> list[Accelerator] | Reason:
        """Return those of this machine, as its identity has them; or what keeps them from being listed."""
        return []

    def states(self) -> list[Accelerator]:
        """Return how each of them is at this moment."""
        return []

    def processes(self, count: int, environment: Mapping[str, str]) -> int | None:
        """Return how many processes compute on the busiest of those that `shown_by` shows; None where it is unknown."""
        return None

    def ids(self, count: int) -> list[str]:
        """Return which ones the first `count` are that this process sees, as sensors name them; none where unknown."""
        return []

    def shown_by(self, count: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return variables that show a process the first `count`, of those that `environment` allows it, alone."""
        return {}

    def shown_to_rank(self, rank: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return variables that show a rank its own, of those that `environment` shows all ranks.

        Raises:
            KitError: `environment` shows fewer.
        """
        return {}

    def cpus_near(self, count: int, environment: Mapping[str, str]) -> list[set[int]]:
        """Return the CPUs next to each of the first `count` that `environment` shows; nothing where one is unknown."""
        return []

    def check_count(self, count: int, environment: Mapping[str, str]) -> None:
        """Raise KitError where a process with this environment certainly sees fewer than `count` of them."""

    def is_exclusive(self, count: int) -> bool:
        """Whether only one process at a time may hold the first `count` of them."""
        return False

    def conditions(self, root: Path) -> Iterable[Condition]:
        """Return what bounds measurements on it; `root`: where /proc, /sys and /dev are."""
        return ()

    def joule_sensors_among(self, names: Iterable[str]) -> list[str]:
        """Return those sensors that together are the device: all of the best source that any name belongs to."""
        known = list(names)
        by_source = ([name for name in known if pattern.fullmatch(name)] for pattern in self.joule_sensors)
        return next(filter(None, by_source), [])

    def is_listed(self) -> bool:
        """Whether there is certainly one here."""
        listed = self.listed()
        return not isinstance(listed, Reason) and bool(listed)

    def why_missing(self, dev: Path = DEV) -> Reason | None:
        """Return why there is certainly none here; None: there is one, or may be one that cannot be listed."""
        if not self.files or any(next(dev.glob(pattern), None) for pattern in self.files):
            return None
        listed = self.listed()
        return listed if isinstance(listed, Reason) else None if listed else reason(f"no_{self.kind}")
