"""A member that is held, stopped, between the experiments of the hardware self-test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Self

from kit.profile.cell import Cell, Variant
from kit.profile.identity import Accelerator
from kit.profile.launch import Launch
from kit.profile.reason import Reason, reason
from kit.profile.schema import Group
from kit.profile.unfinished import RunPlan
from kit.runner.boards import boards_seen
from kit.runner.interrupt import StopFlag
from kit.runner.member import Member
from kit.runner.processes import start_process
from kit.runner.processes.process import MemberRequest, Process
from kit.runner.round import member_request
from kit.sensors.samples import Samples
from kit.suites.plan import MemberPlan
from kit.worker.messages import Done

GROUP = "selftest"


class Bench(NamedTuple):
    """What all experiments share."""

    plan: RunPlan
    stop: StopFlag
    boards: Sequence[Accelerator]  # as they were before the first member
    begins: Callable[[str], None]  # told what is going to be done
    start: Callable[[MemberRequest], Process] = start_process

    def cells(self) -> dict[str, list[Cell]]:
        """Return the plan's cells by backend."""
        by_backend: dict[str, list[Cell]] = {}
        for cell in self.plan.cells:
            by_backend.setdefault(cell.backend, []).append(cell)
        return by_backend


class Trial:
    """One member with its cells. Leaving it ends the process."""

    def __init__(
        self,
        bench: Bench,
        cells: Sequence[Cell],
        *,
        share: float = 1.0,
        proves: bool = False,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        plan = MemberPlan(f"{cells[0].backend}-{cells[0].device}", list(cells))
        group = Group(key=GROUP, cells=[cell.key for cell in cells], baseline=cells[0].key)
        request = member_request(bench.plan, plan, 0 if proves else 1, share)
        if environment:
            request = request._replace(variant=Variant(name=GROUP, env=dict(environment)))
        self.backend = cells[0].backend
        self._bench, self._cells, self._cycle = bench, list(cells), 0
        self._member = Member(plan, request, bench.start(request), [group], 0, bench.stop)
        self._member.prepare()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._member.kill()

    def ready(self) -> Reason | None:
        """Build and warm up the first cell; return why it cannot be measured, if it cannot."""
        self._bench.stop.check()
        key = self._cells[0].key
        self._member.build(key, GROUP)
        if not self._member.is_gone(key):
            self._member.warm_up(key, GROUP)
        return self.failure(self._cells[0])

    def step_ns(self, seconds: float) -> float | None:
        """Return the step time of one block of the first cell."""
        self._bench.stop.check()
        self._cycle += 1
        key = self._cells[0].key
        done = self._member.block(key, self._cycle, seconds)
        if done is not None:
            self._member.add(key, GROUP, done)
        return step_ns_of(done)

    def logs(self, blocks: int, seconds: float) -> list[float]:
        """Return the logarithm of the step time of each of some blocks."""
        steps_ns = [self.step_ns(seconds) for _ in range(blocks)]
        return [math.log(step_ns) for step_ns in steps_ns if step_ns]

    def load(self, seconds: float) -> Done | None:
        """Run one long block of the first cell, without a pause; the last is the one over which energy is measured."""
        self._bench.stop.check()
        return self._member.long_block(self._cells[0].key, GROUP, seconds)

    def prove(self, cell: Cell) -> Launch:
        """Build a cell, and let it prove what it computes."""
        self._bench.stop.check()
        self._member.build(cell.key, GROUP)
        if not self._member.is_gone(cell.key):
            self._member.conclude(cell.key)
        return self._member.launches[cell.key, GROUP]

    def concluded(self, samples: Samples | None) -> Launch:
        """Let the first cell conclude and the process end; return the launch with what was sampled."""
        if not self._member.is_gone(self._cells[0].key):
            self._member.conclude(self._cells[0].key)
        self._member.finish()
        kept = self._member.finished_launches(samples, boards_seen(self._bench.boards))
        return next(each.launch for each in kept if each.launch.cell_key == self._cells[0].key)

    def failure(self, cell: Cell) -> Reason | None:
        """Return why a cell failed; None where it has not."""
        failure = self._member.launches[cell.key, GROUP].failure
        if failure is None:
            return reason("process_ended") if self._member.is_gone(cell.key) else None
        return failure.reason


def step_ns_of(done: Done | None) -> float | None:
    """Return the step time of a block; None where it failed."""
    return None if done is None else done.part.blocks.duration_ns[0] / done.part.blocks.steps[0]
