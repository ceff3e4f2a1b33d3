"""The contract of a member's process: it takes and gives lines, and can be stopped, continued and killed.

start ─► send, receive … ─► pause │ resume ─► send, receive … ─► pause │ … ─► wait ─► how_it_ended
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kit.backends.environment import THREAD_VARIABLES
from kit.devices.catalog import member_environment
from kit.profile.cell import Variant
from kit.profile.reason import Reason, reason
from kit.worker.messages import Prepare

# A signal acts in microseconds; a process that takes longer is stuck in a driver or a disk.
SIGNAL_LIMIT_S = 10.0
# Enough of standard error to see the framework's own message, not its whole stack.
STDERR_TAIL_LINES = 20
# CUDA counts GPUs as NVML does: by bus id, not fastest first; unless the user has chosen.
MEMBER_ENVIRONMENT = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def devices_shown(prepare: Prepare, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that leave a member the devices of its cells, of those that `environment` allows."""
    cell = prepare.programs[0].cell  # they share a process: its device is theirs
    return member_environment(cell.device, cell.devices // max(1, len(prepare.hosts)), environment)


def thread_variables(prepare: Prepare) -> dict[str, str]:
    """Return the variables that give a member its threads; none where its variant has its own."""
    return dict.fromkeys(THREAD_VARIABLES, str(prepare.threads)) if prepare.tells_threads else {}


class MemberRequest(NamedTuple):
    """What a member is started with."""

    backend: str
    variant: Variant
    prepare: Prepare


class Process(Protocol):
    """A process at the far end of two pipes."""

    def send(self, line: bytes) -> None:
        """Write a line to it. OSError where it has gone."""

    def receive(self, wait_s: float) -> bytes | None:
        """Return what it has written within `wait_s`; b"" at its end, None where nothing came."""

    def pause(self) -> bool:
        """Stop all its threads; False where it has ended. TimeoutError where it does neither within SIGNAL_LIMIT_S."""

    def resume(self) -> None:
        """Continue it."""

    def wait(self, limit_s: float) -> None:
        """Wait for its end, or until `limit_s` are over."""

    def how_it_ended(self) -> Reason:
        """Return its signal or exit code, or that the kernel killed it for want of memory."""

    def stderr_tail(self) -> str:
        """Return the last lines that it wrote to standard error."""

    def kill(self) -> None:
        """End it with all that it has started, and remove what is left of it; nothing where that was done."""


def killed_by(number: int) -> Reason:
    """Return that a signal ended a process."""
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return reason("signal", signal=name)


def exited_with(exit_code: int, stderr_tail: str) -> Reason:
    """Return that a process ended by itself, with its last words."""
    return reason("exit_code", exit_code=exit_code, message=(stderr_tail.splitlines() or [""])[-1])
