"""What an interrupted run's profile gives back to its journal: the whole of it, or launches whose lines are damaged."""

from __future__ import annotations

import os
from pathlib import Path

from kit.engines.energy_window import steady_s_min
from kit.errors import KitError
from kit.profile.journal import Journal, JournalHeader, Kept, check_sound, journal_path
from kit.profile.launch import Launch
from kit.profile.run_plan import RunPlan
from kit.profile.schema import Profile
from kit.profile.sidecar import attach_steps
from kit.profile.store import read_profile


def restore_journal(path: Path) -> bool:
    """Write the journal beside the profile `path`, if the profile's run was interrupted and its journal is gone.

    Nothing is done where there is a journal, no profile, a complete one, or one without a launch that says on which
    CPUs it ran.

    Returns:
        Whether it was written.

    Raises:
        KitError: the profile or its sidecar is damaged, or the journal cannot be written.
    """
    if os.path.lexists(journal_path(path)) or not os.path.isfile(path):  # noqa: PTH113 - Path's raise on odd names
        return False
    profile = read_profile(path)
    cpus = _cpus(_launches(profile))
    if not profile.interrupted or cpus is None:
        return False
    launches = _with_steps(path, profile)
    Journal.create(journal_path(path), _header(profile, cpus), launches).close()
    return True


def launches_to_recover(path: Path, kept: Kept) -> list[Launch]:
    """Launches that the interrupted profile `path` has and its journal has not; they need not run again.

    None where there is no profile, or it is damaged, too, or another run's.
    """
    try:
        profile = read_profile(path)
        if profile.id != kept.header.id:
            return []
        launches = _with_steps(path, profile)
    except KitError:
        return []
    known = {(launch.cell_key, launch.round) for launch in kept.launches}
    return [launch for launch in launches if (launch.cell_key, launch.round) not in known]


def _launches(profile: Profile) -> list[Launch]:
    return [launch for cell in profile.cells for launch in cell.launches]


def _with_steps(path: Path, profile: Profile) -> list[Launch]:
    attach_steps(path, profile)
    launches = _launches(profile)
    for launch in launches:
        check_sound(path, launch)
    return launches


def _cpus(launches: list[Launch]) -> list[int] | None:
    return next((launch.threads.cpus for launch in launches if launch.threads is not None), None)


def _header(profile: Profile, cpus: list[int]) -> JournalHeader:
    suite = profile.suite
    return JournalHeader(
        id=profile.id,
        created=profile.created,
        kit=profile.kit,
        identity=profile.identity,
        state_before=profile.state.before,
        sensors=profile.sensors,
        suite=suite,
        plan=RunPlan(
            cells=[result.cell for result in profile.cells],
            steps=suite.plan,
            steady_s_min=steady_s_min(suite.plan, profile.sensors),
            launches=suite.launches,
            precision_pct=suite.precision_pct,
            data=suite.data,
            seed=suite.seed,
            cpus=cpus,
            # What "auto" had found.
            clock="monotonic_raw" if profile.clock is None else profile.clock.source,
            observer_s=suite.observer_s,
        ),
        host_band=profile.host_band,
    )
