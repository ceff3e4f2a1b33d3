"""Files whose content is known in advance: where they are kept, how they are proved and downloaded."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from kit.errors import KitError
from kit.profile.atomic import write_atomically
from kit.profile.reason import Reason, reason

# Seconds to connect, and between two pieces of a file. A mirror that is there answers within one round trip; a
# machine without a network should learn so before its user wonders.
TIMEOUT_S = (5.0, 20.0)

# What helps against a file that is there and wrong; it is never deleted for its owner.
ANEW = "delete it and run again to download it anew"


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

    chosen = os.environ.get("KIT_DATA")
    if chosen and not os.path.isdir(chosen):  # noqa: PTH112 - False, too, where it may not be looked for
        raise DataError(
            f"KIT_DATA is {chosen}, and there is no such folder; create it, or unset KIT_DATA for the cache"
        )
    return Path(chosen) if chosen else platformdirs.user_cache_path("steadykit")


class DataFile(Protocol):
    """A file of a data set."""

    @property
    def name(self) -> str:
        """Return its name in the data set's folder and on mirrors."""

    def read(self, path: Path) -> bytes:
        """Return the content of the file at `path`. Raises DataError, naming it, where that cannot be used."""

    def is_known(self, content: bytes) -> bool:
        """Return whether `content` has a checksum that was known in advance."""

    def kept(self, arrived: Path) -> bytes:
        """Return what is to be kept of a download."""


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
            raise not_readable(path, error) from None
        if not self.is_known(content):
            expected = f"expected {self.content_b} bytes with SHA-256 {self.sha256}"
            raise DataError(f"{path} has the wrong content: {expected}; {ANEW}")
        return content

    def is_known(self, content: bytes) -> bool:
        """Return whether `content` is the one that was known."""
        return hashlib.sha256(content).hexdigest() == self.sha256

    def kept(self, arrived: Path) -> bytes:
        """Return the file as it came, packed."""
        return arrived.read_bytes()


def not_readable(path: Path, error: OSError) -> DataError:
    """Return the error to raise where the system does not let a file be read."""
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
        with tempfile.TemporaryDirectory(prefix="kit-download-") as arrivals:
            while left and (failure := _fetch(file, left[0], arrivals)):
                tried.append(f"{urlsplit(left.pop(0)).netloc}: {failure}")
            if not mirrors:
                line = f"{file.name} is not there, and no mirror is known that has it; {remedy}"
                raise DataUnavailableError(reason("no_mirror", file=file.name), line)
            if not left:
                why = reason("download_failed", file=file.name, tried="; ".join(tried))
                raise DataUnavailableError(why, f"{file.name} cannot be downloaded ({'; '.join(tried)}); {remedy}")
            try:
                folder.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / file.name, file.kept(Path(arrivals, file.name)))
            except OSError as error:
                why = reason("folder_not_writable", folder=str(folder), error=error.strerror or str(error))
                raise DataUnavailableError(why, f"{folder} cannot be written ({error.strerror}); {remedy}") from None


def _fetch(file: DataFile, mirror: str, folder: str) -> str | None:
    """Download one file into `folder` and prove its content. Return why it failed, in a few words, or None."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    fetch = pooch.HTTPDownloader(timeout=TIMEOUT_S)
    url = mirror + file.name if mirror.endswith("/") else mirror
    try:
        arrived = Path(pooch.retrieve(url, None, file.name, folder, downloader=fetch))
        proved = file.is_known(file.read(arrived))
    except DataError:
        proved = False
    except (OSError, ValueError) as error:  # every exception of requests is an OSError
        return type(error).__name__
    if not proved:
        Path(folder, file.name).unlink()
        return "wrong content"
    return None
