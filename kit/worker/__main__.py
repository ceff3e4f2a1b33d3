"""The worker's command line: ``python -m kit.worker`` serves a runner, ``--probe torch`` looks and answers."""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

from kit.import_order import import_as_plain_python

# From <linux/prctl.h>; prctl(2).
PR_SET_PDEATHSIG = 1


def main() -> int:
    """Serve a runner, or probe for a framework."""
    parser = argparse.ArgumentParser(prog="python -m kit.worker")
    parser.add_argument("--probe", metavar="BACKEND")
    parser.add_argument("--devices", action="store_true", help="with --probe: import the framework, and ask it")
    arguments = parser.parse_args()
    if arguments.probe:
        from kit.worker.probe import print_probe

        return print_probe(arguments.probe, devices=arguments.devices)
    # The kernel kills this process with its supervisor, be it stopped or not. A supervisor that has died before this
    # call has closed the input.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Standard input and output are the runner's; the framework gets /dev/null and standard error.
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    os.register_at_fork(after_in_child=lambda: _leave_to_parent(requests, answers))
    # What a program may share with Steadykit is found in the program's order.
    paths = sys.path[:]
    import_as_plain_python()
    import numpy  # noqa: F401

    sys.path[:] = paths
    from kit.worker.worker import serve

    with suppress(BrokenPipeError):
        return serve(requests, answers)
    return 1


def _leave_to_parent(*streams: BinaryIO) -> None:
    """Let a process that a program forks ask and answer nobody: the runner speaks to its parent."""
    with suppress(OSError):  # the program has closed them
        null = os.open(os.devnull, os.O_RDWR)
        for stream in streams:
            os.dup2(null, stream.fileno(), inheritable=False)


if __name__ == "__main__":
    sys.exit(main())
