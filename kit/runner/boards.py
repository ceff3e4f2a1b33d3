"""What the boards of a round make of its launches: marks of what bounded them, and whose their joules are.

look │ workers start … workers end │ look      no worker is alive at a look: what computes on a board then is another's
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kit.devices import DEVICES
from kit.devices.gpu import SLOWED_LEAST_PCT, is_capped
from kit.profile.cell import Cell
from kit.profile.facts import Accelerator
from kit.profile.fields import Reason, reason
from kit.profile.instruments import SensorSummary
from kit.profile.schema import Launch

# How the name of a sensor ends that shows what slows a board; each reason has a name below it.
THROTTLED = ".throttled"

Boards = Mapping[str, Sequence[Accelerator]]  # by PCI bus id: as each was at the looks


def look(cells: Iterable[Cell]) -> list[Accelerator]:
    """Return how the boards of the kinds of device of these cells are now."""
    return [state for kind in dict.fromkeys(cell.device for cell in cells) for state in DEVICES[kind].states()]


def boards_seen(*looks: Sequence[Accelerator]) -> Boards:
    """Return what some looks saw of each board."""
    seen: dict[str, list[Accelerator]] = {}
    for state in (state for states in looks for state in states if state.device_id is not None):
        seen.setdefault(str(state.device_id), []).append(state)
    return seen


def board_marks(launch: Launch, boards: Boards) -> list[Reason]:
    """Return what bounded a launch on its boards; each once, the gravest board's."""
    states = [state for device_id in launch.device_ids for state in boards.get(device_id, ())]
    return [*_throttled(launch.sensors), *_capped(states), *_shared(states)]


def why_not_its_joules(states: Sequence[Accelerator]) -> Reason | None:
    """Return why what a board drew is not a worker's alone; None where it is."""
    if any(state.mig for state in states):
        return reason("gpu_in_slices")
    return next(iter(_shared(states)), None)


def _throttled(sensors: Mapping[str, SensorSummary]) -> list[Reason]:
    shares = {name: summary.mean for name, summary in sensors.items() if name.endswith(THROTTLED)}
    worst = max(shares, key=lambda name: shares[name], default=None)
    if worst is None or shares[worst] < SLOWED_LEAST_PCT:
        return []
    causes = {name.removeprefix(f"{worst}."): summary.mean for name, summary in sensors.items() if f"{worst}." in name}
    listed = ", ".join(name.replace("_", " ") for name in sorted(causes, key=lambda name: -causes[name]))
    return [reason("device_throttled", share_pct=shares[worst], causes=listed)]


def _capped(states: Iterable[Accelerator]) -> list[Reason]:
    caps = [(state.power_cap_w or 0.0, state.power_cap_default_w or 0.0) for state in states if is_capped(state)]
    cap_w, default_w = min(caps, default=(0.0, 0.0))
    return [reason("power_capped", cap_w=cap_w, default_w=default_w)] if caps else []


def _shared(states: Iterable[Accelerator]) -> list[Reason]:
    processes = max((state.processes or 0 for state in states), default=0)
    return [reason("device_shared", processes=processes)] if processes else []
