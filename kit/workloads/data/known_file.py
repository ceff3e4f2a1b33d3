"""A gzipped file whose uncompressed content is known in advance.

The hash is over the content, not over the archive: the same content is found gzipped in many ways.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from kit.workloads.data.errors import DataError

_REMEDY = "delete it and run again to download it anew"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """Name of the archive; size in bytes and SHA-256 of what is in it."""

    name: str
    content_b: int
    sha256: str

    def read(self, path: Path) -> bytes:
        """Unpack the archive at `path` in memory and prove its content. Raises DataError; writes nothing."""
        content = self._unpack(path)
        if len(content) != self.content_b:
            found = f"more than {self.content_b}" if len(content) > self.content_b else str(len(content))
            raise DataError(f"{path}: expected {self.content_b} bytes unpacked, found {found}; {_REMEDY}")
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            raise DataError(f"{path}: expected SHA-256 {self.sha256} unpacked, found {found}; {_REMEDY}")
        return content

    def _unpack(self, path: Path) -> bytes:
        try:
            with gzip.open(path) as archive:
                # One byte more than expected: enough to see that there is too much, without unpacking all of it.
                return archive.read(self.content_b + 1)
        except EOFError:
            raise DataError(f"{path}: expected a whole gzip file, found a truncated one; {_REMEDY}") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path}: expected a gzip file, found a corrupt one ({error}); {_REMEDY}") from None
        except OSError as error:
            raise DataError(
                f"{path}: expected a gzip file that can be read, found: {error.strerror or error}; "
                "make it readable, or set KIT_DATA to another folder"
            ) from None
