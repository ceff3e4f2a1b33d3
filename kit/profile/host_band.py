"""Where this host's noise band is kept between runs: one small file a machine, in the user's own folder."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import platformdirs

from kit.errors import KitError
from kit.profile.atomic import write_atomically
from kit.profile.regular_file import read_regular
from kit.profile.schema import HostBand

SHA256 = re.compile(r"[0-9a-f]{64}")


class HostBandError(KitError):
    """The band cannot be kept, or what is kept is damaged."""


def state_folder() -> Path:
    """`KIT_STATE` if it is set, else this user's folder for what programs keep; it may be missing."""
    chosen = os.environ.get("KIT_STATE")
    return Path(chosen) if chosen else platformdirs.user_state_path("steadykit")


def band_path(hardware_sha256: str) -> Path:
    """The file of one machine."""
    return state_folder() / "host-bands" / f"{hardware_sha256}.json"


def keep_band(band: HostBand) -> Path:
    """Write the band, in place of an earlier one of the same machine.

    Raises:
        HostBandError: the folder cannot be written.
    """
    path = band_path(band.hardware_sha256)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.format(msgspec.json.encode(band)) + b"\n")
    except OSError as error:
        raise HostBandError(
            f"{path}: the host's band cannot be kept: {error.strerror}; name another folder with KIT_STATE"
        ) from None
    return path


def known_band(hardware_sha256: str) -> HostBand | None:
    """The band of a machine; null: none was measured.

    Raises:
        HostBandError: there is one that cannot be read. Without it, differences that are noise would get a verdict.
    """
    if not SHA256.fullmatch(hardware_sha256):
        return None
    path = band_path(hardware_sha256)
    try:
        band = msgspec.json.decode(read_regular(path), type=HostBand)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise HostBandError(
            f"{path}: the host's band cannot be read: {error.strerror}; mend that, or remove it"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HostBandError(f"{path}: the host's band is damaged: {error}; remove it and run `kit selftest`") from None
    return band if band.hardware_sha256 == hardware_sha256 else None
