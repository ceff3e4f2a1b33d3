"""Raw step times beside the profile: one NumPy archive, whose SHA-256 the profile carries.

Thousands of profiles stay quick to read because only those who want single steps open the sidecar.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from kit.errors import KitError
from kit.profile.atomic import write_atomically
from kit.profile.launch import Launch
from kit.profile.regular_file import read_regular
from kit.profile.schema import Profile, Sidecar
from kit.profile.step_archive import StepArchiveError, largest_archive_b, pack, unpack

# Up to this many steps stay in the JSON: 60 to 100 kB, less than the rest of a profile that is large.
INLINE_STEPS_MAX = 10_000


class SidecarError(KitError):
    """The sidecar is missing, or not the one that the profile was written with."""


def sidecar_path(profile_path: Path) -> Path:
    """``run.json`` -> ``run.json.steps.npz``."""
    return profile_path.with_name(profile_path.name + ".steps.npz")


def detach_steps(profile_path: Path, profile: Profile) -> None:
    """Move the raw steps of a large profile into its sidecar, written before the profile that names it."""
    measured = {name: launch for name, launch in _named_launches(profile) if launch.step_ns is not None}
    total = sum(len(launch.step_ns or ()) for launch in measured.values())
    if total <= INLINE_STEPS_MAX:
        return
    data = pack({name: np.asarray(launch.step_ns, np.int64) for name, launch in measured.items()})
    path = sidecar_path(profile_path)
    write_atomically(path, data)
    profile.sidecar = Sidecar(file=path.name, sha256=hashlib.sha256(data).hexdigest(), steps=total)
    for launch in measured.values():
        launch.step_ns = None


def attach_steps(profile_path: Path, profile: Profile) -> None:
    """Read the sidecar back into the launches, if the profile has one.

    `step_ns` is then an array of int64, a fifth of what a list takes; `kit.profile.step_archive.json_of_steps` encodes
    it.

    Raises:
        SidecarError: missing, its SHA-256 is not the profile's, or it does not hold the steps that the profile says.
    """
    if profile.sidecar is None:
        return
    # The name comes from a file that may be hostile: only a bare name beside the profile is opened.
    path = profile_path.parent / Path(profile.sidecar.file).name
    launches = dict(_named_launches(profile))
    try:
        data = read_regular(path, largest_archive_b(len(launches), profile.sidecar.steps))
    except OSError as error:
        raise SidecarError(f"{path}: cannot be read: {error.strerror}; keep it beside its profile") from None
    if hashlib.sha256(data).hexdigest() != profile.sidecar.sha256:
        raise SidecarError(f"{path}: its SHA-256 is not the one in {profile_path.name}; use the original file")
    try:
        arrays = unpack(data, launches.keys())
    except StepArchiveError as error:
        raise _not_the_steps(path, str(error)) from None
    total = sum(array.size for array in arrays.values())
    if total != profile.sidecar.steps:
        raise _not_the_steps(path, f"it has {total} steps and its profile says {profile.sidecar.steps}")
    for name, array in arrays.items():
        launches[name].step_ns = array  # type: ignore[assignment]


def _not_the_steps(path: Path, problem: str) -> SidecarError:
    return SidecarError(f"{path}: {problem}; use the file that `kit run` wrote")


def _named_launches(profile: Profile) -> list[tuple[str, Launch]]:
    return [
        (f"cell{cell_index}.launch{launch_index}", launch)
        for cell_index, cell in enumerate(profile.cells)
        for launch_index, launch in enumerate(cell.launches)
    ]
