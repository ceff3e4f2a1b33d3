"""A run beside an external meter: three rounds of a long block for each framework, and the watts that were drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo

import profile_builder as b
from msgspec.structs import replace

from kit.profile.fields import reason
from kit.profile.schema import Launch, Profile, StateSpan

BEGIN = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)  # half an hour before Europe's clocks go forward
RUN_S, RAW_BEGIN_S, IDLE_W = 1000, 500, 100.0
BLOCK_S, SAMPLES, STEPS = 60, 6000, 60
# Watts in the blocks of each framework, and when the first of them begins; the others follow every 100 s.
DRAWN = {"torch": (300.0, 100), "jax": (180.0, 400)}


def watts(second: float) -> float:
    """Return what the machine draws."""
    for power_w, first_s in DRAWN.values():
        if any(0 <= second - first_s - 100 * number < BLOCK_S for number in range(3)):
            return round(power_w * (1 + 0.002 * math.sin(40 * second)), 3)
    return IDLE_W


def metered_run(
    *, ppm: float = 0.0, has_blocks: bool = True, has_clock: bool = True, own_w: float | None = None,
    device: str = "cpu", after_s: float = 0.0, **more: object,
) -> Profile:  # fmt: skip
    """Return the run; its raw clock goes `ppm` faster than UTC. `own_w`: of its own sensor; null: that gave nothing.

    `after_s`: so much later by UTC.
    """
    own_sensor = {"cpu": "rapl.package-0", "gpu": "nvml.0.energy"}[device]

    def raw_ns(second: float) -> int:
        return RAW_BEGIN_S * b.S + round(second * b.S * (1 + ppm / 1e6))

    def with_block(first_s: int) -> Callable[[Launch], None]:
        def change(launch: Launch) -> None:
            begin_ns = raw_ns(first_s + 100 * launch.round)
            block = {"window_ns": None, "block_ns": BLOCK_S * b.S, "begin_ns": begin_ns, "steps": STEPS}
            known = b.energy(None, SAMPLES, own_sensor, reason=reason("counter_stuck", block_s=60.0), **block)
            if own_w is not None:
                known = b.energy(own_w * BLOCK_S, SAMPLES, own_sensor, **block | {"window_ns": BLOCK_S * b.S})
            launch.energy = known if has_blocks else []
            launch.blocks.begin_ns = [begin_ns + number * b.S for number in range(len(launch.blocks.begin_ns))]

        return change

    steps_ms = {"torch": 4.0, "jax": 2.0}
    members = [b.member(name, ms, device=device, change=with_block(DRAWN[name][1])) for name, ms in steps_ms.items()]
    built = b.profile(b.group("mlp train", *members), rounds=3, cycles=6, **more)
    ends = [
        replace(
            built.state.before,
            taken=(BEGIN + timedelta(seconds=second + after_s)).isoformat(timespec="microseconds"),
            **({"raw_ns": raw_ns(second), "raw_width_ns": 200} if has_clock else {}),
        )
        for second in (0, RUN_S)
    ]
    built.state = StateSpan(before=ends[0], after=ends[1])
    return built


def meter_lines(
    header: str = "time,power_w", spacing_s: float = 1.0, *, zone: tzinfo = UTC, shift_s: float = 0.0,
    left_out: Sequence[tuple[float, float]] = (), refresh_s: float = 0.0, scale: float = 1.0, constant: bool = False,
    restarts_s: Sequence[float] = (),
) -> Iterator[str]:  # fmt: skip
    """Yield the lines of the meter's file.

    Args:
        header: of watts or of joules.
        spacing_s: between two lines.
        zone: of the times.
        shift_s: added to them.
        left_out: seconds in which it read nothing.
        refresh_s: after which the sensor has a fresh value; the lines between repeat it.
        scale: what values are multiplied by: milliwatts are watts by 1,000.
        constant: it hangs at its first value.
        restarts_s: when a counter begins at 0 again.
    """
    yield header
    drawn_j = 0.0
    for number in range(round((RUN_S + 20) / spacing_s)):
        second = number * spacing_s - 10
        drawn_j = 0.0 if any(second - spacing_s < at <= second for at in restarts_s) else drawn_j
        drawn_j += watts(second) * spacing_s
        read_s = -10.0 if constant else second - second % refresh_s if refresh_s else second
        value = scale * (watts(read_s) if header == "time,power_w" else round(drawn_j, 3))
        if not any(begin_s <= second < end_s for begin_s, end_s in left_out):
            yield f"{(BEGIN + timedelta(seconds=second + shift_s)).astimezone(zone).isoformat()},{value}"
