"""Profiles on disk: canonical JSON with its digest, and a NumPy archive of all raw steps beside it.

Canonical: UTF-8, object keys sorted by code point, no white space, integers as they are, floats in the shortest form
that reads back the same. (RFC 8785 is not used: it cannot hold integers above 2^53, which nanosecond stamps pass.)

    run.json                        the profile
    run.json.1a2b3c4d.steps.npz     names: of the launches    a0, a1, …: the steps of each

The archive, NumPy's zip, has of each launch the first step, the warm-up steps, then each block's lead-in and timed
steps, in order. The profile carries its SHA-256. It is read by the counts that its profile has, so that nothing larger
is ever unpacked, and only what `kit run` writes is read: NumPy's own reader would take headers of any form and arrays
of any size. Only functions that handle steps import NumPy, whose import takes longer than reading a profile.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from kit.errors import KitError
from kit.files import read_limited, write_atomically
from kit.printable import printable_line
from kit.profile.consistency import CheckError, check_profile, longest_ns, shortened, step_counts
from kit.profile.schema import SCHEMA_MAJOR, SCHEMA_NAME, Launch, Profile, Sidecar

if TYPE_CHECKING:
    import zipfile

    import numpy as np
    from numpy.typing import NDArray

# A profile takes about 3 kB a launch. A file larger than this is something else, and decoding it would fill the memory.
FILE_MAX_B = 64 << 20
# A step takes one to three bytes there; no run has made a tenth of so many.
SIDECAR_MAX_B = 1 << 30
SCHEMA_PATTERN = re.compile(rf"{re.escape(SCHEMA_NAME)}/(\d{{1,6}})\.(\d{{1,6}})")

Steps: TypeAlias = "NDArray[np.int64]"
# "step": timed, and waited for individually.
StepKind = Literal["first", "warmup", "lead_in", "step"]

NAMES = "names.npy"
# NumPy's header of such an array has 128 bytes.
HEADER_MAX_B = 256
_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(?s:..)\{'descr': '<(i8|U\d{1,5})', 'fortran_order': False, 'shape': \((\d{1,15}),\), \} *\n"
)
# An entry of a zip, twice: in front of the data and in the list at the end.
ENTRY_B = 512
# What deflate adds to bytes that it cannot make smaller is 5 in 16,383; a part of a thousandth is more.
DEFLATE_PART = 1024
CODE_POINT_B, STEP_B = 4, 8


class ProfileError(KitError):
    """A file that cannot be read or written as a profile, and why."""


class ArchiveError(ValueError):
    """A file that is no archive of a profile's steps."""


class _Head(msgspec.Struct):
    """What a file says it is."""

    schema: Any = None
    kit: Any = None


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Encode a JSON value or a structure of ours."""
    return msgspec.json.encode(value, order="sorted")


def sha256_of(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the SHA-256 over the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def profile_digest(profile: dict[str, Any]) -> str:
    """Return the digest of a decoded profile: over everything but its own `digest` field."""
    return sha256_of({name: value for name, value in profile.items() if name != "digest"})


def write_profile(
    path: Path,
    profile: Profile,
    steps: Mapping[str, Steps] | None = None,
    *,
    replaces: bool = True,
    is_checked: bool = False,
) -> None:
    """Write `profile` to `path` and its raw steps next to it; sets `sidecar` and `digest`.

    The sidecar of the profile that is replaced goes, if it is one: another file that a profile names stays.

    Args:
        path: of the profile.
        profile: to be written; every number in it is finite.
        steps: int64 array of each launch by its `launch_id`.
        replaces: any file. If not, only an earlier profile of the same run.
        is_checked: as a reader will check it, before anything is written.

    Raises:
        ProfileError: a value is none that a profile can have.
        FileExistsError: another file is there, and this one `replaces` none.
        OSError: the disk is full, or the folder is gone.
    """
    earlier = None
    with suppress(KitError):
        earlier = read_profile(path)
    is_of_this_run = earlier is not None and earlier.id == profile.id
    if not (replaces or is_of_this_run) and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    packed = b""
    if steps:
        profile.sidecar, packed = pack_steps(path, steps)
    plain = msgspec.to_builtins(profile)
    profile.digest = plain["digest"] = profile_digest(plain)
    data = canonical_json(plain) + b"\n"
    if is_checked:
        try:
            check_profile(msgspec.json.decode(data, type=Profile))
        except (msgspec.ValidationError, CheckError) as error:
            raise ProfileError(
                f"{path}: no reader would take what was measured ({shortened(str(error))}); please report this"
            ) from None
    if profile.sidecar is not None and steps:
        write_atomically(path.with_name(profile.sidecar.file), packed)
    write_atomically(path, data, replaces=replaces or is_of_this_run)
    if earlier is not None and earlier.sidecar is not None and earlier.sidecar != profile.sidecar:
        _remove_sidecar(path, earlier.sidecar)


def _sidecar_name(profile_path: Path, sha256: str) -> str:
    """Return the name of a profile's sidecar; a profile that is written anew gets another one."""
    return f"{profile_path.name}.{sha256[:8]}.steps.npz"


