"""Plants a fault in the real worker: Python imports this file at its start, wherever this folder is on PYTHONPATH.

FAULTS is JSON, a list of {"task", "batch", "round", "phase", "do", "after_cpu_s", "told"}; "phase" null: before the
first. The worker's own request says which of them are its own. FAULT_OF_RUN names one that `kit run` itself meets.
"""

import contextlib
import ctypes
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
    os.kill(sampler(), signal.SIGKILL)


def stop_sampler(fault):
    """As the observer test does; its number is told."""
    os.kill(sampler(), signal.SIGSTOP)
    Path(fault["told_sampler"]).write_text(str(sampler()))


def sampler():
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    (found,) = [pid for pid in children if b"kit.worker.sampler" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(found)


def fill_temporary_folder(fault):
    """The one that `kit run` has for all launches."""
    fill(Path(os.environ["KIT_LAUNCH"]).parent)


def fill(folder):
    """Until nothing goes in any more."""
    with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def fill_temporary_folder_between_launches():
    """In `kit run` itself, when its first launch is in the journal."""
    from kit.profile.journal import Journal

    add = Journal.add

    def planted(self, launch):
        add(self, launch)
        fill(Path(os.environ["TMPDIR"]))

    Journal.add = planted


def be_traced(fault):
    """Be held by a sleeping tracer when killed, as by a driver; then sleep. Its number is told."""
    tracer = [sys.executable, str(Path(__file__).with_name("tracer.py")), str(os.getpid())]
    # From <linux/prctl.h>: anybody may trace it. Nor has the tracer the launch's mark: it would be ended with it.
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(2**64 - 1))
    started = subprocess.Popen(tracer, env={}, start_new_session=True, stdout=subprocess.PIPE)
    Path(fault["told"]).write_text(str(started.pid))
    assert started.stdout.readline() == b"traces\n"
    time.sleep(600)


def interrupt_when_a_worker_has_ended():
    """SIGTERM to `kit run` itself, between the end of its first worker and the line in the journal."""
    from kit.engines import local

    end_launch = local.end_launch

    def planted(worker, folder):
        assert worker.wait(60) == 0
        os.kill(os.getpid(), signal.SIGTERM)
        return end_launch(worker, folder)

    local.end_launch = planted


def interrupt_in_an_import():
    """SIGINT to `kit run` itself, as it imports what finds the steady state of its first launch."""

    class Interrupting:
        @staticmethod
        def find_spec(name, path, target=None):
            if name == "scipy.spatial":
                os.kill(os.getpid(), signal.SIGINT)

    sys.meta_path.insert(0, Interrupting)


def interrupt_when_all_is_written():
    """SIGINT to `kit run` itself, when the profile of its last launch has been written."""
    from kit.engines import run

    write_profile = run.write_profile

    def planted(path, profile):
        write_profile(path, profile)
        os.kill(os.getpid(), signal.SIGINT)

    run.write_profile = planted


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

if "FAULT_OF_RUN" in os.environ and sys.orig_argv[1:4] == ["-m", "kit", "run"]:
    globals()[os.environ["FAULT_OF_RUN"]]()
