"""To add a kind of device is to write its descriptor, and to name it in the backend that runs on it."""

import os

import pytest
from kit_process import kit
from plain_backend import SUITE, copied_kit

from kit.profile.store import read_profile

DESCRIPTOR = '''
"""An accelerator that nobody has built."""
from kit.devices.device import Device

class Npu(Device):
    kind = "npu"

DEVICE = Npu()
'''


@pytest.fixture(scope="module")
def with_npu(tmp_path_factory):
    """Run a command of a copy of the kit that has the device."""
    folder = tmp_path_factory.mktemp("with_npu")
    copied_kit(folder, "npu")
    (folder / "kit/devices/npu.py").write_text(DESCRIPTOR)

    def run(*words):
        return kit(folder, *words, PYTHONPATH=os.fspath(folder))

    (folder / "small.toml").write_text(SUITE)
    measured = run("run", "small.toml", "--device", "npu", "--data", "synthetic", "--out", "npu.json")
    assert measured.returncode == 0, measured.stderr
    return run, folder / "npu.json"


def test_it_is_measured_as_an_accelerator_and_its_profile_is_read_by_a_kit_without_it(with_npu):
    results = read_profile(with_npu[1]).cells
    assert [(result.cell.device, result.cell.batch) for result in results] == [("npu", 4), ("npu", 8)]
    for launch in (launch for result in results for launch in result.launches):
        assert launch.gave_number
        assert launch.blocks.per_wait, "steps are waited for in groups"


def test_it_is_compared_with_and_without_its_descriptor(with_npu, tmp_path):
    run, profile = with_npu
    for shown in (run("compare", profile), kit(tmp_path, "compare", profile)):
        assert (shown.returncode, shown.stderr) == (0, "")
        assert "batch 8" in shown.stdout
    assert "npu" in run("run", "--help").stdout
    assert "npu" not in kit(tmp_path, "run", "--help").stdout


def test_a_kind_that_there_is_not_is_refused_with_those_there_are(with_npu, tmp_path):
    suite = '[cells]\nworkloads = ["mlp"]\nbackends = ["torch"]\ndevices = ["npux"]\n'
    (tmp_path / "mine.toml").write_text(f'name = "x"\ntitle = "x"\n{suite}')
    refused = with_npu[0]("run", tmp_path / "mine.toml", "--dry-run")
    assert refused.returncode == 2
    assert "no device 'npux'; choose from cpu, gpu, tpu, npu; did you mean npu?" in refused.stderr
