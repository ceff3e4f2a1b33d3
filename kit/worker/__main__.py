"""The worker's command line: one cell in, one launch record out.

python -m kit.worker --request request.json --record launch.json --trail phases [--engine PID [--engine-started TICKS]]
python -m kit.worker --probe torch
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import msgspec

from kit.errors import KitError
from kit.profile.atomic import write_atomically
from kit.profile.finite import fail_if_not_finite
from kit.profile.launch import Failure, Launch, LaunchRequest
from kit.worker.no_room import ERRNOS, EXIT_NO_ROOM
from kit.worker.parent_death import die_with

# Of a framework's message; XLA's can fill pages, and the stack stands in the tail of standard error.
REASON_LENGTH = 500


def main() -> int:
    """Run one launch, or probe for a framework; 1 if the launch failed (the record says why)."""
    parser = argparse.ArgumentParser(prog="python -m kit.worker")
    parser.add_argument("--request", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--trail", type=Path)
    parser.add_argument("--engine", type=int, metavar="PID", help="end when this process does")
    parser.add_argument("--engine-started", type=int, metavar="TICKS", help="when it began, as /proc/PID/stat has it")
    parser.add_argument("--probe", metavar="BACKEND")
    arguments = parser.parse_args()
    if arguments.probe:
        from kit.worker.probe import probe

        sys.stdout.write(msgspec.json.encode(probe(arguments.probe)).decode() + "\n")
        return 0
    if not (arguments.request and arguments.record and arguments.trail):
        parser.error("--request, --record and --trail are needed together, or --probe alone")
    if arguments.engine:
        die_with(arguments.engine, arguments.engine_started)
    request = msgspec.json.decode(arguments.request.read_bytes(), type=LaunchRequest)
    launch = _launch(request, arguments.trail, lambda finished: _write(arguments.record, request, finished))
    _write(arguments.record, request, launch)
    return 1 if launch.failure else 0


def _write(record: Path, request: LaunchRequest, launch: Launch) -> None:
    from kit.worker.measure import new_launch

    fail_if_not_finite(launch, new_launch(request))
    try:
        write_atomically(record, msgspec.json.encode(launch))
    except OSError as error:
        if error.errno in ERRNOS:
            # At once: what is buffered for standard output would fail at an orderly exit, and change its code.
            os._exit(EXIT_NO_ROOM)
        raise


def _launch(request: LaunchRequest, trail: Path, keep: Callable[[Launch], None]) -> Launch:
    # Imported here: the worker starts its ledger before anything slow, and a broken import is a failure like any other.
    from kit.worker.ledger import PhaseLedger
    from kit.worker.measure import measure, new_launch

    ledger, launch = PhaseLedger(trail), new_launch(request)
    try:
        measure(request, ledger, launch, keep=lambda: keep(launch))
    except Exception as error:
        if not isinstance(error, KitError):
            traceback.print_exc()
        reason = str(error) if isinstance(error, KitError) else f"{type(error).__name__}: {error}"
        launch.failure = Failure(phase=ledger.current, reason=" ".join(reason.split())[:REASON_LENGTH])
    return launch


if __name__ == "__main__":
    sys.exit(main())
