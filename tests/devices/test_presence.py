import pytest
from planted_files import plant

from kit.devices import DEVICES
from kit.profile.fields import reason
from kit.sensors import nvml, tpu_chips

NO_LIBRARY = reason("nvml_library_missing")
NO_TPU = reason("no_tpu")


def why_missing(kind, dev):
    return DEVICES[kind].why_missing(dev)


@pytest.fixture
def bare(monkeypatch):
    """A machine without NVIDIA's library and without a TPU on its PCI bus."""
    monkeypatch.setattr(nvml, "open_gpus", lambda: NO_LIBRARY)
    monkeypatch.setattr(tpu_chips, "devices", list)


@pytest.mark.parametrize("files", [[], ["vfio/vfio"]], ids=["nothing", "the control file of vfio"])
def test_where_nothing_is_the_reason_is_given(bare, tmp_path, files):
    plant(tmp_path, dict.fromkeys(files, ""))
    assert [why_missing(device, tmp_path) for device in ("cpu", "gpu", "tpu")] == [None, NO_LIBRARY, NO_TPU]


@pytest.mark.parametrize(
    ("device", "file"),
    [
        *(("gpu", name) for name in ("nvidia0", "nvidiactl", "nvhost-gpu", "kfd", "dxg")),
        *(("tpu", name) for name in ("accel0", "vfio/7")),
    ],
)
def test_a_device_file_leaves_it_to_the_framework(bare, tmp_path, device, file):
    plant(tmp_path, {file: ""})
    assert why_missing(device, tmp_path) is None
    assert why_missing("tpu" if device == "gpu" else "gpu", tmp_path)


def test_what_is_listed_is_not_absent(bare, tmp_path, monkeypatch):
    monkeypatch.setattr(tpu_chips, "devices", lambda: ["0000:00:05.0"])
    assert why_missing("tpu", tmp_path) is None
    assert why_missing("gpu", tmp_path) == NO_LIBRARY
