"""Read many profiles for a comparison.

file ── bytes ──┬─► SHA-256 against the digest it carries     second thread
                └─► fields of `ProfileRead` ─► `ProfileBrief`   first thread
                        │
                        └── not canonical, or anything is wrong ──► read whole, as `read_profile` does
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from kit.profile.brief import ProfileBrief, ProfileRead, read_of
from kit.profile.density import too_dense
from kit.profile.digest_prover import DigestProver
from kit.profile.regular_file import open_regular
from kit.profile.sharing import Sharing
from kit.profile.store import check_schema, read_profile

# Files in memory at a time: the thread that hashes has one while another is read and decoded, and all of them stay in
# the processor's second cache (sixteen take as long, and more CPU time).
FILES_AHEAD = 4
# A file is read into memory that was used before, as fresh memory takes as long as reading. A hundred launches fit
# three times; a larger file is read whole.
BUFFER_B = 2**20
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)


class _Read(NamedTuple):
    """A file whose digest is being proven."""

    path: Path
    buffer: bytearray
    fields: ProfileRead | None  # null: to be read whole


def read_briefs(paths: Iterable[Path]) -> list[ProfileBrief]:
    """Read the profiles at `paths`, in their order.

    What a brief does not name is proven by the digest, and otherwise not looked at: `read_profile` does that.

    Raises:
        ProfileError: as `read_profile` does, for the first file that is no sound profile.
    """
    decoder = msgspec.json.Decoder(ProfileRead)
    sharing, prover = Sharing(), DigestProver()
    briefs: list[ProfileBrief] = []
    ahead: deque[_Read] = deque()
    # Hashing gives the interpreter to the other thread: on one core it costs nothing, on two it saves a third.
    with prover.running():
        for path in paths:
            buffer = None
            if len(ahead) == FILES_AHEAD:
                buffer = ahead[0].buffer
                briefs.append(sharing.brief_of(_finished(ahead.popleft(), prover.answer())))
            ahead.append(_begun(path, buffer or bytearray(BUFFER_B), decoder, prover))
        while ahead:
            briefs.append(sharing.brief_of(_finished(ahead.popleft(), prover.answer())))
    return briefs


def read_brief(path: Path) -> ProfileBrief:
    """One profile, as `read_briefs` reads it."""
    return read_briefs([path])[0]


def _begun(path: Path, buffer: bytearray, decoder: msgspec.json.Decoder[ProfileRead], prover: DigestProver) -> _Read:
    size = _read_into(buffer, path)
    prover.ask(buffer, size)
    with memoryview(buffer)[:size] as data:
        try:
            return _Read(path, buffer, None if too_dense(data) else decoder.decode(data))
        except _UNREADABLE:
            return _Read(path, buffer, None)


def _read_into(buffer: bytearray, path: Path) -> int:
    """How many bytes were read: all of the file, where it is smaller than the buffer; none where it is not readable."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
        try:
            return os.readv(descriptor, [buffer])
        finally:
            os.close(descriptor)
    except OSError:
        return 0


def _finished(read: _Read, proven: str | None) -> ProfileRead:
    """Whatever keeps a file from being read in brief, reading it whole either mends it or says what it is."""
    if read.fields is None or proven is None or read.fields.digest != proven:
        path = read.path
        # The fields go first: the two together could take more than ten times the file.
        del read
        return read_of(read_profile(path))
    check_schema(read.path, read.fields.schema)
    return read.fields
