"""Plants a backend, and faults in real members: Python imports this file wherever its folder is on PYTHONPATH.

FAULTS is JSON, a list of {"cell", "at", "nth", "start", "rank", "do"}: in members whose cell key contains `cell`, in
their `start`-th process (0), in its rank (0), at the `nth` (0) begin of the phase or "block" `at`, do it. FAULTS_FOLDER
counts the processes.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
RANK = int(sys.argv[sys.argv.index("--rank") + 1].split("/")[0]) if "--rank" in sys.argv else 0


def kill(fault):
    os.kill(os.getpid(), signal.SIGKILL)


def hang(fault):
    while True:
        time.sleep(60)


def no_memory(fault):
    """As where the system gives no more: an allocation fails."""
    import resource

    import numpy as np

    held_b = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held_b + (64 << 20), resource.RLIM_INFINITY))
    np.ones(1 << 30)


def chatter(fault):
    """What frameworks print: through Python, and past it."""
    print("noise\n" * 100, flush=True)
    os.write(1, b'{"answer": "done", "part": {}}\n' * 100)
    os.system("echo noise of a child")


def signal_runner(fault):
    """A signal to `kit run` in this very moment; this member goes on, as it does not know."""
    os.kill(int(sys.argv[sys.argv.index("--runner") + 1]), getattr(signal, fault["signal"]))
    if fault["signal"] == "SIGKILL":
        time.sleep(60)


def fill_disk(fault):
    """Fill the file system of the run's folder."""
    with Path(fault["folder"], "ballast").open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            pass


def start_number(keys):
    """How many processes of these cells there were before."""
    folder, number = Path(os.environ["FAULTS_FOLDER"]), 0
    name = "+".join([*keys, f"rank{RANK}"]).replace("/", "_")
    while True:
        try:
            (folder / f"{name}.{number}").touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return number


def plant(faults):
    from kit.worker.ledger import PhaseLedger
    from kit.worker.measured_program import MeasuredProgram
    from kit.worker.member import Member

    member, seen = {}, Counter()

    def meet(at, keys):
        nth = seen[at, *keys]
        seen[at, *keys] += 1
        for fault in faults:
            moment = {"at": at, "nth": nth, "start": member["start"], "rank": RANK}
            if moment.items() <= ({"nth": 0, "start": 0, "rank": 0} | fault).items() and any(
                fault["cell"] in key for key in keys
            ):
                globals()[fault["do"]](fault)

    prepare, phase, block = Member._prepare, PhaseLedger.phase, MeasuredProgram.block

    def planted_prepare(self, asked):
        member["keys"] = [program.cell.key for program in asked.programs]
        member["start"] = start_number(member["keys"])
        return prepare(self, asked)

    @contextmanager
    def planted_phase(self, name):
        with phase(self, name):
            meet(name, member["keys"] if self._program is None else [member["keys"][self._program]])
            yield

    def planted_block(self, *given, **named):
        meet("block", [self._cell.key])
        return block(self, *given, **named)

    Member._prepare, PhaseLedger.phase, MeasuredProgram.block = planted_prepare, planted_phase, planted_block


if "kit" in sys.orig_argv or "kit.worker" in sys.orig_argv:
    from kit import backends

    backends.__path__.append(str(HERE / "backends"))
    if "--runner" in sys.orig_argv and "FAULTS" in os.environ:
        plant(json.loads(os.environ["FAULTS"]))
