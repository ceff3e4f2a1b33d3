import pytest

from kit.fingerprint.accelerators import absence
from kit.profile.reason import reason
from kit.sensors import nvml, tpu

NO_LIBRARY = reason("nvml_library_missing")
NO_TPU = reason("no_tpu")


@pytest.fixture
def bare(monkeypatch):
    """A machine without NVIDIA's library and without a TPU on its PCI bus."""
    monkeypatch.setattr(nvml, "open_boards", lambda: NO_LIBRARY)
    monkeypatch.setattr(tpu, "devices", list)


def test_where_nothing_is_the_reason_is_given(bare, tmp_path):
    assert absence("cpu", tmp_path) is None
    assert absence("gpu", tmp_path) == NO_LIBRARY
    assert absence("tpu", tmp_path) == NO_TPU


@pytest.mark.parametrize(
    ("device", "file"),
    [
        ("gpu", "nvidia0"),
        ("gpu", "nvidiactl"),
        ("gpu", "nvhost-gpu"),
        ("gpu", "kfd"),
        ("gpu", "dxg"),
        ("tpu", "accel0"),
        ("tpu", "vfio/7"),
    ],
)
def test_a_device_file_leaves_it_to_the_framework(bare, tmp_path, device, file):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    assert absence(device, tmp_path) is None
    assert absence("tpu" if device == "gpu" else "gpu", tmp_path)


def test_the_vfio_control_file_alone_is_no_tpu(bare, tmp_path):
    (tmp_path / "vfio").mkdir()
    (tmp_path / "vfio" / "vfio").touch()
    assert absence("tpu", tmp_path) == NO_TPU


def test_what_is_listed_is_not_absent(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(tpu, "devices", lambda: ["0000:00:05.0"])
    assert absence("tpu", tmp_path) is None
    assert absence("gpu", tmp_path) == NO_LIBRARY
