"""Raw step times beside the profile: one compressed NumPy archive, whose SHA-256 the profile carries.

Thousands of profiles stay quick to read because only those who want single steps open the sidecar.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kit.errors import KitError
from kit.profile.atomic import write_atomically
from kit.profile.launch import Launch
from kit.profile.regular_file import read_regular
from kit.profile.schema import Profile, Sidecar

# Up to this many steps stay in the JSON: about 200 kB, which decodes in a few milliseconds.
INLINE_STEPS_MAX = 20_000


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
    archive = io.BytesIO()
    arrays = {name: np.asarray(launch.step_ns, np.int64) for name, launch in measured.items()}
    np.savez_compressed(archive, **arrays)  # type: ignore[arg-type]
    data = archive.getvalue()
    path = sidecar_path(profile_path)
    write_atomically(path, data)
    profile.sidecar = Sidecar(file=path.name, sha256=hashlib.sha256(data).hexdigest(), steps=total)
    for launch in measured.values():
        launch.step_ns = None


def attach_steps(profile_path: Path, profile: Profile) -> None:
    """Read the sidecar back into the launches, if the profile has one.

    Raises:
        SidecarError: missing, its SHA-256 is not the profile's, or it does not hold the steps that the profile says.
    """
    if profile.sidecar is None:
        return
    # The name comes from a file that may be hostile: only a bare name beside the profile is opened.
    path = profile_path.parent / Path(profile.sidecar.file).name
    try:
        data = read_regular(path)
    except OSError as error:
        raise SidecarError(f"{path}: cannot be read: {error.strerror}; keep it beside its profile") from None
    if hashlib.sha256(data).hexdigest() != profile.sidecar.sha256:
        raise SidecarError(f"{path}: its SHA-256 is not the one in {profile_path.name}; use the original file")
    arrays = _unpack(path, data, [name for name, _ in _named_launches(profile)])
    total = sum(array.size for array in arrays.values())
    if total != profile.sidecar.steps:
        raise _not_the_steps(path, f"it has {total} steps and its profile says {profile.sidecar.steps}")
    for name, launch in _named_launches(profile):
        if name in arrays:
            launch.step_ns = arrays[name].tolist()


def _unpack(path: Path, data: bytes, names: list[str]) -> dict[str, NDArray[np.int64]]:
    try:
        archive = np.load(io.BytesIO(data), allow_pickle=False)
        arrays = {name: archive[name] for name in names if name in archive}
    # What NumPy, zipfile and zlib raise on bytes that are not theirs is not listed anywhere.
    except Exception as error:
        raise _not_the_steps(path, f"not a NumPy archive: {' '.join(str(error).split())}") from None
    for name, array in arrays.items():
        if array.dtype != np.int64 or array.ndim != 1:
            raise _not_the_steps(path, f"{name} is {array.ndim}-dimensional {array.dtype}, not a list of int64")
    return arrays


def _not_the_steps(path: Path, problem: str) -> SidecarError:
    return SidecarError(f"{path}: {problem}; use the file that `kit run` wrote")


def _named_launches(profile: Profile) -> list[tuple[str, Launch]]:
    return [
        (f"cell{cell_index}.launch{launch_index}", launch)
        for cell_index, cell in enumerate(profile.cells)
        for launch_index, launch in enumerate(cell.launches)
    ]
