"""A real member, spoken to through its pipes as a runner does."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from kit.profile.cell import Cell
from kit.profile.launch import StepPlan
from kit.worker.messages import Answer, Do, Entered, Failed, Prepare, ProgramRequest

PLANTED = Path(__file__).parents[1] / "faults" / "planted"
# With the kit of this checkout, whichever is installed.
PYTHONPATH = f"{PLANTED}{os.pathsep}{Path(__file__).parents[2]}"
PLAN = StepPlan(cycles=2, block_s=0.05, lead_in_s=0.005, warmup_s=0.1, warmup_steps=5, energy_s=0.0)


def cell(backend="torch", task="train", **more):
    fields = {"workload": "mlp", "device": "cpu", "batch": 32, "precision": "float32", "feed": "device"}
    return Cell(**(fields | {"backend": backend, "task": task, "compile_mode": "eager"} | more))


def prepare(*cells, slowdown_pct=0.0, data="synthetic", prove=False, epochs=1, fit_steps=None):
    return Prepare(
        programs=[ProgramRequest(cell=cell, slowdown_pct=slowdown_pct) for cell in cells],
        plan=msgspec.structs.replace(PLAN, epochs=epochs, fit_steps=fit_steps),
        data={"mnist": data, "uci_har": data},
        seed=0,
        threads=1,
        cpus=sorted(os.sched_getaffinity(0))[:1],
        clock="monotonic_raw",
        prove=prove,
    )


class MemberProcess:
    """Of this process; killed at the end of the `with`. `program`: what is run in place of `-m kit.worker`."""

    def __init__(self, *program, **environment):
        self.process = subprocess.Popen(
            [sys.executable, *(program or ("-m", "kit.worker")), "--runner", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": PYTHONPATH, **environment},
        )
        self.entered = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, command):
        """The answer; phases that were entered on the way are kept."""
        self.process.stdin.write(msgspec.json.encode(command) + b"\n")
        self.process.stdin.flush()
        while True:
            answer = msgspec.json.decode(self.process.stdout.readline(), type=Answer)
            if not isinstance(answer, Entered):
                return answer
            self.entered.append((answer.phase, answer.program))

    def do(self, verb, program=0, **more):
        return self.done(Do(verb=verb, program=program, **more))

    def done(self, command):
        answer = self.ask(command)
        assert not isinstance(answer, Failed), answer
        return answer
