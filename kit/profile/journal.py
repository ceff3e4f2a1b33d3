"""The journal: what a run has measured so far, on disk before the next launch begins.

One line a record: CRC-32 in hexadecimal, a space, JSON. The first is the header, with everything that a resumed run
needs; then one line a finished launch, flushed to the disk. A damaged line costs its own launch and no other; a torn
last line is cut off before the next is written.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from kit.errors import KitError
from kit.profile.atomic import sync_folder
from kit.profile.identity import Identity, State
from kit.profile.launch import Launch
from kit.profile.regular_file import open_regular, read_regular
from kit.profile.run_plan import RunPlan
from kit.profile.schema import HostBand, SuiteUsed
from kit.profile.sensor import SensorReport

SUFFIX = ".journal"


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
    plan: RunPlan
    host_band: HostBand | None = None


def journal_path(profile_path: Path) -> Path:
    """``run.json`` -> ``run.json.journal``."""
    return profile_path.with_name(profile_path.name + SUFFIX)


class Kept(NamedTuple):
    """What a journal holds."""

    header: JournalHeader
    launches: list[Launch]  # the sound ones
    damaged: int  # lines that are not; their launches are missing
    ended_bytes: int  # up to the last whole line; what follows is torn


class Journal:
    """An open, locked journal, to which finished launches are added."""

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
        _lock(path, descriptor)
        journal = cls(path, descriptor)
        try:
            journal._append(msgspec.json.encode(header))
            sync_folder(path.parent)
        except OSError as error:
            # Nothing has been measured yet: nothing is left behind.
            journal.remove()
            raise JournalError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
        return journal

    @classmethod
    def reopen(cls, path: Path) -> tuple[Self, Kept]:
        """Go on with a run: what it had decided, and the launches it had finished.

        Raises:
            JournalError: there is no journal, another run is writing it, or it cannot be read or written.
        """
        try:
            descriptor = open_regular(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise _unusable(path, error) from None
        try:
            _lock(path, descriptor)
            kept = read_journal(path)
            # A torn line would swallow the beginning of the next one.
            os.ftruncate(descriptor, kept.ended_bytes)
        except OSError as error:
            os.close(descriptor)
            raise _unusable(path, error) from None
        except JournalError:
            os.close(descriptor)
            raise
        return cls(path, descriptor), kept

    def add(self, launch: Launch) -> None:
        """Write one finished launch and wait until the disk has it.

        Raises:
            JournalError: the disk is full, or the journal has been removed; the launches before are on disk.
        """
        try:
            self._append(msgspec.json.encode(launch))
            removed = os.fstat(self._descriptor).st_nlink == 0
        except OSError as error:
            raise JournalError(
                f"{self.path}: cannot be written: {error.strerror}; mend that, then go on with "
                f"`kit run --resume --out {self._profile_path}`; this launch is run again"
            ) from None
        if removed:
            raise JournalError(
                f"{self.path}: has been removed while the run wrote it, so `--resume` cannot go on; begin the run anew"
            )

    def close(self) -> None:
        """Close the file; it stays on disk."""
        os.close(self._descriptor)

    def remove(self) -> None:
        """Delete and close: the profile now holds everything. The lock is held until nobody can find the file."""
        self.path.unlink(missing_ok=True)
        self.close()

    @property
    def _profile_path(self) -> Path:
        return self.path.with_name(self.path.name.removesuffix(SUFFIX))

    def _append(self, payload: bytes) -> None:
        line = memoryview(b"%08x %s\n" % (zlib.crc32(payload), payload))
        while line:
            line = line[os.write(self._descriptor, line) :]
        os.fsync(self._descriptor)


def read_journal(path: Path) -> Kept:
    """Header and finished launches.

    Raises:
        JournalError: there is no journal, it cannot be read, or its header is not sound.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        raise _unusable(path, error) from None
    *lines, torn = data.split(b"\n")
    payloads = [_sound_payload(line) for line in lines]
    if not payloads or payloads[0] is None:
        raise JournalError(f"{path}: its first line is damaged, so the run cannot be resumed; remove it to begin anew")
    sound = [payload for payload in payloads[1:] if payload is not None]
    try:
        header = msgspec.json.decode(payloads[0], type=JournalHeader)
        launches = [msgspec.json.decode(payload, type=Launch) for payload in sound]
    except msgspec.DecodeError as error:
        raise JournalError(
            f"{path}: written by another version of the kit: {error}; resume with that version"
        ) from None
    return Kept(header, launches, payloads.count(None) + bool(torn), len(data) - len(torn))


def _sound_payload(line: bytes) -> bytes | None:
    checksum, _, payload = line.partition(b" ")
    return payload if checksum == b"%08x" % zlib.crc32(payload) else None


def _lock(path: Path, descriptor: int) -> None:
    """Keep other runs out until the descriptor is closed or the process ends."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(f"{path}: another kit run is writing it; wait until it ends, or end it") from None
    except OSError:
        # Some network file systems keep no locks; measuring is possible there all the same.
        return


def _unusable(path: Path, error: OSError) -> JournalError:
    if isinstance(error, FileNotFoundError):
        return JournalError(f"{path}: there is no unfinished run to resume; leave out --resume to begin one")
    return JournalError(f"{path}: cannot be resumed: {error.strerror}; the run's own user must read and write it")
