"""A zip archive of which some contents are known, as it is or within the zip that it is published in."""

from __future__ import annotations

import hashlib
import lzma
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from kit.workloads.data.files import ANEW, DataError, not_readable

# What zipfile raises on archives that are damaged, encrypted, or no archives.
_DAMAGE = (BadZipFile, EOFError, RuntimeError, ValueError, OSError, struct.error, zlib.error, lzma.LZMAError)


class NotInArchiveError(DataError):
    """An archive has no member of this name."""


class Archive(NamedTuple):
    """A zip archive, and the SHA-256 of each content of it that is known.

    Another content is read, too: who cuts windows of his own has an archive of his own. Its members have checksums
    against damage, whoever reads them proves that they fit together, and the profile has the hash of the batches, so
    that nothing measured on it is compared with what was measured on other data. Downloads are of known content.
    """

    name: str
    inner: str  # its name in the zip that it may come in, which is not part of its content
    known_sha256: tuple[str, ...]

    def read(self, path: Path) -> bytes:
        """Return the archive at `path`, out of the zip around it. Raises DataError; writes nothing."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise not_readable(path, error) from None
        try:
            return member(content, self.inner)
        except NotInArchiveError:
            return content
        except DataError as error:
            raise DataError(f"{path}: {error}; {ANEW}") from None

    def is_known(self, content: bytes) -> bool:
        """Return whether `content` is one that was known."""
        return hashlib.sha256(content).hexdigest() in self.known_sha256

    def kept(self, arrived: Path) -> bytes:
        """Return the archive without the zip around it: its members are then read without unpacking all of it."""
        return self.read(arrived)

    def member(self, path: Path, name: str) -> bytes:
        """Return one member of the archive at `path`; quick where no other zip is around it. Raises DataError."""
        try:
            return member(path, name)
        except NotInArchiveError:
            return member(self.read(path), name)


def member(archive: Path | bytes, name: str) -> bytes:
    """Return one member of a zip archive.

    Raises:
        NotInArchiveError: there is none of this name.
        DataError: the archive is damaged, or none.
    """
    try:
        with ZipFile(BytesIO(archive) if isinstance(archive, bytes) else archive) as opened:
            return opened.read(name)
    except KeyError:
        raise NotInArchiveError(f"{name} is missing in the archive") from None
    except _DAMAGE as error:
        raise DataError(f"truncated, damaged or not a zip archive ({error})") from None
