"""Launches that fail of a full disk, which is no fault of their cell; and others."""

import errno
import tempfile

import pytest

from kit.engines.local import run_launch
from kit.profile.launch import LaunchRequest, StepPlan

PLAN = StepPlan(warmup_s=1, warmup_steps_min=3, steady_s=1, steps_min=20, steps_max=5000)


def request_for(cell):
    fields = {"round": 0, "plan": PLAN, "data": "synthetic", "seed": 0, "threads": 3, "cpus": [0]}
    return LaunchRequest(cell=cell, **fields, parity=False, evaluate=False)


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("os._exit(74)", "launch; TMPDIR"),
        ("os._exit(120)", "launch; TMPDIR"),
        ("Path('/dev/full').write_text('x')", "(in parity: worker ended with exit code 1: OSError: [Errno 28]"),
        ("sys.exit('RESOURCE_EXHAUSTED: No space left on device')", "RESOURCE_EXHAUSTED"),
        ("sys.exit('OSError: [Errno 122] Disk quota exceeded')", "Disk quota exceeded"),
    ],
    ids=["its record", "its standard output", "a file", "a library's own words", "the user's share"],
)
def test_room_that_was_wanting_for_a_moment_is_told_with_its_folder(plant, torch_cell, ending, told):
    plant(ending)
    with pytest.raises(OSError, match="no space left on device for the files of a launch") as caught:
        run_launch(request_for(torch_cell))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, tempfile.gettempdir())
    assert told in caught.value.strerror


def test_any_other_failure_is_the_cells(plant, torch_cell):
    plant("sys.exit('driver gone')")
    assert run_launch(request_for(torch_cell)).failure.reason.endswith("driver gone")
