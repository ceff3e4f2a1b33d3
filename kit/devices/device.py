"""What the kit asks of one kind of device. To add a kind is to write a file of this folder that ends with `DEVICE`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from kit.profile.facts import Accelerator
from kit.profile.fields import Reason, Value, reason

DEV = Path("/dev")


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that limits or disturbs measurements, as `kit doctor` shows it."""

    subject: str
    fine: bool
    what: Reason


def condition(subject: str, fine: bool, codes: tuple[str, str], **values: Value) -> Condition:
    """Return a condition whose reason has the first code if it is fine, and the second if not."""
    return Condition(subject=subject, fine=fine, what=reason(codes[not fine], **values))


class InContainer(NamedTuple):
    """What a container needs to reach a device."""

    gpus: str | None = None  # value of `docker run --gpus`; null: the engine does not know the device as a GPU
    files: Sequence[str] = ()  # patterns below the host's /dev
    file_unseen: str = ""  # the container gets it instead of `files` where the host's /dev cannot be read
    why_no_files: str = ""  # the error where the host has none of `files`
    unlimited_memlock: bool = False
    # Gets the engine's description of itself, and returns why that engine cannot give the device; None: it can.
    why_not: Callable[[Mapping[str, Any]], str | None] | None = None


class Device:
    """A kind of device. The defaults are those of a CPU.

    Attributes:
        kind: name in cells, options and profiles.
        rank: position among the kinds in tables.
        files: patterns below /dev. A file that matches shows that there may be a device, even if none is listed.
        joule_sensors: patterns of the names of sensors whose joules add up to the device's, the best source first.
        energy_source: beginning of the names of its energy sensors; their obstacle explains why there are no joules.
        precisions: precisions that only this kind has.
        in_passes: precisions that it computes in several passes of another precision, slower than its default.
        shares_memory: whether each of its workers gets a fraction of its memory.
        hidden_by: variables that hide all devices of this kind from a process.
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
        """Return the devices of this machine for its identity, or why they cannot be listed."""
        return []

    def states(self) -> list[Accelerator]:
        """Return the state of each device at this moment."""
        return []

    def processes(self, count: int, environment: Mapping[str, str]) -> int | None:
        """Return how many processes compute on the busiest of the first `count` devices; None where it is unknown."""
        return None

    def ids(self, count: int) -> list[str]:
        """Return the ids, as in sensor reports, of the first `count` that this process sees; none where unknown."""
        return []

    def shown_by(self, count: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return variables that show a process only the first `count` of the devices that `environment` shows."""
        return {}

    def shown_to_rank(self, rank: int, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return variables that show a rank only its own of the devices that `environment` shows to all ranks.

        Raises:
            KitError: `environment` shows too few.
        """
        return {}

    def cpus_near(self, count: int, environment: Mapping[str, str]) -> list[set[int]]:
        """Return the CPUs near each of the first `count` devices; an empty list where those of one are unknown."""
        return []

    def check_count(self, count: int, environment: Mapping[str, str]) -> None:
        """Raise KitError if a process with this environment certainly sees fewer than `count` devices."""

    def is_exclusive(self, count: int) -> bool:
        """Whether only one process at a time can use the first `count` devices."""
        return False

    def conditions(self, root: Path) -> Iterable[Condition]:
        """Return what limits measurements on these devices; `root`: where /proc, /sys and /dev are."""
        return ()

    def joule_sensors_among(self, names: Iterable[str]) -> list[str]:
        """Return the names whose joules add up to the device's: all that match the best pattern with a match."""
        known = list(names)
        matches = ([name for name in known if pattern.fullmatch(name)] for pattern in self.joule_sensors)
        return next(filter(None, matches), [])

    def is_listed(self) -> bool:
        """Whether this machine certainly has such a device."""
        listed = self.listed()
        return not isinstance(listed, Reason) and bool(listed)

    def why_missing(self, dev: Path = DEV) -> Reason | None:
        """Return why this machine certainly has no such device; None: it has one, or one that cannot be listed."""
        if not self.files or any(next(dev.glob(pattern), None) for pattern in self.files):
            return None
        listed = self.listed()
        return listed if isinstance(listed, Reason) else None if listed else reason(f"no_{self.kind}")
