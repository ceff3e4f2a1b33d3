"""A user's program may end its process without an exception: standard error then says in which line that was.

    a crash, such as SIGSEGV         Python's faulthandler writes the stack, and the process dies
    a signal that ends a process     likewise, where the program has no handler of its own
    os._exit, os.exec*, SIGKILL      the stack is written first, by what stands in place of Python's functions

    worker ─ stack, newest call first ─► standard error ─► runner: `last_place`

Processes that the program forks are left as they would be without it. Nothing here runs while a step runs.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

# A signal that Python or the kernel ignores by default ends nothing; faulthandler has those of a crash anyway.
ENDING = (
    signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGVTALRM,
    signal.SIGPROF, signal.SIGXCPU,
)  # fmt: skip
# The head of a stack as faulthandler writes it: of a crash, of a signal, or because it was asked to.
HEAD = re.compile(
    r"^(?:Fatal Python error: .*\n+(?:<.*\n+)?)?(?:Current thread|Stack) .*\(most recent call first\):\n", re.M
)
# With its calls, and the libraries that faulthandler lists below those of a crash.
STACK = re.compile(rf"{HEAD.pattern}(?:  .*\n)*(?:\nExtension modules: .*\n?)?", re.MULTILINE)
FRAME = re.compile(r'  File "(.*)", line (\d+) in ')
# Folders of Python and of packages, whatever interpreter the worker has.
LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python3\.\d+/|^<(?!ipython)")
KIT = f"{Path(__file__).parents[1]}{os.sep}"

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class Place(NamedTuple):
    """Where a program was."""

    file: str
    line: int


def write_the_line_of_a_sudden_end() -> None:
    """Let this process write its stack to standard error when it ends without an exception."""
    # Of its own: a program may close standard error, or put a file in its place.
    stderr, worker = os.dup(2), os.getpid()
    faulthandler.enable(stderr, all_threads=False)
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            faulthandler.register(number, stderr, all_threads=False, chain=True)

    def write_first(
        call: Callable[Arguments, Returned], ends: Callable[..., bool] = lambda *_, **__: True
    ) -> Callable[Arguments, Returned]:
        @wraps(call)
        def called(*arguments: Arguments.args, **named: Arguments.kwargs) -> Returned:
            if os.getpid() == worker and ends(*arguments, **named):
                faulthandler.dump_traceback(stderr, all_threads=False)
            return call(*arguments, **named)

        return called

    def ends_worker(target: int, number: int) -> bool:
        return number == signal.SIGKILL and target in {worker, -worker, os.getppid(), 0}

    def ends_group(target: int, number: int) -> bool:
        return number == signal.SIGKILL and target in {os.getpgrp(), 0}

    namespace: Any = os  # whose functions have types of their own
    for name in ("_exit", "execv", "execve"):
        setattr(namespace, name, write_first(getattr(os, name)))
    namespace.kill = write_first(os.kill, ends_worker)
    namespace.killpg = write_first(os.killpg, ends_group)
    os.register_at_fork(after_in_child=_leave_to_parent)


def _leave_to_parent() -> None:
    """Write nothing in a process that was forked: how it ends is its parent's affair."""
    faulthandler.disable()
    for number in ENDING:
        # To unregister restores what was there before, also in place of a handler that the program has set since.
        if signal.getsignal(number) is signal.SIG_DFL:
            faulthandler.unregister(number)


def without_stacks(stderr: str) -> str:
    """Return what else is in standard error."""
    return STACK.sub("", stderr)


def last_place(stderr: str) -> Place | None:
    """Return where the process was that wrote the last stack; None: there is none, or no code of the user's in it."""
    heads = [*HEAD.finditer(stderr)]
    if not heads:
        return None
    for frame in FRAME.finditer(stderr, heads[-1].end()):
        file, line = frame.groups()
        if not LIBRARY.search(file) and not file.startswith(KIT):
            with suppress(UnicodeError):  # other characters than ASCII are written as in Python's source
                file = file.encode("ascii").decode("unicode_escape") if "\\" in file else file
            return Place(file, int(line))
    return None
