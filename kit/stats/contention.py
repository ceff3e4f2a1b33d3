"""Whether other work had the CPUs that a launch could have used: then its step time is not the framework's."""

from __future__ import annotations

from kit.profile.launch import Launch

# Of its CPUs, taken by others. A launch that has all of its CPUs loses under 2 % to the system's own work; beside one
# busy program on two CPUs it is 50 %, and its steps then take whole time slices: sixty times as long, and steady.
TAKEN_SHARE_MAX = 0.1


def is_contended(launch: Launch) -> bool:
    """False also where it is not known."""
    taken = taken_share(launch)
    return taken is not None and taken > TAKEN_SHARE_MAX


def taken_share(launch: Launch) -> float | None:
    """Share of the launch's CPUs that others took in its steady phase; null: not known."""
    used, threads = launch.utilization, launch.threads
    if used is None or used.cpu_taken_pct is None or threads is None or threads.requested < 1:
        return None
    # A thread for each CPU is what every launch is given.
    return used.cpu_taken_pct / (100 * threads.requested)
