"""Plants a backend, and faults in real workers: Python imports this file wherever its folder is on PYTHONPATH.

FAULTS is JSON, a list of {"cell", "at", "nth", "start", "rank", "do"}: in workers whose cell key contains `cell`, in
their `start`-th process (0), in its rank (0), at the `nth` (0) begin of the phase or "block" `at`, do it. The runner
tells each worker who it is in FAULTS_AT; FAULTS_FOLDER counts the processes.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

HERE = Path(__file__).parent


def kill(fault):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_supervisor(fault):
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)


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
    os.write(1, b'{"type": "Done", "part": {}}\n' * 100)
    os.system("echo noise of a child")


def counters_fall(fault):
    """As kernels' counters do in virtual machines."""
    from kit.sensors.sources import EdgeCounters

    reads = count()
    EdgeCounters.read = lambda counters: (-next(reads),) * len(counters.names)


def signal_runner(fault):
    """A signal to `kit run` in this very moment; this worker goes on, as it does not know."""
    os.kill(json.loads(os.environ["FAULTS_AT"])["runner"], getattr(signal, fault["signal"]))
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


def start_number(name):
    """How many processes of this name there were before."""
    folder, number = Path(os.environ["FAULTS_FOLDER"]), 0
    while True:
        try:
            (folder / f"{name.replace('/', '_')}.{number}").touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return number


def plant_in_runner():
    """Let each worker know which it is, and have ranks asked for a block in two requests, however slow the machine."""
    from kit.runner import warm_up_and_blocks, worker_processes

    warm_up_and_blocks.PIECE_S = 3600.0
    command_of = worker_processes.command_of

    def planted_command_of(spec, rank, *network):
        command, keys = command_of(spec, rank, *network), [cell.key for cell in spec.cells]
        start = start_number("+".join([*keys, f"rank{rank}"]))
        who = json.dumps({"keys": keys, "rank": rank, "start": start, "runner": os.getpid()})
        return command._replace(environment={**command.environment, "FAULTS_AT": who})

    worker_processes.command_of = planted_command_of


def plant_in_worker(faults):
    from kit.worker import messages
    from kit.worker.worker import _Worker

    phases = {
        messages.Prepare: "import",
        messages.Load: "data",
        messages.Build: "build",
        messages.Conclude: "parity",
        messages.Finish: "finish",
    }
    who, seen, stepped = json.loads(os.environ["FAULTS_AT"]), Counter(), set()
    answer = _Worker.answer

    def phase_of(request):
        if not isinstance(request, messages.Measure):
            return phases.get(type(request))
        if request.program not in stepped:
            stepped.add(request.program)
            return "first_step"
        return "block" if request.is_block else "warmup"

    def planted_answer(self, request):
        at, keys = phase_of(request), who["keys"]
        program = getattr(request, "program", None)
        if program is not None:
            keys = [keys[program % len(keys)]]
        moment = {"at": at, "nth": seen[at, *keys], "start": who["start"], "rank": who["rank"]}
        seen[at, *keys] += 1
        for fault in faults:
            if moment.items() <= ({"nth": 0, "start": 0, "rank": 0} | fault).items() and any(
                fault["cell"] in key for key in keys
            ):
                globals()[fault["do"]](fault)
        return answer(self, request)

    _Worker.answer = planted_answer


if "kit" in sys.orig_argv or "kit.worker" in sys.orig_argv:
    from kit import backends

    backends.__path__.append(str(HERE / "backends"))
    if "FAULTS" in os.environ and "--probe" not in sys.orig_argv:
        if "kit" in sys.orig_argv:
            plant_in_runner()
        elif "FAULTS_AT" in os.environ:
            plant_in_worker(json.loads(os.environ["FAULTS"]))
