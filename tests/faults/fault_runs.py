"""A real `kit run` with a real framework, started where a fault is to meet it, and what it leaves behind."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from kit.profile.journal import JournalError, journal_path, read_journal
from kit.profile.store import ProfileError, read_profile

PLANTED = Path(__file__).parent / "planted"
RUN_S = 200
SUITE = """
name = "small"
title = "Seconds long, for fault tests"
[cells]
workloads = {workloads}
backends = {backends}
tasks = {tasks}
batches = {batches}
[measure]
launches = {launches}
warmup_s = {warmup_s}
warmup_steps_min = 3
steady_s = {steady_s}
steps_min = {steps_min}
steps_max = {steps_max}
"""
SMALL = {
    "workloads": ["mlp"],
    "backends": ["torch"],
    "tasks": ["infer"],
    "batches": [16],
    "launches": 2,
    "warmup_s": 0.05,
    "steady_s": 0.1,
    "steps_min": 30,
    "steps_max": 200,
}


class Workplace:
    """A folder for one run, and ways to start it: a process, with what the caller adds to its environment."""

    def __init__(self, folder, **plan):
        self.folder, self.plan = folder, SMALL | plan
        self.path = folder / "run.json"
        self.suite = folder / "small.toml"
        self.suite.write_text(SUITE.format(**{name: json.dumps(value) for name, value in self.plan.items()}))

    @property
    def expected(self):
        """Cell and round of each launch of an undisturbed run, as (task, batch, round)."""
        plan = self.plan
        return sorted(
            (task, batch, number)
            for task in plan["tasks"]
            for batch in plan["batches"]
            for number in range(plan["launches"])
        )

    def begin(self, *options, **environment):
        return self._start([str(self.suite), "--data", "synthetic", *options], environment)

    def resume(self, *options, **environment):
        return self._start(["--resume", *options], environment)

    def run(self, *options, **environment):
        return ended(self.begin(*options, **environment))

    def go_on(self, *options, **environment):
        return ended(self.resume(*options, **environment))

    def _start(self, arguments, environment):
        return subprocess.Popen(
            [*environment.pop("under", []), sys.executable, "-m", "kit", "run", *arguments, "--out", str(self.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env={**os.environ, **environment},
            # As a shell starts a job: its interrupts reach the whole group, and not the tests.
            start_new_session=True,
        )

    def in_journal(self):
        """Finished launches in the journal; none while there is none."""
        try:
            return [launch for launch in read_journal(journal_path(self.path)).launches if launch.failure is None]
        except JournalError:
            return []

    def in_profile(self):
        try:
            profile = read_profile(self.path)
        except ProfileError:
            return []
        return [launch for cell in profile.cells for launch in cell.launches if launch.failure is None]

    def wait_for_launches(self, count, process):
        end = time.monotonic() + RUN_S
        while len(self.in_journal()) < count:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.03)

    def where_kept(self, finished):
        """In words, where all of the finished launches are; an error where one is nowhere."""
        finished = started_of(finished)
        assert finished
        places = [("profile", self.in_profile()), ("journal", self.in_journal())]
        found = [name for name, kept in places if finished <= started_of(kept)]
        assert found, f"of {finished} there are {places}"
        return "every finished launch, in the " + " and the ".join(found)

    def check_whole(self, finished=()):
        """The run has ended as an undisturbed one would, and the launches that had finished are the very same."""
        profile = read_profile(self.path)
        assert not profile.interrupted
        assert [cell.status for cell in profile.cells] == ["ok"] * len(profile.cells)
        launches = [(cell.cell.task, cell.cell.batch, one.round) for cell in profile.cells for one in cell.launches]
        assert sorted(launches) == self.expected
        assert started_of(finished) <= started_of(self.in_profile())
        left = {entry.name for entry in self.folder.iterdir() if entry.name.startswith((".kit-", self.path.name))}
        own = {self.path.name} if profile.sidecar is None else {self.path.name, profile.sidecar.file}
        assert left == own
        return profile


# What a run says of launches that other work disturbed, which is the tests' own machine's.
OF_THE_HOST = ", which give no numbers; "


class Ended:
    """What a run did: its exit code and what it said."""

    def __init__(self, process, stdout, stderr):
        self.code, self.stdout, self.stderr = process.returncode, stdout, stderr
        assert "Traceback (most recent call last)" not in "".join(self.lines("kit: "))

    def lines(self, part):
        """Those with `part` in them, but for what is said of the tests' own machine."""
        return [line for line in self.stderr.splitlines() if part in line and OF_THE_HOST not in line]


def ended(process):
    try:
        return Ended(process, *process.communicate(timeout=RUN_S))
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def started_of(launches):
    """A launch that was run again began at another moment."""
    return {(launch.cell_key, launch.round, launch.started) for launch in launches}


def in_worker(*faults):
    """What to add to a run's environment so that its workers meet `faults` (see planted/sitecustomize.py)."""
    defaults = {"task": "infer", "batch": 16, "round": 0}
    path = os.pathsep.join(filter(None, [str(PLANTED), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, "FAULTS": json.dumps([defaults | fault for fault in faults])}


def as_anywhere(said, folder):
    """Without what is of this run only: its folder, mount point and process numbers."""
    said = re.sub(r"/proc/\d+/root", "", said.strip())
    said = re.sub(r"\bprocess \d+", "process 4711", said)
    return re.sub(r"/\S*/(?=run\.json)", "", said.replace(f"{folder}/", "")).removeprefix("kit: ") or "nothing"
