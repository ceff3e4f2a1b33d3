"""Before the first round: the run says what other programs use of the CPUs, and may wait for them to stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kit.clock import now_ns
from kit.fingerprint.machine_state import others_now
from kit.report.sentences import sentence
from kit.runner.interrupt import StopFlag

# One look may fall between two bursts.
QUIET_LOOKS = 3
# While it is waited, what others use is said so often.
LINE_EVERY_S = 30.0


def wait_for_quiet(cpus: Sequence[int], seconds: float, stop: StopFlag, say: Callable[[str], None]) -> None:
    """Say what others use of `cpus` where that disturbs a run, and wait until they stop, for `seconds` at most.

    Raises:
        KeyboardInterrupt: it was asked for.
    """
    begin_ns, said_s = now_ns(), -LINE_EVERY_S
    quiet = 0
    while quiet < (QUIET_LOOKS if seconds else 1):
        stop.check()
        others = others_now(cpus)
        quiet = quiet + 1 if others.is_quiet else 0
        spent_s = (now_ns() - begin_ns) / 1e9
        if not others.is_quiet and spent_s - said_s >= LINE_EVERY_S:
            waiting = f"waiting up to {seconds - spent_s:.0f} s"
            say(f"{sentence(others.reason)}; {waiting if seconds else 'disturbed cycles will be measured again'}")
            said_s = spent_s
        if spent_s >= seconds and not quiet:
            if seconds:
                say(f"other programs did not stop within {seconds:g} s; measuring anyway")
            return
