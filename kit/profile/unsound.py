"""What decodes and no kit measured: a forged journal or profile may hold it although its checksums hold."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from kit.profile.launch import Launch, ObserverBlocks


def unsound(launch: Launch) -> str | None:
    """Why nobody can compute with a launch, in words; null: one can, or it has failed and nobody will."""
    if launch.failure is not None:
        return None
    return _of_steps(launch) or _of_phases(launch) or _of_beginning(launch.started) or _of_blocks(launch.observer)


def _of_steps(launch: Launch) -> str | None:
    steps = np.asarray(() if launch.step_ns is None else launch.step_ns, np.int64)
    if np.all(steps > 0):
        return None
    first = int(np.argmax(steps <= 0))
    return f"step {first} took {steps[first]} ns"


def _of_phases(launch: Launch) -> str | None:
    wrong = (phase for phase in launch.phases if phase.duration_ns < 0)
    return next((f"{phase.name} took {phase.duration_ns} ns" for phase in wrong), None)


def _of_beginning(started: str) -> str | None:
    try:
        began = datetime.fromisoformat(started)
    except ValueError:
        return f"it began at {started!r}, which is no time"
    return None if began.tzinfo else f"it began at {started!r}, in no time zone"


def _of_blocks(observer: ObserverBlocks | None) -> str | None:
    if observer is None:
        return None
    series = (observer.on_ns, observer.off_ns, observer.on_mean_ns, observer.off_mean_ns)
    if len({len(one) for one in series}) == 1 and all(time > 0 for one in series for time in one):
        return None
    return "its observer test has blocks without a partner, or without a duration"
