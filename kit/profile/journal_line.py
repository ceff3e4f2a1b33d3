"""One line of a journal: CRC-32 in hexadecimal, a space, H or L, JSON; an empty line keeps it apart from the next."""

from __future__ import annotations

import errno
import os
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from kit.profile.launch import Launch
from kit.profile.regular_file import FILE_MAX_B
from kit.profile.step_archive import json_of_steps

HEADER, LAUNCH = b"H", b"L"
DAMAGED = (b"", b"")
# A launch of 60 million steps. Reading a longer line would fill the memory.
LINE_MAX_B = FILE_MAX_B


def line_of(kind: bytes, payload: bytes) -> bytes:
    """The bytes of a record, the empty line after it included."""
    record = kind + payload
    return b"%08x %s\n\n" % (zlib.crc32(record), record)


def launch_line(launch: Launch) -> bytes:
    """The same of a launch."""
    return line_of(LAUNCH, msgspec.json.encode(launch, enc_hook=json_of_steps))


def record_of(line: bytes) -> tuple[bytes, bytes]:
    """Kind and payload of a line without its end; DAMAGED where its checksum is not its own."""
    checksum, _, record = line.partition(b" ")
    return (record[:1], record[1:]) if checksum == b"%08x" % zlib.crc32(record) else DAMAGED


def lines_in(file: BinaryIO) -> Iterator[bytes]:
    """Lines with their ends, up to the size that the file has at first: some files have no end.

    Raises:
        OSError: a line is longer than any that is written.
    """
    left_b = os.fstat(file.fileno()).st_size
    while left_b > 0 and (line := file.readline(min(left_b, LINE_MAX_B + 1))):
        if len(line) > LINE_MAX_B:
            raise OSError(errno.EFBIG, f"a line has more than {LINE_MAX_B:,} bytes")
        left_b -= len(line)
        yield line