def _remove_sidecar(profile_path: Path, sidecar: Sidecar) -> None:
    """Remove the sidecar of a profile that has been replaced: a file of that name, with the content that it states."""
    if sidecar.file != _sidecar_name(profile_path, sidecar.sha256):
        return
    file = profile_path.with_name(sidecar.file)
    with suppress(OSError):
        if not file.is_symlink() and hashlib.sha256(read_limited(file, SIDECAR_MAX_B)).hexdigest() == sidecar.sha256:
            file.unlink()


def read_profile(path: Path) -> Profile:
    """Read and check one profile.

    Raises:
        ProfileError: not readable, not JSON, truncated, of another schema, edited since it was written.
    """
    try:
        data = read_limited(path, FILE_MAX_B)
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}; give a profile written by `kit run`") from None
    try:
        try:
            profile = msgspec.json.decode(data, type=Profile)
        except msgspec.ValidationError:
            # That it has another schema is a better reason.
            head = msgspec.json.decode(data, type=_Head)
            _check_schema(path, head.schema, head.kit.get("version") if isinstance(head.kit, dict) else None)
            raise
        _check_schema(path, profile.schema, profile.kit.version)
        # A file as it was written is canonical: without its digest it is what was hashed. Others are hashed anew.
        digest = b'"digest":"%b",' % profile.digest.encode()
        begin, content = max(0, data.rfind(digest)), memoryview(data)
        hashed = hashlib.sha256(content[:begin])
        hashed.update(content[begin + len(digest) : len(data) - data.endswith(b"\n")])
        is_intact = hashed.hexdigest() == profile.digest
        is_intact = is_intact or profile_digest(msgspec.json.decode(data)) == profile.digest
    except msgspec.ValidationError as error:
        why = shortened(str(error))
        raise ProfileError(f"{path} is not a valid profile: {why}; write a new one with `kit run`") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        # Cut within a number, the file has an error at its end.
        if "truncated" in str(error) or f"(byte {len(data)})" in str(error):
            raise ProfileError(
                f"{path} is truncated: the JSON ends after {len(data)} bytes; copy the file again, or use the original"
            ) from None
        why = shortened(str(error))
        raise ProfileError(f"{path} is not JSON: {why}; give a profile written by `kit run`") from None
    if not is_intact:
        raise ProfileError(
            f"{path}: the digest does not match the content, so the file was edited or damaged; use the original file"
        )
    try:
        check_profile(profile)
    except CheckError as error:
        raise ProfileError(f"{path} is not a valid profile: {error}; write a new one with `kit run`") from None
    return profile


def _check_schema(path: Path, schema: object, version: object) -> None:
    match = SCHEMA_PATTERN.fullmatch(schema) if isinstance(schema, str) else None
    if match is None:
        raise ProfileError(f"{path} is JSON, but not of schema {SCHEMA_NAME}; give a profile written by `kit run`")
    readable = f"{SCHEMA_NAME}/{SCHEMA_MAJOR}.x"
    if int(match[1]) > SCHEMA_MAJOR:
        raise ProfileError(f"{path} has schema {match[0]}, newer than {readable} of this kit; upgrade the kit")
    if int(match[1]) < SCHEMA_MAJOR:
        reader = f"kit {printable_line(version)}" if isinstance(version, str) else "the kit that wrote it"
        raise ProfileError(
            f"{path} has schema {match[0]}, older than {readable} of this kit; read it with {reader}, or measure again"
        )


def launch_id(launch: Launch) -> str:
    """Return the name of a launch within its profile: ``r3 cnn/jax/… in cnn/train/…``."""
    return f"r{launch.round} {launch.cell_key} in {launch.group}"


def labeled_steps(launch: Launch, steps: Steps) -> Iterator[tuple[int | None, StepKind, Steps]]:
    """Yield a launch's steps in the order in which they ran, with the cycle of their block (null: before the first)."""
    sizes = launch.blocks.raw_steps()
    end = steps.size - sum(sizes)
    before = steps[:end]
    yield None, "first", before[:1]
    yield None, "warmup", before[1:]
    for size, lead_in, cycle in zip(sizes, launch.blocks.lead_in, launch.blocks.cycle, strict=True):
        begin, end = end, end + size
        yield cycle, "lead_in", steps[begin : begin + lead_in]
        yield cycle, "step", steps[begin + lead_in : end]


def timed_steps(launch: Launch, steps: Steps, cycles: Collection[int] | None = None) -> Steps:
    """Return the steps that a launch's blocks timed individually, without lead-ins; with `cycles`, those of these."""
    import numpy as np

    parts = labeled_steps(launch, steps)
    timed = [part for cycle, kind, part in parts if kind == "step" and (cycles is None or cycle in cycles)]
    return np.concatenate([*timed, np.array([], np.int64)])


