"""The host's band, kept between runs."""

import msgspec
import pytest

from kit.profile.host_band import HostBandError, band_path, keep_band, known_band
from kit.profile.schema import HostBand

BAND = HostBand(
    band=0.031,
    taken="2026-01-01T00:00:00Z",
    cell_key="mlp/torch",
    launches=10,
    hardware_sha256="a" * 64,
)


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_band_is_found_on_its_own_machine_only(state):
    assert known_band(BAND.hardware_sha256) is None
    path = keep_band(BAND)
    assert path.is_relative_to(state)
    assert known_band(BAND.hardware_sha256) == BAND
    assert known_band("b" * 64) is None
    newer = msgspec.structs.replace(BAND, band=0.01)
    keep_band(newer)
    assert known_band(BAND.hardware_sha256) == newer


def test_a_band_that_names_another_machine_is_none_of_ours():
    band_path("b" * 64).parent.mkdir(parents=True)
    band_path("b" * 64).write_bytes(msgspec.json.encode(BAND))
    assert known_band("b" * 64) is None


@pytest.mark.parametrize("hardware", ["", "../../etc/passwd", "hardware of Example CPU 9000"])
def test_what_is_no_hash_names_no_file(hardware):
    assert known_band(hardware) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"band": NaN}'])
def test_a_damaged_band_is_one_line_that_names_it(content):
    path = keep_band(BAND)
    path.write_bytes(content)
    with pytest.raises(HostBandError, match="damaged") as error:
        known_band(BAND.hardware_sha256)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_that_cannot_be_is_one_line(state):
    state.write_text("a file")
    assert known_band(BAND.hardware_sha256) is None
    with pytest.raises(HostBandError, match="KIT_STATE"):
        keep_band(BAND)
