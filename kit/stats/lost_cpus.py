"""What kept a launch from its CPUs, if anything did: a CPU limit, which comes first, or other work."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kit.profile.launch import Launch
from kit.stats.contention import is_contended, taken_share
from kit.stats.cpu_limit import STOPPED_SHARE_MAX, stopped_share


class LostCpus(NamedTuple):
    """To what, and the share of its CPUs' time."""

    to: Literal["limit", "others"]
    share: float


def lost_cpus(launch: Launch) -> LostCpus | None:
    """Null: it had them, or it is not known."""
    stopped, taken = stopped_share(launch), taken_share(launch)
    if stopped is not None and stopped > STOPPED_SHARE_MAX:
        return LostCpus("limit", stopped)
    if taken is not None and is_contended(launch):
        return LostCpus("others", taken)
    return None
