"""Who set a variable, told from what an image baked, what a container was started with, and marks of launchers."""

import pytest
from planted_files import plant

from kit.fingerprint.software import BAKED, set_by

IMAGE = "PATH=/bin\0OMP_NUM_THREADS=1\0"
STARTED = f"{IMAGE}KMP_AFFINITY=none\0"


@pytest.mark.parametrize(
    ("variables", "engine", "who"),
    [
        ({"OMP_NUM_THREADS": "1"}, "docker", "image"),
        ({"OMP_NUM_THREADS": "4"}, "docker", "user"),  # changed by a shell in the container
        ({"KMP_AFFINITY": "none"}, "docker", "container"),
        ({"OMP_NUM_THREADS": "1"}, None, "user"),  # on a host the first process says nothing
        ({"OMP_NUM_THREADS": "1", "TORCHELASTIC_RUN_ID": "none"}, None, "torchrun"),
        ({"OMP_NUM_THREADS": "2", "RAY_RAYLET_PID": "9"}, None, "Ray"),
        ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "9"}, None, "Slurm"),
        ({"OMP_NUM_THREADS": "2", "SLURM_JOB_ID": "9"}, None, "user"),
    ],
)
def test_who_set_it(tmp_path, variables, engine, who):
    plant(tmp_path, {BAKED: IMAGE, "proc/1/environ": STARTED})
    name = next(iter(variables))
    assert set_by([name], variables, engine, tmp_path) == {name: who}


def test_a_first_process_that_cannot_be_read_leaves_the_user(tmp_path):
    assert set_by(["OMP_NUM_THREADS"], {"OMP_NUM_THREADS": "1"}, "docker", tmp_path) == {"OMP_NUM_THREADS": "user"}
