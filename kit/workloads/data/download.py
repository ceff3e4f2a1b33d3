"""Fetch known files from the first mirror that gives the right content.

Each file lands under a name of its own first, is proved, and only then takes its place by a rename: nobody ever sees
half a file or a wrong one, and any number of processes may download at once.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from kit.workloads.data.errors import DataError, DataUnavailableError
from kit.workloads.data.known_file import KnownFile

# Seconds to connect, and between two pieces of a file. A mirror that is there answers within one round trip; a
# machine without a network should learn so before its user wonders.
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 20.0

_CHUNK_B = 1 << 16
_BAR_AFTER_S = 0.5  # no bar for what is over, or refused, before it could be read


def download(files: Sequence[KnownFile], folder: Path, mirrors: Sequence[str], remedy: str) -> None:
    """Put `files` into `folder`, which is made where it is missing.

    Args:
        files: what to fetch; each mirror has them under their own names.
        folder: where they go.
        mirrors: URLs ending in a slash, tried in turn. One that fails is not asked again.
        remedy: what the user can do where no mirror helps.

    Raises:
        DataUnavailableError: where the folder cannot be written, or no mirror gave the right content.
    """
    left = list(mirrors)
    failures: list[str] = []
    try:
        with _made(folder), tempfile.TemporaryDirectory(prefix=".download-", dir=folder) as arrivals:
            for file in files:
                arrival = Path(arrivals) / file.name
                while left and (failure := _fetch(file, left[0] + file.name, arrival)):
                    failures.append(f"{urlsplit(left.pop(0)).netloc}: {failure}")
                if not left:
                    raise DataUnavailableError(f"{file.name} could not be downloaded ({'; '.join(failures)})", remedy)
                arrival.replace(folder / file.name)
    except OSError as error:
        raise DataUnavailableError(f"{folder} cannot be written ({error.strerror or error})", remedy) from None


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """With the folder there; where nothing comes into it, as by a mistyped name, what was made for it goes again."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for one in missing:
            with suppress(OSError):  # not empty
                one.rmdir()


def _fetch(file: KnownFile, url: str, arrival: Path) -> str | None:
    """Download one file and prove its content. Returns why it failed, in a few words, or None."""
    from pooch import HTTPDownloader
    from tqdm import tqdm

    # pooch sets the total once it knows it; until then it needs one, because a bar without a total has no truth value.
    bar = tqdm(desc=file.name, total=1, unit="B", unit_scale=True, file=sys.stderr, delay=_BAR_AFTER_S)
    fetch = HTTPDownloader(progressbar=bar, chunk_size=_CHUNK_B, timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S))
    try:
        with bar:
            fetch(url, str(arrival), None)
        file.read(arrival)
    except DataError:
        return "sent a file with the wrong content"
    except (OSError, ValueError) as error:  # every exception of requests is an OSError
        return _in_few_words(error)
    return None


def _in_few_words(error: Exception) -> str:
    """A connection's error without the object names and the URL that requests prints."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP status {response.status_code}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return {
        "ConnectTimeout": f"no connection within {CONNECT_TIMEOUT_S:.0f} s",
        "ReadTimeout": f"no answer within {READ_TIMEOUT_S:.0f} s",
        "ConnectionError": "no connection",
        "ChunkedEncodingError": "connection lost on the way",
    }.get(type(error).__name__, type(error).__name__)
