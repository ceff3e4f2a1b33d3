"""Raw step times beside the profile: one NumPy archive, whose SHA-256 the profile carries.

Thousands of profiles stay quick to read because only those who want single steps open the sidecar. The SHA-256 begins
its name, too: a profile that is written anew gets another sidecar, and until it has replaced the old one, that has its
own.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kit.errors import KitError
from kit.profile.launch import Launch
from kit.profile.regular_file import read_regular
from kit.profile.schema import Profile, Sidecar
from kit.profile.step_archive import StepArchiveError, largest_archive_b, pack, unpack
from kit.profile.step_series import spread

# Up to this many steps stay in the JSON: 60 to 100 kB, less than the rest of a profile that is large.
INLINE_STEPS_MAX = 10_000
SUFFIX = ".steps.npz"
# Of the SHA-256's characters, in the name.
HASH_CHARACTERS = 8


class SidecarError(KitError):
    """The sidecar is missing, or not the one that the profile was written with."""


class Detached(NamedTuple):
    """A sidecar to be written before the profile that names it."""

    path: Path
    data: bytes


def sidecar_path(profile_path: Path, sha256: str) -> Path:
    """``run.json`` -> ``run.json.1a2b3c4d.steps.npz``."""
    return profile_path.with_name(f"{profile_path.name}.{sha256[:HASH_CHARACTERS]}{SUFFIX}")


def sidecars_beside(profile_path: Path) -> Iterator[Path]:
    """What is called like a sidecar of this profile, or ``run.json.steps.npz``, which profiles of 2026 may name."""
    name = re.escape(profile_path.name)
    pattern = re.compile(rf"{name}(\.[0-9a-f]{{{HASH_CHARACTERS}}})?{re.escape(SUFFIX)}")
    with suppress(OSError):
        yield from sorted(entry for entry in profile_path.parent.iterdir() if pattern.fullmatch(entry.name))


def detach_steps(profile_path: Path, profile: Profile) -> Detached | None:
    """Take the raw steps out of a large profile, for a sidecar; null: they are few, and stay."""
    measured = {name: launch for name, launch in _named_launches(profile) if launch.step_ns is not None}
    series = {name: np.asarray(launch.step_ns, np.int64) for name, launch in measured.items()}
    total = sum(one.size for one in series.values())
    if total <= INLINE_STEPS_MAX:
        for launch in measured.values():
            spread(launch)
        return None
    data = pack(series)
    sha256 = hashlib.sha256(data).hexdigest()
    path = sidecar_path(profile_path, sha256)
    profile.sidecar = Sidecar(file=path.name, sha256=sha256, steps=total)
    for launch in measured.values():
        launch.step_ns = None
    return Detached(path, data)


def remove_older_sidecars(profile_path: Path, profile: Profile) -> None:
    """Delete the sidecars of what this profile has replaced, once it is on disk.

    One stays that cannot be deleted, or that another ``*.json`` in the folder names: a copy of the earlier profile.
    """
    own = None if profile.sidecar is None else profile.sidecar.file
    for path in sidecars_beside(profile_path):
        with suppress(OSError):
            if path.name == own or not stat.S_ISREG(path.lstat().st_mode):
                continue
            if not any(_names(other, path.name) for other in path.parent.glob("*.json") if other != profile_path):
                path.unlink()


def _names(other: Path, sidecar: str) -> bool:
    try:
        return b'"%s"' % os.fsencode(sidecar) in read_regular(other)
    except OSError:
        return False


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
