"""A real `kit run`, started where a fault is to meet it, and what it leaves behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
from small_suite import measure

from kit.profile.store import ProfileError, read_profile
from kit.profile.unfinished import UnfinishedRun, folder_of

PLANTED = Path(__file__).parent / "planted"
# With the kit of this checkout, whichever is installed.
PYTHONPATH = f"{PLANTED}{os.pathsep}{Path(__file__).parents[2]}"
RUN_S = 100
ROUNDS, BATCH = 2, 16
# Training and inference take turns, each in a process of its own.
SUITE = f"""
name = "small"
title = "Seconds long, for fault tests"
compare = ["task"]
[cells]
workloads = ["mlp"]
backends = ["plain"]
batches = [{BATCH}]
""" + measure(ROUNDS, 3)


class Ended:
    """What a run did: its exit code and what it said."""

    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr
        assert "Traceback" not in "".join(self.messages)

    @property
    def messages(self):
        """Its own lines, without progress, what members said before they failed, and what other tests use."""
        lines = [line for line in self.stderr.splitlines() if line.startswith("kit: ")]
        return [line for line in lines if not line.startswith("kit: other programs use")]


class Workplace:
    """A folder for one run, and ways to start it."""

    def __init__(self, folder, counts=None):
        self.folder, self.counts = folder, counts or folder / "counts"
        self.temporary = self.counts / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.path = folder / "run.json"
        self.suite = folder / "small.toml"
        self.suite.write_text(SUITE)

    def run(self, *options, faults=(), **environment):
        return self._start([str(self.suite), "--data", "synthetic", *options], faults, environment)

    def go_on(self, *options, **environment):
        return self._start(["--resume", *options], (), environment)

    def _start(self, arguments, faults, environment):
        under = environment.pop("under", [])
        planted = {"FAULTS": json.dumps(faults)} if faults else {}
        here = {"PYTHONPATH": PYTHONPATH, "FAULTS_FOLDER": str(self.counts), "TMPDIR": str(self.temporary)}
        process = subprocess.Popen(
            [*under, sys.executable, "-m", "kit", "run", *arguments, "--out", str(self.path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=os.environ | here | planted | environment,
            # As a shell starts a job, and not as a part of the tests.
            start_new_session=True,
        )
        try:
            stdout, stderr = process.communicate(timeout=RUN_S)
        except BaseException:
            process.kill()
            raise
        return Ended(process.returncode, stdout, stderr)

    def kept(self):
        """(cell, round) -> when it was started, of each launch in the folder of the unfinished run."""
        try:
            run = UnfinishedRun.reopen(self.path)
        except ProfileError:
            return {}
        run.close()
        return {(kept.launch.cell_key, kept.launch.round): kept.launch.started for kept in run.launches()}

    def launches(self):
        """(task, batch, round) -> launch, of the profile."""
        cells = [(result.cell, result.launches) for result in read_profile(self.path).cells]
        return {(cell.task, cell.batch, launch.round): launch for cell, launches in cells for launch in launches}

    def check_whole(self, kept=None):
        """The run has ended as an undisturbed one would; the launches that had finished are the very same."""
        profile = read_profile(self.path)
        assert not profile.interrupted
        # Cycles and rounds that other tests disturb are measured again: at most twice and half as many.
        launches = self.launches()
        rounds = {number for *_, number in launches}
        assert rounds in (set(range(ROUNDS)), set(range(ROUNDS + 1)))
        assert set(launches) == {(task, BATCH, number) for task in ("train", "infer") for number in rounds}
        assert all(launch.failure is None for launch in launches.values())
        assert all(3 <= len(launch.blocks.cycle) <= 6 for launch in launches.values())
        started = {(kept.cell_key, kept.round): kept.started for kept in launches.values()}
        assert (kept or {}).items() <= started.items()
        left = {entry.name for entry in self.folder.iterdir() if entry.name.startswith((".kit-", self.path.name))}
        assert left == {self.path.name, profile.sidecar.file}

    def left(self):
        """What is left of workers: supervisors and workers whose environment names this folder, temporary folders."""
        left = [path.name for path in self.temporary.glob("steadykit-*")]
        for process in psutil.process_iter():
            try:
                is_worker = any(word.startswith("kit.worker") for word in process.cmdline())
                if is_worker and process.environ().get("FAULTS_FOLDER") == str(self.counts):
                    left.append(process)
            except psutil.Error:
                continue
        return left


def unfinished(place):
    return folder_of(place.path).exists()
