"""Raw step times: a NumPy archive beside the profile, which carries its SHA-256.

It has an array for each launch: the first step, the warm-up steps, then each block's lead-in and timed steps, in order.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kit.profile.launch import Launch
from kit.profile.schema import Profile, Sidecar
from kit.profile.store import ProfileError

# What NumPy raises for bytes that are no archive of arrays, or are one that was cut or altered.
NO_ARCHIVE = (OSError, EOFError, ValueError, TypeError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError)

Steps = NDArray[np.int64]
# "step": timed, and waited for individually.
StepKind = Literal["first", "warmup", "lead_in", "step"]


def labeled_steps(launch: Launch, steps: Steps) -> Iterator[tuple[int | None, StepKind, Steps]]:
    """Yield a launch's steps in the order in which they ran, with the cycle of their block (null: before the first)."""
    sizes = launch.blocks.raw_steps()
    before, *blocks = np.split(steps, np.cumsum([steps.size - sum(sizes), *sizes])[:-1])
    yield None, "first", before[:1]
    yield None, "warmup", before[1:]
    for block, lead_in, cycle in zip(blocks, launch.blocks.lead_in, launch.blocks.cycle, strict=True):
        yield cycle, "lead_in", block[:lead_in]
        yield cycle, "step", block[lead_in:]


def timed_steps(launch: Launch, steps: Steps, cycles: Collection[int] | None = None) -> Steps:
    """Return the steps that a launch's blocks timed individually, without lead-ins; with `cycles`, those of these."""
    parts = labeled_steps(launch, steps)
    timed = [part for cycle, kind, part in parts if kind == "step" and (cycles is None or cycle in cycles)]
    return np.concatenate([*timed, np.array([], np.int64)])


def pack_steps(profile_path: Path, steps: Mapping[str, Steps]) -> tuple[Sidecar, bytes]:
    """Return the sidecar's entry in the profile, and its bytes."""
    packed = io.BytesIO()
    # Names of launches are no file names: they go into an array of their own.
    names = sorted(steps)
    arrays = {f"a{index}": np.asarray(steps[name], np.int64) for index, name in enumerate(names)}
    np.savez_compressed(packed, names=np.array(names, dtype=np.str_), **arrays)  # type: ignore[arg-type]
    data = packed.getvalue()
    sha256 = hashlib.sha256(data).hexdigest()
    # With a part of the SHA-256 in the name: a profile that is written anew gets another sidecar.
    name = f"{profile_path.name}.{sha256[:8]}.steps.npz"
    return Sidecar(file=name, sha256=sha256, steps=sum(array.size for array in arrays.values())), data


def read_steps(profile_path: Path, profile: Profile) -> dict[str, Steps]:
    """Return the raw steps of each launch by its `launch_id`; empty where the profile has no sidecar.

    Raises:
        ProfileError: the sidecar is missing, its SHA-256 is not the profile's, or it is no archive of steps.
    """
    if profile.sidecar is None:
        return {}
    # The name comes from a file that may be hostile: only a bare name in the profile's folder is opened.
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
            by_launch = {str(name): arrays[f"a{index}"] for index, name in enumerate(arrays["names"])}
        if any(steps.ndim != 1 or steps.dtype != np.int64 for steps in by_launch.values()):
            raise ValueError("an array is not of integers in a row")
    except NO_ARCHIVE as error:
        raise ProfileError(
            f"{path}: not a NumPy archive of steps ({error}); use the file that `kit run` wrote"
        ) from None
    return by_launch
