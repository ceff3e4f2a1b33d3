"""Hold two ranks of a framework, built: prints their process numbers and who reaches them as JSON, then waits.

python tests/held_ranks.py BACKEND MODE
"""

import json
import os
import sys

import psutil
from msgspec import to_builtins
from real_worker import GROUP, cell, launch_of, spec_of, worker_of

from kit.environment import PROCESS_EACH


def main(backend, mode):
    trained = cell(backend, "train", compile_mode=mode, devices=2)
    spec = spec_of(trained, ranks=2, cpus=sorted(os.sched_getaffinity(0))[:2], env={PROCESS_EACH: "1"})
    with worker_of(spec) as worker:
        worker.build(trained.key, GROUP)
        launch = launch_of(worker, trained)
        every = psutil.Process().children(recursive=True)
        ranks = [process.pid for process in every if process.cmdline()[-1:] == ["kit.worker"]
                 and "kit.worker.supervisor" not in process.cmdline()]  # fmt: skip
        reached = getattr(launch, "who_reaches", None)
        print(json.dumps({
            "ranks": ranks, "processes": [process.pid for process in every],
            "failure": to_builtins(launch.failure), "who_reaches": reached and reached.code,
        }), flush=True)  # fmt: skip
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
