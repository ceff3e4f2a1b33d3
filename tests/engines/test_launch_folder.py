"""The folders that a killed engine leaves behind, and those that must stay."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kit.engines.launch_folder import OWNER, launch_folder, remove_abandoned
from kit.engines.leftovers import LAUNCH_VARIABLE

ENGINE = """
import time
from kit.engines.launch_folder import launch_folder
with launch_folder() as folder:
    (folder / "cache").mkdir()
    (folder / "cache" / "compiled").write_text("much")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def engine(tmp_path):
    """A process with a folder of a launch in tmp_path, and the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    yield process, tmp_path / Path(process.stdout.readline().strip()).name
    process.kill()
    process.communicate()


@pytest.fixture(autouse=True)
def not_looked_yet():
    remove_abandoned.cache_clear()
    yield
    remove_abandoned.cache_clear()


def test_it_goes_with_its_launch():
    with launch_folder() as folder:
        assert (folder / OWNER).exists()
    assert not folder.exists()


def test_it_stays_while_its_engine_lives(engine, tmp_path):
    remove_abandoned(tmp_path)
    assert (engine[1] / "cache" / "compiled").exists()


def test_that_of_a_killed_engine_goes_with_what_still_runs_for_it(engine, tmp_path):
    process, folder = engine
    left = subprocess.Popen(["sleep", "600"], env={**os.environ, LAUNCH_VARIABLE: str(folder)}, start_new_session=True)
    process.kill()
    process.wait()
    try:
        remove_abandoned(tmp_path)
        assert not folder.exists()
        assert left.wait(20) == -9
    finally:
        left.kill()


def test_that_of_another_host_stays_for_its_lock_may_not_be_seen_here(engine, tmp_path):
    process, folder = engine
    process.kill()
    process.wait()
    (folder / OWNER).write_bytes(b"elsewhere.invalid")
    remove_abandoned(tmp_path)
    assert (folder / "cache" / "compiled").exists()


def test_what_only_has_such_a_name_stays(tmp_path):
    others = tmp_path / "others"
    (others / "photos").mkdir(parents=True)
    (others / OWNER).write_text(os.uname().nodename)
    (tmp_path / "steadykit-link").symlink_to(others)
    (tmp_path / "steadykit-file").write_text("mine")
    (tmp_path / "steadykit-folder").mkdir()
    remove_abandoned(tmp_path)
    assert {entry.name for entry in tmp_path.iterdir()} == {
        "others",
        "steadykit-link",
        "steadykit-file",
        "steadykit-folder",
    }
    assert (others / "photos").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes files of another user")
def test_that_of_another_user_stays(engine, tmp_path):
    process, folder = engine
    process.kill()
    process.wait()
    os.chown(folder, 12345, 12345)
    remove_abandoned(tmp_path)
    assert (folder / "cache" / "compiled").exists()
    os.chown(folder, 0, 0)


def test_the_worker_does_not_inherit_the_lock():
    with launch_folder() as folder:
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
        try:
            assert str(folder / OWNER) not in [file.path for file in psutil.Process(child.pid).open_files()]
        finally:
            child.kill()
            child.wait()