def pack_steps(profile_path: Path, steps: Mapping[str, Steps]) -> tuple[Sidecar, bytes]:
    """Return the sidecar's entry in the profile, and its bytes."""
    import numpy as np

    packed = io.BytesIO()
    # Names of launches are no file names: they go into an array of their own.
    names = sorted(steps)
    arrays = {f"a{index}": np.asarray(steps[name], np.int64) for index, name in enumerate(names)}
    np.savez_compressed(packed, names=np.array(names, dtype=np.str_), **arrays)  # type: ignore[arg-type]
    data = packed.getvalue()
    sha256 = hashlib.sha256(data).hexdigest()
    name = _sidecar_name(profile_path, sha256)
    return Sidecar(file=name, sha256=sha256, steps=sum(array.size for array in arrays.values())), data


def read_steps(profile_path: Path, profile: Profile) -> dict[str, Steps]:
    """Return the raw steps of each launch by its `launch_id`; empty where the profile has no sidecar.

    Raises:
        ProfileError: the sidecar is missing, its SHA-256 is not the profile's, or it is no archive of steps.
    """
    if profile.sidecar is None:
        return {}
    launches = [launch for result in profile.cells for launch in result.launches]
    counts = {launch_id(launch): step_counts(launch) for launch in launches}
    # The name comes from a file that may be hostile: only a bare name in the profile's folder is opened.
    path = profile_path.parent / Path(profile.sidecar.file).name
    try:
        data = read_limited(path, most_bytes(counts))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ProfileError(f"{path} cannot be read: {why}; keep the original file next to its profile") from None
    if hashlib.sha256(data).hexdigest() != profile.sidecar.sha256:
        raise ProfileError(f"{path}: its SHA-256 differs from the one in {profile_path.name}; use the original file")
    try:
        return unpack(data, counts, {launch_id(launch): longest_ns(launch) for launch in launches})
    except ArchiveError as error:
        why = shortened(str(error))
        raise ProfileError(f"{path}: not the archive of this profile's steps ({why}); use the original file") from None


def most_bytes(counts: Mapping[str, range]) -> int:
    """Return how large an archive of so many steps can be."""
    whole_b = sum(STEP_B * count[-1] for count in counts.values()) + _names_b(counts)
    return whole_b + whole_b // DEFLATE_PART + (HEADER_MAX_B + ENTRY_B) * (len(counts) + 2)


def unpack(data: bytes, counts: Mapping[str, range], most_ns: Mapping[str, int]) -> dict[str, Steps]:
    """Return the steps of each launch.

    Args:
        data: the archive.
        counts: how many steps each launch may have, by its name.
        most_ns: how long a step of each launch may be.

    Raises:
        ArchiveError: it is no archive, is damaged, or has other steps; the message says which.
    """
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if members.keys() != {NAMES, *(f"a{index}.npy" for index in range(len(counts)))}:
                raise ArchiveError(f"it has not the {len(counts)} launches of its profile")
            names = [str(name) for name in _array(archive, members[NAMES], _names_b(counts), "U")]
            if sorted(names) != sorted(counts):
                raise ArchiveError("its launches are not those of its profile")
            by_launch = {}
            for index, name in enumerate(names):
                most_b = STEP_B * counts[name][-1]
                steps: Steps = _array(archive, members[f"a{index}.npy"], most_b, "i8")  # type: ignore[assignment]
                if steps.size not in counts[name]:
                    raise ArchiveError(f"{name} has {steps.size} steps, and its profile says {counts[name][-1]}")
                if steps.size and not (steps.min() >= 0 and steps.max() <= most_ns[name]):
                    odd_ns = steps.min() if steps.min() < 0 else steps.max()
                    raise ArchiveError(f"{name} has a step of {odd_ns} ns, and its phases and blocks are shorter")
                by_launch[name] = steps
    # A zip raises these where it is damaged, encrypted or of another kind.
    except (
        OSError, EOFError, RuntimeError, ValueError, OverflowError, struct.error, zipfile.BadZipFile, zlib.error,
    ) as error:  # fmt: skip
        raise ArchiveError(str(error)) from None
    return by_launch


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most_b: int, kind: str) -> NDArray[np.generic]:
    """Return one array of at most so many bytes."""
    import zipfile

    import numpy as np

    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(f"{member.filename} is packed in another way")
    if member.file_size > most_b + HEADER_MAX_B:
        raise ArchiveError(f"{member.filename} has {member.file_size:,} bytes, and the limit is {most_b:,}")
    # It is never unpacked further than it says.
    with archive.open(member) as file:
        content = file.read(member.file_size + 1)
    header = _HEADER.match(content, 0, HEADER_MAX_B)
    if header is None or not header[1].decode().startswith(kind) or header[1] == b"U0":
        raise ArchiveError(f"{member.filename} is not an array that `kit run` writes")
    dtype, count = np.dtype(f"<{header[1].decode()}"), int(header[2])
    if len(content) != header.end() + count * dtype.itemsize:
        raise ArchiveError(f"{member.filename} is not as long as it says")
    return np.frombuffer(content, dtype, count, header.end())


def _names_b(counts: Mapping[str, range]) -> int:
    """Return how many bytes the array of names has: each as many as the longest."""
    return CODE_POINT_B * len(counts) * max(map(len, counts), default=0)
