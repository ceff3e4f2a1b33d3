"""Against the stand-in for the vendor's library, below pynvml."""

import msgspec
import pytest

from kit.fingerprint.accelerator_state import accelerator_states
from kit.profile.identity import AcceleratorState
from kit.sensors import nvml_library

READ = """
import sys, msgspec
from kit.fingerprint.state import state
sys.stdout.write(msgspec.json.encode(state().accelerators).decode())
"""


def states(run, wrong=""):
    return msgspec.json.decode(run(READ, wrong), type=list[AcceleratorState])


def test_a_state_holds_caps_and_clocks_of_each_board(in_nvml_process):
    (gpu,) = states(in_nvml_process)
    assert gpu == AcceleratorState(
        name="gpu 0",
        power_cap_w=230.0,
        power_cap_default_w=700.0,
        clock_limit_mhz=1400.0,
        clock_mhz=1755.0,
        temperature_c=54.0,
    )


def test_what_a_board_does_not_tell_is_null(in_nvml_process):
    (gpu,) = states(in_nvml_process, "no_application_clock")
    assert (gpu.clock_limit_mhz, gpu.power_cap_w) == (None, 230.0)


@pytest.mark.parametrize("wrong", ["no_driver", "no_gpu"])
def test_where_no_board_is_listed_there_is_none(in_nvml_process, wrong):
    assert states(in_nvml_process, wrong) == []


def test_without_the_library_there_is_none(monkeypatch):
    monkeypatch.setattr(nvml_library, "load", lambda: (None, nvml_library.LIBRARY_NOT_FOUND))
    assert accelerator_states() == []
