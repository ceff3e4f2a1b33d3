"""Plants a fault in the real worker: Python imports this file at its start, wherever this folder is on PYTHONPATH.

FAULTS is JSON, a list of {"task", "batch", "round", "phase", "do", "after_cpu_s", "told"}; "phase" null: before the
first. The worker's own request says which of them are its own.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def kill(fault):
    """SIGKILL at once, or after some CPU time within the phase: however busy the machine is, it is still in it."""
    if not fault.get("after_cpu_s"):
        os.kill(os.getpid(), signal.SIGKILL)
    signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    signal.setitimer(signal.ITIMER_PROF, fault["after_cpu_s"])


def hang(fault):
    """Heed no signal that can be ignored, nor does a child in a session of its own, whose number is told."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    told = Path(fault["told"])
    subprocess.Popen(["sh", "-c", f"echo $$ > '{told}'; exec sleep 600"], start_new_session=True)
    while True:
        time.sleep(60)


def weights_that_are_no_numbers(fault):
    measure = sys.modules["kit.worker.measure"]
    initial_weights = measure.initial_weights

    def planted(*arguments):
        return {name: array * float("nan") for name, array in initial_weights(*arguments).items()}

    measure.initial_weights = planted


def kill_sampler(fault):
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (sampler,) = [pid for pid in children if b"kit.worker.sampler" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    os.kill(int(sampler), signal.SIGKILL)


def plant(faults):
    def do(phase):
        for fault in faults:
            if fault["phase"] == phase:
                globals()[fault["do"]](fault)

    from kit.worker.ledger import PhaseLedger

    begin = PhaseLedger.begin

    def planted(self, name):
        begin_ns = begin(self, name)
        do(name)
        return begin_ns

    PhaseLedger.begin = planted
    do(None)


if "FAULTS" in os.environ and "kit.worker" in sys.orig_argv and "--request" in sys.orig_argv:
    request = json.loads(Path(sys.orig_argv[sys.orig_argv.index("--request") + 1]).read_bytes())
    where = {"task": request["cell"]["task"], "batch": request["cell"]["batch"], "round": request["round"]}
    own = [fault for fault in json.loads(os.environ["FAULTS"]) if where.items() <= fault.items()]
    if own:
        plant(own)
