"""An accelerator's blocks, from a worker's answer to the step that is judged."""

import numpy as np
import profile_builder as b
from real_worker import GROUP, block_of, launch_of, spec_of, worker_of

from kit.compare.table import times_ns
from kit.profile.store import timed_steps
from kit.runner.finished_launch import finished_launches
from kit.worker.messages import Done, Join, Measure, Measured

WAITED_NS, PIPELINED_NS = 300_000, 100_000


class Answering:
    """A worker whose steps take WAITED_NS where they are waited for by themselves, else PIPELINED_NS."""

    def __init__(self, spec, stop):
        pass

    def ask(self, request, limit_s):
        if not isinstance(request, Measure):
            return Done(counters=["process.cpu_ns"] if isinstance(request, Join) else [])
        waits_ns = [
            wait_ns
            for waits, per_wait, _ in request.segments
            for wait_ns in [WAITED_NS if per_wait == 1 else per_wait * PIPELINED_NS + WAITED_NS - PIPELINED_NS] * waits
        ]
        waits = np.array(waits_ns, np.int64)
        ran = [segment.waits for segment in request.segments]
        return Measured(begin_ns=1, span_ns=int(waits.sum()), waits=waits.tobytes(), ran=ran, counters=[45_000])

    def stop(self):
        pass

    end = stop


def test_the_step_is_of_pipelined_steps_and_the_raw_ones_are_those_that_were_waited_for():
    cell = b.cell(device="gpu")
    with worker_of(spec_of(cell), Answering) as worker:
        worker.build(cell.key, GROUP)
        worker.warm_up(cell.key, GROUP)
        for cycle in range(8):
            worker.add(cell.key, GROUP, *block_of(worker, cell.key, cycle, 0.25))
        (finished,) = finished_launches(worker, None, {})
        launch = launch_of(worker, cell)
    (per_wait,) = set(launch.blocks.per_wait)
    # A wait costs less than a hundredth of its steps.
    assert 1.01 * per_wait * PIPELINED_NS >= 100 * (WAITED_NS - PIPELINED_NS)
    assert max(times_ns(launch.blocks)) <= 1.01 * PIPELINED_NS
    assert set(times_ns(launch.blocks, "latency")) == {WAITED_NS}
    assert set(timed_steps(launch, finished.steps).tolist()) == {WAITED_NS}
    assert launch.p95_ns == WAITED_NS
