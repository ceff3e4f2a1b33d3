"""What kept a launch from its CPUs, if anything did: a CPU limit, which comes first, or other work."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kit.profile.launch import Launch
from kit.stats.contention import is_contended, taken_share
from kit.stats.cpu_limit import is_stopped, stopped_share


class LostCpus(NamedTuple):
    """To what, and the share of its CPUs' time."""

    to: Literal["limit", "others"]
    share: float


def lost_cpus(launch: Launch) -> LostCpus | None:
    """Null: it had them, or it is not known."""
    if is_stopped(launch):
        return LostCpus("limit", stopped_share(launch) or 0.0)
    if is_contended(launch):
        return LostCpus("others", taken_share(launch) or 0.0)
    return None
