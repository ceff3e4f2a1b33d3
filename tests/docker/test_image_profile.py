import os

import pytest

from kit.audit.audit import findings_of as audit
from kit.compare.notes import read_run
from kit.profile.store import read_profile
from kit.version import __version__

pytestmark = pytest.mark.docker

SMALL = ("run", "--quick", "--workload", "mlp", "--task", "train", "--rounds", "1", "--data", "synthetic")


def test_a_profile_of_three_frameworks_is_written_by_a_user_that_the_image_does_not_know(run, folder_of):
    uid = 12345
    folder, volumes = folder_of(uid)
    ended = run(*SMALL, "--out", "/profiles/", user=f"{uid}:{uid}", volumes=volumes)
    assert ended.status == 0, ended.stderr
    (path,) = folder.glob("*.json")
    assert path.stat().st_uid == uid
    profile = read_profile(path)
    assert {cell.cell.backend for cell in profile.cells} == {"tensorflow", "torch", "jax"}
    assert all(cell.launches and not any(launch.failure for launch in cell.launches) for cell in profile.cells)
    assert profile.identity.text("container.image") == f"steadykit:cpu-{__version__}"


@pytest.mark.parametrize(
    ("owner_and_mode", "user", "says"),
    [((1000, "ro"), "1000:1000", "/profiles"), ((os.getuid(), "rw"), "54321:54321", "--user")],
    ids=["read only", "of another user"],
)
def test_a_folder_that_cannot_be_written_is_one_line(run, folder_of, owner_and_mode, user, says):
    _, volumes = folder_of(*owner_and_mode)
    ended = run(*SMALL, "--out", "/profiles/", volumes=volumes, user=user)
    assert ended.status == 2
    (line,) = ended.stderr.splitlines()
    assert says in line


@pytest.mark.quiet  # a quota does not throttle where other programs leave it no CPU
def test_half_a_core_gives_a_number_and_says_how_much_it_was_throttled(run, folder_of):
    folder, volumes = folder_of(1000)
    ended = run(*SMALL, "--backend", "torch", "--out", "/profiles/", volumes=volumes, nano_cpus=500_000_000)
    assert ended.status == 0, ended.stderr
    (path,) = folder.glob("*.json")
    profile = read_profile(path)
    ((launch,),) = (cell.launches for cell in profile.cells)
    assert launch.failure is None
    assert min(launch.blocks.median_ns) > 0
    # Two threads want two CPUs and get a quarter of that, also where other programs leave the quota less to throttle.
    assert "throttled" in {finding.code for finding in audit(read_run("", profile))}
    shown = run("compare", f"/profiles/{path.name}", volumes=volumes)
    assert shown.status == 0
    assert "cgroup quota" in shown.stdout
