"""Raw step times beside the profile: one NumPy archive, whose SHA-256 the profile carries.

Of each launch one array: the first step, the warm-up steps, then each block's lead-in and timed steps, in order.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kit.profile.launch import Launch
from kit.profile.schema import Profile, Sidecar
from kit.profile.store import ProfileError

SUFFIX = ".steps.npz"
# Of the SHA-256's characters, in the name: a profile that is written anew gets another sidecar.
HASH_CHARACTERS = 8

Steps = NDArray[np.int64]


def launch_id(launch: Launch) -> str:
    """Return the name of a launch within its profile: ``r3 cnn/jax/… in cnn/train/…``."""
    return f"r{launch.round} {launch.cell_key} in {launch.group}"


def timed_steps(launch: Launch, steps: Steps, cycles: Collection[int] | None = None) -> Steps:
    """Return the steps that a launch's blocks timed one by one, lead-ins left out; with `cycles`, those of these."""
    if not launch.blocks.steps:
        return np.array([], np.int64)
    sizes = np.array(launch.blocks.raw_steps(), np.int64)
    blocks = np.split(steps[steps.size - int(sizes.sum()) :], np.cumsum(sizes)[:-1])
    timed = [
        block[lead_in:]
        for block, lead_in, cycle in zip(blocks, launch.blocks.lead_in, launch.blocks.cycle, strict=True)
        if cycles is None or cycle in cycles
    ]
    return np.concatenate([*timed, np.array([], np.int64)])


def pack_steps(profile_path: Path, steps: Mapping[str, Steps]) -> tuple[Sidecar, bytes]:
    """Return the sidecar's entry in the profile, and its bytes."""
    packed = io.BytesIO()
    # Names of launches are no file names: they go into an array of their own.
    names = sorted(steps)
    arrays = {f"a{place}": np.asarray(steps[name], np.int64) for place, name in enumerate(names)}
    np.savez_compressed(packed, names=np.array(names, dtype=np.str_), **arrays)  # type: ignore[arg-type]
    data = packed.getvalue()
    sha256 = hashlib.sha256(data).hexdigest()
    name = f"{profile_path.name}.{sha256[:HASH_CHARACTERS]}{SUFFIX}"
    return Sidecar(file=name, sha256=sha256, steps=sum(array.size for array in arrays.values())), data


def read_steps(profile_path: Path, profile: Profile) -> dict[str, Steps]:
    """Return the raw steps of each launch by its `launch_id`; empty where the profile has no sidecar.

    Raises:
        ProfileError: the sidecar is missing, its SHA-256 is not the profile's, or it is no archive of steps.
    """
    if profile.sidecar is None:
        return {}
    # The name comes from a file that may be hostile: only a bare name beside the profile is opened.
    path = profile_path.parent / Path(profile.sidecar.file).name
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ProfileError(f"{path} cannot be read: {why}; keep it next to its profile") from None
    if hashlib.sha256(data).hexdigest() != profile.sidecar.sha256:
        raise ProfileError(f"{path}: its SHA-256 differs from the one in {profile_path.name}; use the original file")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            by_launch = {str(name): arrays[f"a{place}"] for place, name in enumerate(arrays["names"])}
        if any(steps.ndim != 1 or steps.dtype != np.int64 for steps in by_launch.values()):
            raise ValueError("an array is not of integers in a row")
        return by_launch
    except (
        OSError,
        EOFError,
        ValueError,
        TypeError,
        KeyError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise ProfileError(
            f"{path}: not a NumPy archive of steps ({error}); use the file that `kit run` wrote"
        ) from None
