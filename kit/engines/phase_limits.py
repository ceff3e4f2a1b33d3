"""How long each phase of a launch may take before the launch counts as hanging."""

from __future__ import annotations

import math
import os
from typing import get_args

from kit.errors import KitError
from kit.profile.launch import LaunchRequest, PhaseName

# Seconds for every phase, in place of those below: for a network whose compilation takes longer, or a test.
LIMIT_VARIABLE = "KIT_PHASE_LIMIT_S"
# Interpreter and the kit's own modules, from a cold network disk at worst; the sampler, which gives up after 15 s.
START_S = 300.0
# What one phase takes at most where it works at all: an import from a cold disk and a first look at a GPU, a minute;
# XLA's autotuning and torch.compile, minutes, whether as `compile`, in the first step or again for parity.
PHASE_S = 900.0
# Warm-up and steady steps end by their number, which the pace decides: a machine that is slowed down takes longer.
STEPS_SLACK = 3


class PhaseLimitError(KitError):
    """The limit that was asked for is no number of seconds."""


def phase_limits_s(request: LaunchRequest) -> dict[PhaseName | None, float]:
    """Phase -> seconds; None: before the first phase.

    Raises:
        PhaseLimitError: KIT_PHASE_LIMIT_S is not a number of seconds above 0.
    """
    asked_s = limit_asked_for()
    around_s = PHASE_S if asked_s is None else asked_s
    limits_s: dict[PhaseName | None, float] = dict.fromkeys(get_args(PhaseName), around_s)
    limits_s[None] = START_S if asked_s is None else asked_s
    limits_s["warmup"] += STEPS_SLACK * request.plan.warmup_s
    limits_s["steady"] += STEPS_SLACK * request.plan.steady_s
    limits_s["observer"] += STEPS_SLACK * request.observer_s
    return limits_s


def limit_asked_for() -> float | None:
    """Seconds from KIT_PHASE_LIMIT_S; None where it is not set.

    Raises:
        PhaseLimitError: it is not a number of seconds above 0.
    """
    text = os.environ.get(LIMIT_VARIABLE)
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise PhaseLimitError(f"{LIMIT_VARIABLE} is {text!r}; give a number of seconds above 0, or unset it")
    return seconds
