"""The worker's command line: ``python -m kit.worker --runner PID`` serves, ``--probe torch`` looks and answers."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

# From <linux/prctl.h>; prctl(2).
PR_SET_PDEATHSIG = 1


def main() -> int:
    """Serve a runner, or probe for a framework."""
    parser = argparse.ArgumentParser(prog="python -m kit.worker")
    parser.add_argument("--runner", type=int, metavar="PID", help="end when this process does")
    parser.add_argument("--cpus", default="", metavar="0,1", help="run on these only")
    parser.add_argument("--rank", default="", metavar="N/M", help="be rank N of M")
    parser.add_argument("--lead", default="", metavar="HOST:PORT", help="with --rank: where rank 0 listens")
    parser.add_argument("--probe", metavar="BACKEND")
    parser.add_argument("--devices", action="store_true", help="with --probe: import the framework, and ask it")
    arguments = parser.parse_args()
    if arguments.probe:
        from kit.worker.probe import print_probe

        return print_probe(arguments.probe, devices=arguments.devices)
    if not (arguments.runner or arguments.rank):
        parser.error("--runner is needed, or --probe alone")
    if arguments.runner:
        _die_with(arguments.runner)
    if arguments.cpus:
        # Before a framework counts its CPUs.
        os.sched_setaffinity(0, [int(cpu) for cpu in arguments.cpus.split(",")])
    commands, answers = _own_pipes()
    # After this, what a framework prints is no answer. Imported here: a broken import is a failure like any other.
    from kit.worker.member import Member
    from kit.worker.ranks import follow

    with suppress(BrokenPipeError):
        if arguments.rank:
            rank, commands, answers = follow(arguments.rank, arguments.lead)
            return Member(commands, answers, rank).serve()
        return Member(commands, answers).serve()
    return 1


def _die_with(runner: int) -> None:
    """Have the kernel kill this process when its runner dies, be it stopped or not; at once where it has died."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() not in (runner, 0):
        # Behind a script that does not exec its interpreter the parent is that script, as it should not be.
        with suppress(ProcessLookupError):
            os.kill(runner, 0)
            return
        sys.exit("the runner that started this worker has ended")


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep standard input and output for the runner; give the frameworks /dev/null and standard error."""
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return commands, answers


if __name__ == "__main__":
    sys.exit(main())
