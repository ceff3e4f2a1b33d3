"""The journal: what a run has measured so far, on disk before the next launch begins.

One line a record (`journal_line`). First the header, with everything that a resumed run needs, twice: without it no
launch could be used; then one line a finished launch, flushed to the disk. A damaged line costs its own launch and no
other; a torn last line is cut off before the next is written. It is read a line at a time, as it has no largest size: a
run has as many launches as it needs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import msgspec

from kit.errors import KitError
from kit.profile.atomic import create_atomically
from kit.profile.density import JournalDensity
from kit.profile.identity import Identity, State
from kit.profile.journal_line import DAMAGED, HEADER, LAUNCH, LINE_MAX_B, launch_line, line_of, lines_in, record_of
from kit.profile.launch import Launch
from kit.profile.regular_file import open_regular
from kit.profile.run_plan import RunPlan
from kit.profile.schema import HostBand, SuiteUsed
from kit.profile.sensor import SensorReport
from kit.profile.step_series import compact
from kit.profile.unsound import unsound

SUFFIX = ".journal"
# A bit that flips in one of them leaves the other.
HEADER_COPIES = 2
# Read at a time.
BUFFER_B = 1 << 20
# Then only another user helps.
RIGHTS = (errno.EACCES, errno.EPERM, errno.EROFS)


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
    """``run.json`` -> ``run.json.journal``.

    Raises:
        JournalError: it is a folder by its name (``.``, ``/``, ``..``), so no profile.
    """
    if profile_path.name in ("", ".."):
        raise JournalError(f"{profile_path}: a folder, not a profile; name the file, as --out run.json")
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
        lines = line_of(HEADER, msgspec.json.encode(header)) * HEADER_COPIES
        lines += b"".join(map(launch_line, launches))
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
        """Write one finished launch and wait until the disk has it; its steps then are an array (`step_series`).

        Raises:
            JournalError: the disk is full, the journal has been removed, or the launch has too many steps for it; the
                launches before are on disk.
        """
        line = launch_line(launch)
        if len(line) > LINE_MAX_B:
            raise JournalError(
                f"{self.path}: {launch.cell_key} has {launch.steps:,} steps, too many for one launch; "
                "give the suite a lower steps_max and another --out"
            )
        try:
            self._append(line)
            compact(launch)
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
        """Delete and close: the profile now holds everything. The lock is held until nobody can find the file.

        Where it had been removed before, another run's may have its name: that one stays.
        """
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(self.path.lstat(), os.fstat(self._descriptor)):
                self.path.unlink()
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
    """Header and finished launches, with their steps in arrays (`step_series`).

    Raises:
        JournalError: there is no journal, it cannot be read, no copy of its header is sound, or no kit wrote it.
    """
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb", BUFFER_B) as file:
            return _read(path, file)
    except OSError as error:
        raise _unusable(path, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(
            f"{path}: written by another version of the kit: {error}; resume with that version"
        ) from None


def check_sound(path: Path, launch: Launch) -> None:
    """Refuse a launch of the journal or profile `path` that no kit measured.

    Raises:
        JournalError: it is one.
    """
    problem = unsound(launch)
    if problem is not None:
        raise JournalError(
            f"{path}: {launch.cell_key}, round {launch.round}: {problem}; no kit wrote this: use the original file"
        )


def _read(path: Path, file: BinaryIO) -> Kept:
    header: JournalHeader | None = None
    copies = damaged = ended_bytes = 0
    launches: list[Launch] = []
    density = JournalDensity()
    for line in lines_in(file):
        if not line.endswith(b"\n"):
            damaged += 1
            break
        ended_bytes += len(line)
        if line == b"\n":
            continue
        kind, payload = record_of(line[:-1])
        damaged += kind == DAMAGED[0]
        if kind in (HEADER, LAUNCH) and density.too_dense_with(payload):
            raise JournalError(f"{path}: it would take many times its size in memory; no kit wrote it: remove it")
        if kind == HEADER:
            copies += 1
            header = header or msgspec.json.decode(payload, type=JournalHeader)
        elif kind == LAUNCH:
            launches.append(msgspec.json.decode(payload, type=Launch))
            check_sound(path, launches[-1])
            compact(launches[-1])
    if header is None:
        raise JournalError(
            f"{path}: damaged: no copy of its header is sound, so no run can go on from it; remove it, then go on "
            "from the interrupted profile with `--resume`, or begin anew where there is none"
        )
    if not header.plan.cells:
        raise JournalError(f"{path}: its plan has no cell; no kit wrote it: remove it")
    # A copy of the header that is lost costs no launch.
    damaged -= max(0, HEADER_COPIES - copies)
    return Kept(header, launches, max(0, damaged), ended_bytes)


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
    of_rights = error.errno in RIGHTS
    advice = "the run's own user must read and write it" if of_rights else "give the file of an interrupted run"
    return JournalError(f"{path}: cannot be resumed: {error.strerror}; {advice}")
