"""Files whose content is known in advance: where they are kept, how they are proved and downloaded.

Pooch downloads. Its registry proves a file as it came, and has one address for each; here any gzip of a known content
is taken, a zip within any other, and there are mirrors.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import struct
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from zipfile import BadZipFile, ZipFile

from kit.environment import DATA
from kit.errors import KitError
from kit.profile.reason import Reason, reason
from kit.profile.store import write_atomically

# Seconds to connect, and between two pieces of a file. A mirror that is there answers within one round trip; a
# machine without a network should learn so before its user wonders.
TIMEOUT_S = (5.0, 20.0)

# What helps against a file that is there and wrong; it is never deleted for its owner.
ANEW = "delete it and run again to download it anew"

# What zipfile raises on archives that are damaged, encrypted, or no archives.
_DAMAGE = (BadZipFile, EOFError, RuntimeError, ValueError, OSError, struct.error, zlib.error, lzma.LZMAError)


class DataError(KitError):
    """Data that cannot be used."""


class DataUnavailableError(DataError):
    """Data that is not here and cannot be fetched, as opposed to data that is here and wrong."""

    def __init__(self, why: Reason, line: str) -> None:
        super().__init__(line)
        self.reason = why


def data_folder() -> Path:
    """Return the folder that holds one folder a data set: `KIT_DATA`, else this user's cache folder.

    It may be read-only with the files already in it; the cache folder may be missing.

    Raises:
        DataError: KIT_DATA names what is no folder, as a typing error does.
    """
    import platformdirs

    chosen = os.environ.get(DATA)
    if chosen and not os.path.isdir(chosen):  # noqa: PTH112 - False, too, where it may not be looked for
        raise DataError(f"KIT_DATA={chosen}: the folder does not exist; create it, or unset KIT_DATA to use the cache")
    return Path(chosen) if chosen else platformdirs.user_cache_path("steadykit")


class KnownFile(NamedTuple):
    """A file, and the size in bytes and SHA-256 of its content.

    Of a file ending in .gz they are those of what is in it: the same content is found gzipped in many ways.
    """

    name: str
    content_b: int
    sha256: str

    def read(self, path: Path) -> bytes:
        """Return the content of the file at `path`, proved. Raises DataError; writes nothing."""
        try:
            with gzip.open(path) if self.name.endswith(".gz") else path.open("rb") as file:
                # One byte more than expected shows that there is too much, without unpacking all of it.
                content = file.read(self.content_b + 1)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(f"{path} is truncated or corrupt ({error}); {ANEW}") from None
        except OSError as error:
            raise _not_readable(path, error) from None
        if not self.is_known(content):
            expected = f"expected {self.content_b} bytes with SHA-256 {self.sha256}"
            raise DataError(f"{path} has the wrong content: {expected}; {ANEW}")
        return content

    def is_known(self, content: bytes) -> bool:
        """Return whether `content` is the one that was known."""
        return hashlib.sha256(content).hexdigest() == self.sha256


class Archive(NamedTuple):
    """A zip archive, as it is or within the zip that it is published in, and the SHA-256 of each content that is known.

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
            inner = member(content, self.inner)
        except OSError as error:
            raise _not_readable(path, error) from None
        except DataError as error:
            raise DataError(f"{path}: {error}; {ANEW}") from None
        return content if inner is None else inner

    def is_known(self, content: bytes) -> bool:
        """Return whether `content` is one that was known."""
        return hashlib.sha256(content).hexdigest() in self.known_sha256


DataFile = KnownFile | Archive


def member(archive: bytes, name: str) -> bytes | None:
    """Return one member of a zip archive, None where there is none of this name. Raises DataError for no archive."""
    try:
        with ZipFile(BytesIO(archive)) as opened:
            return opened.read(name)
    except KeyError:
        return None
    except _DAMAGE as error:
        raise DataError(f"truncated, damaged or not a zip archive ({error})") from None


def _not_readable(path: Path, error: OSError) -> DataError:
    remedy = "make it readable, or set KIT_DATA to another folder"
    return DataError(f"{path} cannot be read ({error.strerror or error}); {remedy}")


def download(files: Iterable[DataFile], folder: Path, mirrors: Sequence[str], remedy: str) -> None:
    """Put `files` into `folder`, each only when its content is proved; nobody ever sees half a file or a wrong one.

    Args:
        files: what to fetch; each mirror has them under their own names.
        folder: where they go; made where it is missing.
        mirrors: URLs, tried in turn: of a folder, ending in a slash, or of the one file. One that fails is not asked
            again.
        remedy: what the user can do where no mirror helps.

    Raises:
        DataUnavailableError: the folder cannot be written, there is no mirror, or none gave the right content.
    """
    left, tried = list(mirrors), []
    for file in files:
        content = None
        while left and content is None:
            try:
                content = _fetched(file, left[0])
            except (DataError, OSError, ValueError) as error:  # every exception of requests is an OSError
                failure = "wrong content" if isinstance(error, DataError) else type(error).__name__
                tried.append(f"{urlsplit(left.pop(0)).netloc}: {failure}")
        if content is None and not mirrors:
            line = f"{file.name} is not there, and no mirror is known that has it; {remedy}"
            raise DataUnavailableError(reason("no_mirror", file=file.name), line)
        if content is None:
            why = reason("download_failed", file=file.name, tried="; ".join(tried))
            raise DataUnavailableError(why, f"{file.name} cannot be downloaded ({'; '.join(tried)}); {remedy}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(folder / file.name, content)
        except OSError as error:
            why = reason("folder_not_writable", folder=str(folder), error=error.strerror or str(error))
            raise DataUnavailableError(why, f"{folder} cannot be written ({error.strerror}); {remedy}") from None


def _fetched(file: DataFile, mirror: str) -> bytes:
    """Download one file and prove its content. Return what to keep: an archive without the zip around it.

    Raises:
        DataError: the content is not the known one.
        OSError, ValueError: the mirror does not answer, or does not have it.
    """
    import pooch

    pooch.get_logger().setLevel("ERROR")
    fetch = pooch.HTTPDownloader(timeout=TIMEOUT_S)
    url = mirror + file.name if mirror.endswith("/") else mirror
    with tempfile.TemporaryDirectory(prefix="kit-download-") as arrivals:
        arrived = Path(pooch.retrieve(url, None, file.name, arrivals, downloader=fetch))
        content = file.read(arrived)
        if not file.is_known(content):
            raise DataError(f"{url} has different content")
        return arrived.read_bytes() if file.name.endswith(".gz") else content
