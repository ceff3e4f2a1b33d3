"""How two machines were before and after their profiles, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from kit.compare.counted import gib, percent
from kit.compare.fact import UNKNOWN
from kit.compare.gate import LabelledProfile
from kit.compare.state_facts import grown, stolen_pct, throttled_launches, waiting_pct
from kit.profile.brief import AnyProfile
from kit.profile.identity import State

NANOSECONDS_PER_S = 1e9


class StateLine(msgspec.Struct, frozen=True, kw_only=True):
    """One quantity, in words, of each profile in turn: ``load: 0.20 → 1.80, 2.10 → 2.00``."""

    name: str
    values: list[str]


def state_lines(profiles: Sequence[LabelledProfile]) -> list[StateLine]:
    """Those that at least one profile knows."""
    lines = [
        StateLine(name=name, values=[show(profile) or UNKNOWN for _, profile in profiles])
        for name, show in QUANTITIES.items()
    ]
    return [line for line in lines if set(line.values) != {UNKNOWN}]


def _gauge(field: str, show: Callable[[float], str]) -> Callable[[AnyProfile], str | None]:
    """Before and after."""

    def words(profile: AnyProfile) -> str | None:
        before, after = _of(profile.state.before, field), _of(profile.state.after, field)
        if before is None:
            return None
        return f"{show(before)} → {UNKNOWN if after is None else show(after)}"

    return words


def _of(state: State | None, field: str) -> float | None:
    return None if state is None else getattr(state, field)


def _share(share_pct: Callable[[AnyProfile], float | None]) -> Callable[[AnyProfile], str | None]:
    def words(profile: AnyProfile) -> str | None:
        share = share_pct(profile)
        return None if share is None else percent(share)

    return words


def _stopped(profile: AnyProfile) -> str | None:
    stopped_ns, times = grown(profile, "cgroup_throttled_ns"), grown(profile, "cgroup_throttled")
    if stopped_ns is None or times is None:
        return None
    return f"{stopped_ns / NANOSECONDS_PER_S:.3g} s in {times:,} periods" if times else "never"


def _throttled(profile: AnyProfile) -> str | None:
    throttled, launches = throttled_launches(profile)
    return f"{throttled} of {launches}" if launches else None


def _governor(profile: AnyProfile) -> str | None:
    return profile.state.before.governor


QUANTITIES: dict[str, Callable[[AnyProfile], str | None]] = {
    "load, 1 minute": _gauge("load_1min", lambda value: f"{value:.3g}"),
    "temperature": _gauge("temperature_c", lambda value: f"{value:.0f} °C"),
    "CPU frequency": _gauge("frequency_mhz", lambda value: f"{value:.0f} MHz"),
    "governor": _governor,
    "memory available": _gauge("memory_available_b", gib),
    "CPU time stolen by the hypervisor": _share(stolen_pct),
    "time in which a task waited for a CPU": _share(waiting_pct),
    "stopped by a CPU limit": _stopped,
    "launches throttled while steady": _throttled,
}
