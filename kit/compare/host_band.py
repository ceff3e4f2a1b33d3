"""The noise band of the hosts that profiles come from: which one is used, and from where."""

from __future__ import annotations

from collections.abc import Sequence

from kit.compare.counted import percent
from kit.compare.gate import LabelledProfile
from kit.compare.graded import several
from kit.profile.brief import AnyProfile
from kit.profile.schema import HostBand
from kit.stats.verdict import NOISE_BAND_MIN

# A band this wide calls a doubling noise: no host does that, but a profile may say it.
BAND_MAX = 1.0


def band_of(profiles: Sequence[LabelledProfile]) -> float | None:
    """The widest band of the profiles' hosts, as a relative difference; null: none is known.

    Of one profile it is that of launches which took turns: they share what the host does over minutes.
    """
    return max((width for _, profile in profiles if (width := _width(profile, profiles)) is not None), default=None)


def band_notes(profiles: Sequence[LabelledProfile]) -> list[str]:
    """Which band was used and whence, what was not used and why, and whose is not known."""
    widths = {label: width for label, profile in profiles if (width := _width(profile, profiles)) is not None}
    foreign = [label for label, profile in profiles if _is_foreign(profile)]
    unknown = [label for label, _ in profiles if label not in widths and label not in foreign]
    found = []
    if widths:
        label = max(widths, key=lambda name: widths[name])
        band = next(profile.host_band for name, profile in profiles if name == label)
        found += [] if band is None else [_used(label, band, widths[label])]
    if foreign:
        found.append(f"The band of {several(foreign)} is not used: it was taken on other hardware.")
    if unknown:
        who = f" for {several(unknown)}" if widths or foreign else ""
        found.append(f"No self-test of this host{who}: `kit selftest` measures by how much it differs from itself.")
    return found


def _is_foreign(profile: AnyProfile) -> bool:
    band = profile.host_band
    return band is not None and band.hardware_sha256 != profile.identity.hardware_sha256


def _width(profile: AnyProfile, profiles: Sequence[LabelledProfile]) -> float | None:
    """Of the profile's own band; null where there is none, it was taken on other hardware, or is absurd."""
    band = profile.host_band
    if band is None or _is_foreign(profile):
        return None
    width = band.band if len(profiles) > 1 else band.band_in_turns
    return None if width is None or not 0 <= width <= BAND_MAX else width


def _used(label: str, band: HostBand, width: float) -> str:
    taken = f"self-test on the host of {label}, {band.taken}, from {band.launches} launches of {band.cell_key}"
    if width <= NOISE_BAND_MIN:
        least = f"{100 * NOISE_BAND_MIN:g} %, the least there is"
        return f"Band {least}; the host's own is {percent(100 * width)} ({taken})."
    return f"Band {percent(100 * width)} ({taken})."
