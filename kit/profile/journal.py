"""The journal: what a run has measured so far, on disk before the next launch begins.

One line a record: CRC-32 in hexadecimal, a space, H or L, JSON. First the header, with everything that a resumed run
needs, twice: without it no launch could be used; then one line a finished launch, flushed to the disk. A damaged line
costs its own launch and no other, as an empty line keeps it apart from the next; a torn last line is cut off before
the next is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from kit.errors import KitError
from kit.profile.atomic import create_atomically
from kit.profile.density import JOURNAL_MAX, too_dense
from kit.profile.identity import Identity, State
from kit.profile.launch import Launch
from kit.profile.regular_file import open_regular, read_regular
from kit.profile.run_plan import RunPlan
from kit.profile.schema import HostBand, SuiteUsed
from kit.profile.sensor import SensorReport

SUFFIX = ".journal"
# A bit that flips in one of them leaves the other.
HEADER_COPIES = 2
HEADER, LAUNCH = b"H", b"L"
DAMAGED = (b"", b"")


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
    damaged: int  # lines of launches that are not; those launches are missing
    ended_bytes: int  # up to the last whole line; what follows is torn


class Journal:
    """An open, locked journal, to which finished launches are added."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, header: JournalHeader, launches: Sequence[Launch] = ()) -> Self:
        """Begin a run, or one that has finished `launches`; refuses where an unfinished run already keeps its journal.

        Raises:
            JournalError: there is one, or a run under way, or it cannot be written; then nothing is left behind.
        """
        lines = _line(HEADER, msgspec.json.encode(header)) * HEADER_COPIES
        lines += b"".join(_line(LAUNCH, msgspec.json.encode(launch)) for launch in launches)
        try:
            descriptor = create_atomically(path, lines)
        except FileExistsError:
            _refuse_where_it_is_written(path)
            raise JournalError(
                f"{path}: an unfinished run is kept there; go on with `--resume`, or remove it to begin anew"
            ) from None
        except OSError as error:
            raise JournalError(f"{path}: cannot be written: {error.strerror}; choose another --out") from None
        _lock(path, descriptor)
        return cls(path, descriptor)

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
            self._append(_line(LAUNCH, msgspec.json.encode(launch)))
            removed = os.fstat(self._descriptor).st_nlink == 0
        except OSError as error:
            raise JournalError(
                f"{self.path}: cannot be written: {error.strerror}; mend that, then go on with "
                f"`kit run --resume --out {self._profile_path}`; this launch is run again"
            ) from None
        if removed:
            raise JournalError(
                f"{self.path}: has been removed while the run wrote it; if the interrupted profile could be written, "
                f"go on from that with `kit run --resume --out {self._profile_path}`"
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

    def _append(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            left = left[os.write(self._descriptor, left) :]
        os.fsync(self._descriptor)


def read_journal(path: Path) -> Kept:
    """Header and finished launches.

    Raises:
        JournalError: there is no journal, it cannot be read, or no copy of its header is sound.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        raise _unusable(path, error) from None
    ended_bytes = data.rfind(b"\n") + 1
    headers: list[bytes] = []
    launches: list[Launch] = []
    damaged = int(ended_bytes < len(data))
    try:
        if too_dense(data, JOURNAL_MAX):
            raise JournalError(f"{path}: it would take many times its size in memory; no kit wrote it: remove it")
        for kind, payload in map(_record, _lines(data)):
            if kind == HEADER:
                headers.append(payload)
            elif kind == LAUNCH:
                launches.append(msgspec.json.decode(payload, type=Launch))
            damaged += kind == DAMAGED[0]
        if not headers:
            raise JournalError(
                f"{path}: damaged: no copy of its header is sound, so no run can go on from it; remove it, then go on "
                "from the interrupted profile with `--resume`, or begin anew where there is none"
            )
        header = msgspec.json.decode(headers[0], type=JournalHeader)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(
            f"{path}: written by another version of the kit: {error}; resume with that version"
        ) from None
    # A copy of the header that is lost costs no launch.
    damaged -= max(0, HEADER_COPIES - len(headers))
    return Kept(header, launches, max(0, damaged), ended_bytes)


def _lines(data: bytes) -> Iterator[bytes]:
    """Whole lines that are not empty, one at a time: a list of short ones would take many times the file."""
    start = 0
    while (end := data.find(b"\n", start)) >= 0:
        if end > start:
            yield data[start:end]
        start = end + 1


def _line(kind: bytes, payload: bytes) -> bytes:
    record = kind + payload
    return b"%08x %s\n\n" % (zlib.crc32(record), record)


def _record(line: bytes) -> tuple[bytes, bytes]:
    """Kind and payload of a line; DAMAGED where its checksum is not its own."""
    checksum, _, record = line.partition(b" ")
    return (record[:1], record[1:]) if checksum == b"%08x" % zlib.crc32(record) else DAMAGED


def _lock(path: Path, descriptor: int) -> None:
    """Keep other runs out until the descriptor is closed or the process ends."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise JournalError(f"{path}: another kit run is writing it; wait until it ends, or end it") from None
    except OSError:
        # Some network file systems keep no locks; measuring is possible there all the same.
        return


def _refuse_where_it_is_written(path: Path) -> None:
    with contextlib.suppress(OSError):
        descriptor = open_regular(path, os.O_RDONLY)
        try:
            _lock(path, descriptor)
        finally:
            os.close(descriptor)


def _unusable(path: Path, error: OSError) -> JournalError:
    if isinstance(error, FileNotFoundError):
        return JournalError(f"{path}: there is no unfinished run to resume; leave out --resume to begin one")
    return JournalError(f"{path}: cannot be resumed: {error.strerror}; the run's own user must read and write it")
