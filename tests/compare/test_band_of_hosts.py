import msgspec
import pytest
from profile_builder import build_identity, build_profile, six_cells

from kit.compare.comparison import compare
from kit.compare.host_band import band_notes, band_of
from kit.profile.schema import HostBand

UNKNOWN = "`kit selftest` measures by how much it differs from itself."


def banded(band, cpu="Example CPU 9000", taken_on=None, **fields):
    own = None
    if band is not None:
        own = HostBand(
            band=band,
            band_in_turns=band / 2,
            taken="2026-11-20T10:00:00Z",
            cell_key="mlp/torch",
            launches=34,
            hardware_sha256="hardware of " + (taken_on or cpu),
        )
    return build_profile(six_cells(**fields), host_band=own, identity=build_identity(cpu), id=f"run {band} {cpu}")


def test_the_widest_band_counts():
    profiles = [("a", banded(0.031)), ("b", banded(0.052))]
    assert band_of(profiles) == 0.052
    assert compare(profiles).band == 0.052
    assert band_notes(profiles) == [
        "Band 5.2 % (self-test on the host of b, 2026-11-20T10:00:00Z, from 34 launches of mlp/torch)."
    ]


def test_a_difference_inside_the_hosts_band_is_not_called_one():
    slower = {"tensorflow": 4.08, "torch": 2.04, "jax": 2.04}
    verdicts = [
        {row.versus.verdict for row in compare(profiles).rows if row.versus is not None}
        for profiles in (
            [("a", banded(None)), ("b", banded(None, medians_ms=slower))],
            [("a", banded(0.06)), ("b", banded(None, medians_ms=slower))],
        )
    ]
    assert verdicts == [{"slower"}, {"unresolved"}]


def test_a_band_of_other_hardware_is_not_used():
    profiles = [("a", banded(0.031, taken_on="Other CPU"))]
    assert band_of(profiles) is None
    assert band_notes(profiles) == ["The band of a is not used: it was taken on other hardware."]
    assert compare(profiles).band == 0.01


def test_no_band_says_how_to_get_one():
    assert band_of([("a", banded(None))]) is None
    assert band_notes([("a", banded(None))]) == [f"No self-test of this host: {UNKNOWN}"]
    notes = band_notes([("a", banded(0.02)), ("b", banded(None))])
    assert notes[1] == f"No self-test of this host for b: {UNKNOWN}"


def test_a_host_quieter_than_the_least_band_gets_the_least():
    profiles = [("a", banded(0.008))]
    assert compare(profiles).band == 0.01
    assert band_notes(profiles)[0].startswith("Band 1 %, the least there is; the host's own is 0.4 %")


def test_backends_of_one_profile_took_turns_and_share_what_the_host_did():
    profiles = [("a", banded(0.06))]
    assert band_of(profiles) == 0.03
    assert band_notes(profiles)[0].startswith("Band 3 % (")


@pytest.mark.parametrize("absurd", [-1.0, 1e300])
def test_an_absurd_band_is_none(absurd):
    assert band_of([("a", banded(absurd))]) is None


def test_a_band_given_goes_before_those_of_the_profiles():
    assert compare([("a", banded(0.031))], host_band=0.2).band == 0.2


@pytest.mark.parametrize("width", [None, 5.0, -0.1])
def test_what_one_profile_may_use_is_checked_by_itself(width):
    profile = banded(0.06)
    profile.host_band = msgspec.structs.replace(profile.host_band, band_in_turns=width)
    assert band_of([("a", profile)]) is None
    assert band_notes([("a", profile)]) == [f"No self-test of this host: {UNKNOWN}"]
    assert compare([("a", profile)]).band == 0.01


def test_the_note_on_reading_says_what_the_band_does():
    wide, narrow = (compare([("a", banded(band)), ("b", banded(band, cpu="Other"))]).notes[-1] for band in (0.06, 0.01))
    assert "What lies within the band of 6 % is unresolved, however narrow its interval." in wide
    assert "Same: surely within 1 %." in narrow
