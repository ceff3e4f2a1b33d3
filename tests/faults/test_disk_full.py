"""A disk that another program fills up: a real small file system (tmpfs)."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fault_runs import Workplace, ended, in_worker

from kit.profile.journal import journal_path

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

SIZE_B = 1 << 20
PAGE_B = 4096


@pytest.fixture
def small_disk(tmp_path):
    """The folder of a file system of SIZE_B, in a mount namespace of its own, reached through one of its processes."""
    mount = f'mount -t tmpfs -o size={SIZE_B} tmpfs "{tmp_path}" && echo ready && exec sleep 600'
    root = [] if os.getuid() == 0 else ["--map-root-user"]
    holder = subprocess.Popen(
        ["unshare", *root, "--mount", "sh", "-c", mount], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        if holder.stdout.readline() != "ready\n":
            pytest.skip(f"no file system can be mounted here: {holder.stderr.read().strip()}")
        yield Path(f"/proc/{holder.pid}/root{tmp_path}")
    finally:
        holder.kill()
        holder.communicate()


def fill(folder, left_b):
    """Leave `left_b` bytes. Give the file that takes the rest."""
    ballast = folder / "ballast"
    free_b = shutil.disk_usage(folder).free
    with ballast.open("wb") as file:
        file.write(bytes(max(0, free_b - left_b)))
    return ballast


@pytest.mark.parametrize("at", ["a line of the journal", "the profile"])
def test_a_full_disk_keeps_what_had_finished(small_disk, tell, at):
    place = Workplace(small_disk)
    process = place.begin()
    place.wait_for_launches(1, process)
    line_b = len(journal_path(place.path).read_bytes().split(b"\n\n")[-2])
    # Room for the second launch's line, and not for a profile; or for neither.
    ballast = fill(small_disk, left_b=-(-2 * line_b // PAGE_B) * PAGE_B if at == "the profile" else 0)
    answer = ended(process)
    assert answer.code == 2, answer.stderr
    (said,) = answer.lines("kit: ")
    assert "No space left on device" in said
    finished = place.in_journal()
    assert len(finished) == (2 if at == "the profile" else 1)
    kept = place.where_kept(finished)
    ballast.unlink()
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    place.check_whole(finished)
    tell(
        f"disk full at {at}",
        "another file fills a file system of 1 MiB while the second launch runs",
        kept=kept,
        code=answer.code,
        said=said,
        go_on="make room, then `kit run --resume --out run.json`",
    )


FILLED = {
    "as a launch begins": {"FAULT_OF_RUN": "fill_temporary_folder_between_launches"},
    "in mid-launch": in_worker({"round": 1, "phase": "steady", "do": "fill_temporary_folder"}),
}


@pytest.mark.parametrize("when", FILLED)
def test_a_full_temporary_folder_fails_no_cell(small_disk, workplace, tell, when):
    place, temporary = workplace(), small_disk / "temporary"
    temporary.mkdir()
    answer = place.run(TMPDIR=str(temporary), **(in_worker() | FILLED[when]))
    assert answer.code == 2, answer.stderr
    (said,) = answer.lines("kit: ")
    assert said.startswith(f"kit: {temporary}: no space left on device")
    finished = place.in_journal()
    assert [launch.round for launch in finished] == [0]
    kept = place.where_kept(finished)
    (temporary / "ballast").unlink()
    assert list(temporary.iterdir()) == []
    resumed = place.go_on(TMPDIR=str(temporary))
    assert resumed.code == 0, resumed.stderr
    place.check_whole(finished)
    filler = "another file fills" if when == "as a launch begins" else "a file that the worker writes fills"
    tell(
        f"temporary folder full {when}",
        f"{filler} the file system of 1 MiB that TMPDIR lies in, "
        + ("between two launches" if when == "as a launch begins" else "as the second launch's steady steps begin"),
        kept=kept,
        code=answer.code,
        said=said,
        go_on="make room, or set TMPDIR, then `kit run --resume --out run.json`",
    )
