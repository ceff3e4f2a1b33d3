"""Neighbours: programs that keep CPUs busy at times that a seed decides; and a run beside them.

    python tests/bench/neighbours.py bursts --seconds 60 --seed 1      a neighbour by itself; then what it took

    one      one CPU is busy 40 % of the time, in bursts
    two      two CPUs at once, likewise
    bursts   one or two CPUs at once, drawn for each burst; the share of the time is drawn between 20 and 60 %
    always   one CPU is busy without a pause

A burst lasts 0.2 to 10 s, and its logarithm is uniform; a pause has an exponential distribution. The share is of bursts
in the time, and a program beside it leaves it less CPU time than that. Nothing is pinned: the scheduler places it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, Self

BURST_S = (0.2, 10.0)
MEAN_BURST_S = (BURST_S[1] - BURST_S[0]) / math.log(BURST_S[1] / BURST_S[0])
# Turns of an empty loop between two looks at the clock: under a millisecond.
TURNS = 10_000
# From <linux/prctl.h>; prctl(2).
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
# Of `kit run`: a cell failed, the others are in the profile.
EXIT_FAILED_CELLS = 3


class Kind(NamedTuple):
    """How a neighbour behaves."""

    shares: tuple[float, float]  # of the time that bursts last; a seed draws between these
    cpus: tuple[int, int]  # fewest and most that a burst keeps busy

    @property
    def is_steady(self) -> bool:
        """Whether it never pauses."""
        return self.shares[0] >= 1


KINDS = {
    "one": Kind((0.4, 0.4), (1, 1)),
    "two": Kind((0.4, 0.4), (2, 2)),
    "bursts": Kind((0.2, 0.6), (1, 2)),
    "always": Kind((1.0, 1.0), (1, 1)),
}


class Burst(NamedTuple):
    """From when to when so many CPUs are busy, in seconds after the neighbour's begin."""

    begin_s: float
    end_s: float
    cpus: int


def bursts_of(kind: str, seed: int) -> Iterator[Burst]:
    """Yield the bursts of a neighbour without end; the same ones for the same seed."""
    shares, cpus = KINDS[kind]
    if KINDS[kind].is_steady:
        yield Burst(0.0, math.inf, cpus[1])
        return
    draw, at_s = random.Random(f"{kind}/{seed}"), 0.0
    share = draw.uniform(*shares)
    while True:
        at_s += draw.expovariate(share / (1 - share) / MEAN_BURST_S)
        length_s = math.exp(draw.uniform(*map(math.log, BURST_S)))
        yield Burst(at_s, at_s + length_s, draw.randint(*cpus))
        at_s += length_s


class Children:
    """Child processes that run until `stop`, or until the body of a `with` has ended. They die with their parent."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self._commands = commands
        self._running: list[subprocess.Popen[str]] = []
        self.cpu_s = 0.0  # that they have used, once they are stopped
        self.outputs: list[str] = []  # what they have printed, likewise

    def start(self) -> None:
        """Start them."""
        parent = os.getpid()
        for command in self._commands:
            self._running.append(
                subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for the parent, which stops them
                    preexec_fn=lambda: die_with(parent, signal.SIGKILL),  # noqa: PLW1509 - there is one thread
                )
            )

    def stop(self) -> None:
        """End them."""
        for child in self._running:
            child.terminate()
        for child in self._running:
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            self.cpu_s += _cpu_s(child.pid)
            self.outputs.append(child.communicate()[0])
        self._running = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Neighbour(Children):
    """A neighbour of a kind of `KINDS`, one process for each CPU that it may keep busy."""

    def __init__(self, kind: str, seed: int = 0) -> None:
        words = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), kind, "--seed", str(seed)]
        super().__init__([[*words, "--place", str(place)] for place in range(KINDS[kind].cpus[1])])


def die_with(parent: int, number: int) -> None:
    """Let this process, a child of `parent`, get a signal when its parent ends; call it before the child's program."""
    _LIBC.prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process, which may have ended but not been waited for."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(
    path: Path, words: Sequence[str], beside: Children | None = None, cpus: Collection[int] | None = None
) -> None:
    """Run `kit run` with these words into a profile, unless it is there; note how long it took.

    Args:
        path: of the profile; what is printed goes to a `.log` beside it.
        words: after `kit run`.
        beside: children that run from the begin to the end.
        cpus: that the run may use; None: as this process.
    """
    from kit.profile.store import read_profile  # not at the top: a neighbour's process has the standard library alone
    from kit.profile.unfinished import folder_of

    if path.exists() and not read_profile(path).interrupted:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder_of(path), ignore_errors=True)
    command = [sys.executable, "-m", "kit", "run", *words, "--no-energy", "--force", "--out", str(path)]
    parent = os.getpid()

    def begin() -> None:
        die_with(parent, signal.SIGTERM)
        os.sched_setaffinity(0, cpus or os.sched_getaffinity(0))

    with path.with_suffix(".log").open("w") as log, beside or nullcontext():
        begin_s = time.monotonic()
        with subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=begin) as child:  # noqa: PLW1509 - one thread
            try:
                status = child.wait()
            except BaseException:
                child.terminate()
                child.wait()
                raise
        wall_s = time.monotonic() - begin_s
    if status not in (0, EXIT_FAILED_CELLS):
        sys.exit(f"{' '.join(command)} ended with {status}; see {path.with_suffix('.log')}")
    used = {} if beside is None else {"neighbour_cpu_s": beside.cpu_s, "printed": beside.outputs}
    wall_path(path).write_text(json.dumps({"wall_s": wall_s, "command": command, **used}) + "\n")
    print(f"{path}: {wall_s:.0f} s", file=sys.stderr)


def wall_path(path: Path) -> Path:
    """Return where the wall time of a profile's run is noted."""
    return path.with_suffix(".wall.json")


def keep_busy(kind: str, seed: int, place: int) -> None:
    """Be the process of this place: keep a CPU busy during each burst of more CPUs than `place`.

    Processes of one neighbour begin some milliseconds apart, as they are started one after the other.
    """
    begin_s = time.monotonic()
    for burst in bursts_of(kind, seed):
        if place < burst.cpus:
            time.sleep(max(0.0, begin_s + burst.begin_s - time.monotonic()))
            while time.monotonic() - begin_s < burst.end_s:
                for _ in range(TURNS):
                    pass


def planned(kind: str, seed: int, seconds: float) -> tuple[int, float]:
    """Return how many bursts begin within so many seconds, and how long they last in these."""
    bursts = list(takewhile(lambda burst: burst.begin_s < seconds, bursts_of(kind, seed)))
    return len(bursts), sum(min(burst.end_s, seconds) - burst.begin_s for burst in bursts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--place", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.place is not None:
        keep_busy(arguments.kind, arguments.seed, arguments.place)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Neighbour(arguments.kind, arguments.seed) as neighbour:
        time.sleep(arguments.seconds)
    begun, busy_s = planned(arguments.kind, arguments.seed, arguments.seconds)
    share_pct = 100 * busy_s / arguments.seconds
    print(f"{arguments.kind}, seed {arguments.seed}: {begun} bursts, {share_pct:.0f} % of {arguments.seconds:g} s")
    print(f"{neighbour.cpu_s:.2f} s of CPU time used")


if __name__ == "__main__":
    main()
