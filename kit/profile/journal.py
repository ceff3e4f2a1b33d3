"""The journal: what a run has measured so far, on disk before the next launch begins.

One line a record: CRC-32 in hexadecimal, a space, JSON. The first is the header, with everything that a resumed run
needs; then one line a finished launch, flushed to the disk. A torn last line is left out when reading; nothing else is.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Self

import msgspec

from kit.errors import KitError
from kit.profile.atomic import sync_folder
from kit.profile.identity import Identity, State
from kit.profile.launch import Launch, LaunchRequest
from kit.profile.schema import SuiteUsed
from kit.profile.sensor import SensorReport


class JournalError(KitError):
    """The journal cannot be used, and what to do."""


class JournalHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided before the first launch."""

    id: str
    created: str
    kit: str
    identity: Identity
    state_before: State
    sensors: list[SensorReport]
    suite: SuiteUsed
    requests: list[LaunchRequest]  # every launch, in order


def journal_path(profile_path: Path) -> Path:
    """``run.json`` -> ``run.json.journal``."""
    return profile_path.with_name(profile_path.name + ".journal")


class Journal:
    """An open journal, to which finished launches are added."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Self:
        """Begin a run; refuses where an unfinished run already keeps its journal."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        except FileExistsError:
            raise JournalError(
                f"{path}: an unfinished run is kept there; go on with `--resume`, or remove it to begin anew"
            ) from None
        except OSError as error:
            raise JournalError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
        journal = cls(path, descriptor)
        journal._append(msgspec.json.encode(header))
        sync_folder(path.parent)
        return journal

    @classmethod
    def reopen(cls, path: Path) -> tuple[Self, JournalHeader, list[Launch]]:
        """Go on with a run: what it had decided, and the launches it had finished."""
        header, launches, sound_bytes = read_journal(path)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.ftruncate(descriptor, sound_bytes)
        return cls(path, descriptor), header, launches

    def add(self, launch: Launch) -> None:
        """Write one finished launch and wait until the disk has it."""
        self._append(msgspec.json.encode(launch))

    def close(self) -> None:
        """Close the file; it stays on disk."""
        os.close(self._descriptor)

    def remove(self) -> None:
        """Close and delete: the profile now holds everything."""
        self.close()
        self.path.unlink()

    def _append(self, payload: bytes) -> None:
        line = memoryview(b"%08x %s\n" % (zlib.crc32(payload), payload))
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)


def read_journal(path: Path) -> tuple[JournalHeader, list[Launch], int]:
    """Header, finished launches, and how many bytes of the file are sound.

    Raises:
        JournalError: there is no journal, or its header is not sound.
    """
    try:
        data = path.read_bytes()
    except OSError:
        raise JournalError(f"{path}: there is no unfinished run to resume; leave out --resume to begin one") from None
    payloads, sound_bytes = _sound_payloads(data)
    if not payloads:
        raise JournalError(f"{path}: its first line is damaged, so the run cannot be resumed; remove it to begin anew")
    try:
        header = msgspec.json.decode(payloads[0], type=JournalHeader)
        launches = [msgspec.json.decode(payload, type=Launch) for payload in payloads[1:]]
    except msgspec.DecodeError as error:
        raise JournalError(
            f"{path}: written by another version of the kit: {error}; resume with that version"
        ) from None
    return header, launches, sound_bytes


def _sound_payloads(data: bytes) -> tuple[list[bytes], int]:
    payloads: list[bytes] = []
    sound_bytes = 0
    for line in data.splitlines(keepends=True):
        checksum, _, payload = line.rstrip(b"\n").partition(b" ")
        if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(payload):
            break
        payloads.append(payload)
        sound_bytes += len(line)
    return payloads, sound_bytes
