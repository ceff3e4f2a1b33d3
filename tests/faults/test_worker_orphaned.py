"""`kit run` killed while its worker hangs: nothing of the launch runs on, and its folder goes when the next begins."""

import contextlib
import sys
import time

import psutil
import pytest
from fault_runs import RUN_S, ended, in_worker

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

SCRIPT = f'#!/bin/sh\n{sys.executable} "$@"\nexit $?\n'
# What has been killed is gone long before.
GONE_WITHIN_S = 20


@pytest.mark.parametrize("between", [False, True], ids=["its child", "behind a script"])
def test_nothing_of_a_launch_outlives_its_run(workplace, tell, between):
    place = workplace()
    temporary, python = place.folder / "temporary", place.folder / "python"
    child, sampler = place.folder / "child", place.folder / "sampler"
    temporary.mkdir()
    python.write_text(SCRIPT)
    python.chmod(0o755)
    where = {"round": 1, "phase": "steady"}
    environment = {"TMPDIR": str(temporary)} | ({"KIT_PYTHON_TORCH": str(python)} if between else {})
    run = place.begin(
        **environment,
        **in_worker(
            where | {"do": "stop_sampler", "told_sampler": str(sampler)}, where | {"do": "hang", "told": str(child)}
        ),
    )
    wait_until(lambda: child.exists() and child.read_text().endswith("\n"), run)
    started = psutil.Process(run.pid).children(recursive=True)
    hidden = psutil.Process(int(child.read_text()))
    of_launch = [process for process in started if process != hidden]
    assert len(of_launch) == (3 if between else 2), "script, worker, sampler"
    assert psutil.Process(int(sampler.read_text())).status() == psutil.STATUS_STOPPED
    try:
        run.kill()
        answer = ended(run)
        _, alive = psutil.wait_procs(of_launch, timeout=GONE_WITHIN_S)
        assert not alive
        finished = place.in_journal()
        assert len(finished) == 1
        assert [folder.name.startswith("steadykit-") for folder in temporary.iterdir()] == [True]
        kept = place.where_kept(finished)
        resumed = place.go_on(**environment)
        assert resumed.code == 0, resumed.stderr
        place.check_whole(finished)
        assert not hidden.is_running() or hidden.status() == psutil.STATUS_ZOMBIE
        assert list(temporary.iterdir()) == []
    finally:
        for process in [*of_launch, hidden]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    tell(
        "`kit run` killed while its worker hangs" + (" behind a script" if between else ""),
        "SIGKILL while the second launch's worker sleeps, its sampler is stopped (SIGSTOP) and a child of it sleeps in "
        "a session of its own" + ("; `KIT_PYTHON_TORCH` names a script that does not `exec` Python" if between else ""),
        kept=f"{kept}; worker and sampler are gone at once, the child and the launch's folder as the next run begins",
        code=answer.code,
        said="",
        go_on="`kit run --resume --out run.json`",
    )


def wait_until(true, run):
    end = time.monotonic() + RUN_S
    while not true():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
