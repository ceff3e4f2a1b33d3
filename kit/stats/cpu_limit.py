"""Whether a CPU limit stopped a launch: most of its steps then run at full speed, and some wait for the next period.

The median step does not see the waiting, and throughput made from it would be that of no machine: of half a core of
two, PyTorch's mlp inference had a median step of 1.03 ms and took 4.85 ms a step.
"""

from __future__ import annotations

from kit.profile.launch import Launch

# Of its CPUs' time, stopped: from here on the mean step is longer than the median one by more than two levels may
# differ that are called one. Without a limit it is exactly nothing.
STOPPED_SHARE_MAX = 0.01


def stopped_share(launch: Launch) -> float | None:
    """Share of its CPUs' time in the steady phase for which a CPU limit stopped them; null: not known."""
    used, threads = launch.utilization, launch.threads
    steady_ns = sum(phase.duration_ns for phase in launch.phases if phase.name == "steady")
    if used is None or used.throttled_ns is None or threads is None or threads.requested < 1 or steady_ns <= 0:
        return None
    # The kernel counts each stopped CPU by itself; other processes of the same group may be stopped, too.
    return min(1.0, used.throttled_ns / (steady_ns * threads.requested))
