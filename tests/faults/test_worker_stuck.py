"""A worker that does not go when it is killed: a sleeping tracer holds it, as a driver would."""

import os
import signal

import pytest
from fault_runs import in_worker

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]


def test_a_worker_that_cannot_be_ended_stops_the_run(workplace, tell):
    place = workplace()
    tracer = place.folder / "tracer"
    fault = {"round": 1, "phase": "steady", "do": "be_traced", "told": str(tracer)}
    try:
        answer = place.run(KIT_PHASE_LIMIT_S="10", **in_worker(fault))
    finally:
        os.kill(int(tracer.read_text()), signal.SIGKILL)
    assert answer.code == 2, answer.stderr
    (said,) = answer.lines("kit: ")
    finished = place.in_journal()
    assert [launch.round for launch in finished] == [0]
    kept = place.where_kept(finished)
    resumed = place.go_on()
    assert resumed.code == 0, resumed.stderr
    place.check_whole(finished)
    tell(
        "worker that SIGKILL does not end",
        "the second launch's worker hangs, and a process that traces it (ptrace) keeps it from going; "
        "`KIT_PHASE_LIMIT_S=10`",
        kept=kept,
        code=answer.code,
        said=said,
        go_on="see what holds it (`ps`, the kernel's log), then `kit run --resume --out run.json`",
    )
