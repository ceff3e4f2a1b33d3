"""Profiles on disk: written atomically with their digest, read strictly with one-line errors.

They are written as canonical JSON, so that `kit.profile.canonical.digest_proven_by` can check them without decoding.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from kit.errors import KitError
from kit.profile.atomic import write_atomically
from kit.profile.canonical import canonical_json, profile_digest
from kit.profile.density import too_dense
from kit.profile.finite import not_finite
from kit.profile.journal import journal_path
from kit.profile.regular_file import read_regular
from kit.profile.schema import SCHEMA_MAJOR, SCHEMA_NAME, Profile
from kit.profile.sidecar import detach_steps, remove_older_sidecars

# Whatever keeps a profile from being written, its launches are in the journal.
_GO_ON = "go on with `kit run --resume --out"
SCHEMA_PATTERN = re.compile(rf"{re.escape(SCHEMA_NAME)}/(\d{{1,6}})\.(\d{{1,6}})")


class ProfileError(KitError):
    """A file that cannot be read as a profile, and why."""


def write_profile(path: Path, profile: Profile) -> None:
    """Write `profile` to `path`, and its raw steps beside it where they are many; sets `sidecar` and `digest`.

    Raises:
        ProfileError: the disk is full, the folder is gone, or a number is not finite.
    """
    detached = detach_steps(path, profile)
    plain = msgspec.to_builtins(profile)
    found = next(not_finite(plain), None)
    if found is not None:
        raise ProfileError(f"{path}: not written: {found}, which JSON cannot hold; {_GO_ON} {path}`, with a mended kit")
    profile.digest = plain["digest"] = profile_digest(plain)
    try:
        if detached is not None:
            write_atomically(detached.path, detached.data)
        write_atomically(path, canonical_json(plain) + b"\n")
        remove_older_sidecars(path, profile)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be written: {error.strerror}; mend that, then {_GO_ON} {path}`") from None


def read_profile(path: Path) -> Profile:
    """Read and check one profile.

    Raises:
        ProfileError: not readable, not JSON, truncated, of another or newer schema, edited since it was written.
    """
    data = _read(path)
    plain = _decode(path, data)
    check_schema(path, plain.get("schema"))
    try:
        digest = profile_digest(plain)
        # It may take as much memory as the profile.
        del plain
        profile = msgspec.json.decode(data, type=Profile)
    except RecursionError:
        raise ProfileError(f"{path}: nested deeper than any profile; give one written by `kit run`") from None
    except msgspec.ValidationError as error:
        raise ProfileError(f"{path}: not a valid profile: {error}; run `kit run` to write one anew") from None
    if digest != profile.digest:
        raise ProfileError(
            f"{path}: its digest does not match its contents: it was edited or damaged after it was written; "
            "use the original file"
        )
    return profile


def _read(path: Path) -> bytes:
    try:
        data = read_regular(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and os.path.lexists(journal_path(path)):
            raise ProfileError(
                f"{path}: its run has not ended yet, or was killed: `kit run --resume --out {path}` goes on with it"
            ) from None
        reason = error.strerror or str(error)
        raise ProfileError(f"{path}: cannot be read: {reason}; give a profile written by `kit run`") from None
    if too_dense(data):
        raise ProfileError(f"{path}: it would take many times its size in memory; give a profile written by `kit run`")
    return data


def _decode(path: Path, data: bytes) -> dict[str, Any]:
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        if "truncated" in str(error):
            raise ProfileError(
                f"{path}: truncated: the JSON ends after {len(data)} bytes; copy the file again, or take its original"
            ) from None
        raise ProfileError(f"{path}: not JSON: {error}; give a profile written by `kit run`") from None
    if not isinstance(plain, dict):
        raise ProfileError(f"{path}: JSON, but not a profile; give a profile written by `kit run`")
    return plain


def check_schema(path: Path, schema: object) -> None:
    """Refuse a `schema` that is not ours, or of a newer major version.

    Raises:
        ProfileError: it is.
    """
    match = SCHEMA_PATTERN.fullmatch(schema) if isinstance(schema, str) else None
    if match is None:
        raise ProfileError(f"{path}: JSON, but its `schema` is not {SCHEMA_NAME}; give a profile written by `kit run`")
    if int(match[1]) > SCHEMA_MAJOR:
        raise ProfileError(
            f"{path}: schema {match[0]} is newer than {SCHEMA_NAME}/{SCHEMA_MAJOR}.x, which this kit reads; upgrade it"
        )
