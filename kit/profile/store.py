"""Profiles on disk: written atomically with their digest, read strictly with one-line errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from kit.errors import KitError
from kit.printable import printable_line
from kit.profile.atomic import write_atomically
from kit.profile.canonical import canonical_json, is_intact, profile_digest
from kit.profile.schema import SCHEMA_MAJOR, SCHEMA_NAME, Profile

# A profile takes about 3 kB a launch. A file larger than this is something else, and decoding it would fill the memory.
FILE_MAX_B = 64 << 20
SCHEMA_PATTERN = re.compile(rf"{re.escape(SCHEMA_NAME)}/(\d{{1,6}})\.(\d{{1,6}})")


class ProfileError(KitError):
    """A file that cannot be read or written as a profile, and why."""


class _Head(msgspec.Struct):
    """What a file says it is."""

    schema: Any = None
    kit: Any = None


def write_profile(path: Path, profile: Profile, steps: Mapping[str, Any] | None = None) -> None:
    """Write `profile` to `path` and its raw steps next to it; sets `sidecar` and `digest`.

    Args:
        path: of the profile.
        profile: to be written; every number in it is finite.
        steps: int64 array of each launch by its `kit.profile.steps.launch_id`.

    Raises:
        OSError: the disk is full, or the folder is gone.
    """
    previous = _sidecar_of(path)
    if steps:
        from kit.profile.steps import pack_steps

        profile.sidecar, data = pack_steps(path, steps)
        write_atomically(path.with_name(profile.sidecar.file), data)
    plain = msgspec.to_builtins(profile)
    profile.digest = plain["digest"] = profile_digest(plain)
    write_atomically(path, canonical_json(plain) + b"\n")
    if previous is not None and (profile.sidecar is None or previous != profile.sidecar.file):
        with suppress(OSError):
            path.with_name(previous).unlink()


def read_profile(path: Path) -> Profile:
    """Read and check one profile.

    Raises:
        ProfileError: not readable, not JSON, truncated, of another schema, edited since it was written.
    """
    data = _read(path)
    try:
        _check_schema(path, msgspec.json.decode(data, type=_Head))
        profile = msgspec.json.decode(data, type=Profile)
        intact = is_intact(data, profile.digest)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{path} is not a valid profile: {error}; write a new one with `kit run`") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if "truncated" in str(error):
            raise ProfileError(
                f"{path} is truncated: the JSON ends after {len(data)} bytes; copy the file again, or use the original"
            ) from None
        raise ProfileError(f"{path} is not JSON: {error}; give a profile written by `kit run`") from None
    if not intact:
        raise ProfileError(
            f"{path}: the digest does not match the content, so the file was edited or damaged; use the original file"
        )
    return profile


def _read(path: Path) -> bytes:
    try:
        size_b = path.stat().st_size
        if size_b > FILE_MAX_B:
            raise ProfileError(f"{path} has {size_b:,} bytes, more than any profile ({FILE_MAX_B:,}); give a profile")
        return path.read_bytes()
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}; give a profile written by `kit run`") from None


def _check_schema(path: Path, head: _Head) -> None:
    match = SCHEMA_PATTERN.fullmatch(head.schema) if isinstance(head.schema, str) else None
    if match is None:
        raise ProfileError(f"{path} is JSON, but not of schema {SCHEMA_NAME}; give a profile written by `kit run`")
    readable = f"{SCHEMA_NAME}/{SCHEMA_MAJOR}.x"
    if int(match[1]) > SCHEMA_MAJOR:
        raise ProfileError(f"{path} has schema {match[0]}, newer than {readable} of this kit; upgrade the kit")
    if int(match[1]) < SCHEMA_MAJOR:
        version = head.kit.get("version") if isinstance(head.kit, dict) else None
        reader = f"kit {printable_line(version)}" if isinstance(version, str) else "the kit that wrote it"
        raise ProfileError(
            f"{path} has schema {match[0]}, older than {readable} of this kit; read it with {reader}, or measure again"
        )


def _sidecar_of(path: Path) -> str | None:
    """Return the sidecar's name of the profile that is about to be replaced, if there is one."""
    with suppress(KitError, AttributeError):
        previous = read_profile(path).sidecar
        return None if previous is None else Path(previous.file).name
    return None
