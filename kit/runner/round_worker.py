"""A worker of a round: what it is asked, when, and the launches that its answers make.

prepare ─► build ─► warm_up ─► block … ─► conclude ─► finish       stopped after each, so that others run alone

What goes wrong with the worker, or with one of its programs, ends up in the launches that it concerns.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from kit.backends.entry import THREAD_VARIABLES
from kit.devices import DEVICES
from kit.environment import PHASE_LIMIT_S
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.fields import reason
from kit.profile.schema import (
    FAILED_RUNS,
    INJECTED_NS,
    Blocks,
    Failure,
    Group,
    Launch,
    LaunchPart,
    Phase,
    PhaseName,
    StepPlan,
)
from kit.profile.store import Steps
from kit.runner.fit_stretches import FitInRound
from kit.runner.merged_answers import joined, one_block
from kit.runner.target import own_variables
from kit.runner.warm_up_and_blocks import (
    COMMAND_TURN_STEPS,
    NO_STEPS,
    TURN_STEPS,
    Groups,
    Pace,
    block_segments,
    event_steps,
    is_warm,
    long_segment,
    pieces,
    probe_segments,
    probed_pace,
    third_ns,
    turns_of,
    warm_up_segment,
)
from kit.runner.worker_processes import Asked, WorkerFailed, reached_by
from kit.runner.worker_spec import WorkerSpec
from kit.suites.groups import WorkerPlan
from kit.worker.messages import (
    Build,
    Compile,
    Conclude,
    Done,
    Finish,
    Load,
    Measure,
    Measured,
    Release,
    Requests,
    Score,
    Segment,
    Trace,
)
from kit.workloads.device_operations import is_operation
from kit.workloads.workload_catalog import workload

# A cell whose process ended in another cell's blocks has not failed itself: the next round gives it a process.
SHARED_PROCESS_ENDED = "shared_process_ended"
# A cell that dies in these has finished what it measured before them; one that dies later computes nonsense.
MEASURING = ("warmup", "steady", "energy")
# An import from a cold network disk, XLA's autotuning and torch.compile take minutes where they work at all.
LIMIT_S = 900.0

# A long block begins restored. It is restored again before a part, about each second, where this takes at most so much
# of a part: all that lies between two parts is in the joules of the block, which a sensor knows to some percent.
RESTORE_FRACTION_MAX = 0.01

Result = TypeVar("Result")
LaunchKey = tuple[str, str]  # cell, group: a cell may be in two groups


def phase_limit_s() -> float:
    """Return the seconds from KIT_PHASE_LIMIT_S, or the default.

    Raises:
        KitError: it is not a number of seconds above 0.
    """
    text = os.environ.get(PHASE_LIMIT_S)
    if not text:
        return LIMIT_S
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    raise KitError(f"{PHASE_LIMIT_S} is {text!r}; give a number of seconds above 0, or unset it")


class _HeldProgram:
    """The program of a cell in the worker.

    Attributes:
        built: what building it gave, for each launch of the cell.
        fit: null: its cell runs in blocks.
        reference: of the fit.
        segments: of each turn of the block that is under way.
        turns: of that block, so far.
    """

    def __init__(self, index: int, cell: Cell) -> None:
        self.index, self.cell = index, cell
        self.pace = Pace(0.0)
        self.built = LaunchPart()
        self.built_steps = NO_STEPS
        self.is_built = self.has_failed = False
        self.fit: FitInRound | None = None
        self.reference: _HeldProgram | None = None
        self.segments: list[Segment] = []
        self.turns: list[Measured] = []


class RoundWorker:
    """One worker of the round. Every call may raise KeyboardInterrupt; the worker has been ended then.

    Args:
        plan: which cells it holds.
        spec: that it was started with.
        asked: the worker itself.
        steps: how long its cells are measured.
        groups: that are measured in this round.
        number: of the round.

    Attributes:
        launches: as far as they have come.
        measured: launches whose blocks have all run.
        has_ended: the process has ended, by itself or as it was asked to.
        steps: every step that was waited for by itself, of each launch.
        long_blocks: of each launch, its last block for energy.
    """

    def __init__(  # noqa: PLR0917
        self, plan: WorkerPlan, spec: WorkerSpec, asked: Asked, steps: StepPlan, groups: Iterable[Group], number: int
    ) -> None:
        self.plan, self.spec = plan, spec
        self.has_ended = False
        self.measured: set[LaunchKey] = set()
        self.launches: dict[LaunchKey, Launch] = {}
        self._programs = {cell.key: _HeldProgram(index, cell) for index, cell in enumerate(plan.cells)}
        for group in groups:
            for key in self._programs.keys() & {*group.cells}:
                self.launches[key, group.key] = Launch(
                    cell_key=key,
                    group=group.key,
                    round=number,
                    process=plan.name,
                    started=datetime.now(UTC).isoformat(timespec="milliseconds"),
                    reused_compilation=spec.reuses_compilation,
                    who_reaches=reached_by(spec),
                )
        self.steps: dict[LaunchKey, list[Steps]] = {key: [] for key in self.launches}
        self.long_blocks: dict[LaunchKey, Blocks] = {}
        self._asked, self._plan, self._limit_s = asked, steps, phase_limit_s()
        self._counters: list[str] = []
        self._phase: PhaseName = "start"
        self._at: _HeldProgram | None = None  # the program that the worker is busy with

    # What the round asks.

    def prepare(self) -> None:
        """Import the framework, and stop."""

        def prepare() -> None:
            part = self._phase_of("import", self.spec.prepare).part
            joined = self._phase_of("import", self.spec.join, is_phase=False)
            self._counters = joined.counters
            part.add(joined.part)
            if part.environment is not None:
                # Where a cache of compilations lies, and which device it is, decides nothing: what is recorded is as
                # without Steadykit's own variables.
                set_here, given = own_variables(self.spec), {**os.environ, **self.spec.variant.env}
                part.environment = {
                    name: given[name] if name in set_here else value
                    for name, value in part.environment.items()
                    if name not in set_here or name in given
                }
            for launch in self.launches.values():
                launch.add(part)

        self._turn(None, prepare)

    def build(self, key: str, group: str) -> int | None:
        """Make a cell ready unless it is; return the process' resident bytes, None where it fails or is not known."""
        program, resident_b = self._programs[key], None
        if not program.is_built:
            resident_b = self._turn(program, lambda: self._build(program))
            if not program.is_built:
                return None
        if not self.steps[key, group]:
            self.launches[key, group].add(program.built)
            self.steps[key, group].append(program.built_steps)
        return resident_b

    def warm_up(self, key: str, group: str, tell: Callable[[float], None] = lambda _: None) -> None:
        """Run a cell's warm-up; of a fit its reference's, as a fit begins cold.

        `tell` gets the seconds that a step takes, after each part.
        """
        program = self._programs[key]

        def warm_up() -> None:
            part, step_ns = self._warm_up(program, tell)
            self.launches[key, group].add(part)
            self.steps[key, group].append(step_ns)

        self._turn(program, warm_up)

    def turns_at_most(self, key: str) -> int:
        """Return how many turns a block of a cell may have, beside cells that are like it."""
        least = COMMAND_TURN_STEPS if self.is_command(key) else TURN_STEPS
        return 1 if self.spec.ranks > 1 else turns_of(self._plan, self._programs[key].pace, least)

    def take_turn(self, key: str, seconds: float, turns: int = 1) -> bool:
        """Run one of the turns of a block of so many seconds; return whether it has used up its time, and ends now.

        All turns of a block have as many steps: the pace of one does not choose how much the next weighs.
        """
        program = self._programs[key]

        def turn() -> None:
            is_first = not program.turns
            if is_first:
                lead_in_s, step_s = self._plan.lead_in_s, program.pace.waited_ns / 1e9
                if self.is_command(key):
                    # A run starts anew: the first after a switch finds cold caches, and a long one no more than others.
                    lead_in_s = step_s if step_s < seconds else 0.0
                program.segments = block_segments(program.pace, seconds, lead_in_s, turns)
            measured, _ = self._measure("steady", program, program.segments, is_block=True, begins_block=is_first)
            program.turns.append(measured)

        self._turn(program, turn)
        limit_ns = max((segment.limit_ns for segment in program.segments), default=0)
        return sum(measured.span_ns for measured in program.turns) > limit_ns

    def end_block(self, key: str, cycle: int, turns: int = 1) -> tuple[Blocks, Steps] | None:
        """Return the block that its turns make together; None where the cell has failed in it.

        The block is not in its launch before `add`.
        """
        program = self._programs[key]
        parts, segments, program.turns = program.turns, program.segments, []
        if self.is_gone(key) or not parts:
            return None
        measured, waits_ns = one_block(parts)
        program.pace = program.pace.after(segments, waits_ns)
        groups, step_ns = None, np.concatenate(waits_ns[:2])
        for segment, groups_ns in zip(segments[2:], waits_ns[2:], strict=True):
            groups = Groups(segment.per_wait, segment.per_wait * groups_ns.size, int(groups_ns.sum()))
        planned, lead_in = turns * segments[-1].steps, waits_ns[0].size
        blocks = self._as_blocks(cycle, measured, step_ns, groups, planned=planned, lead_in=lead_in)
        blocks.turn_count = [len(parts)]
        blocks.turn_begin_ns = [part.begin_ns for part in parts]
        blocks.turn_span_ns = [part.span_ns for part in parts]
        return blocks, step_ns

    def long_block(self, key: str, group: str, seconds: float) -> Blocks | None:
        """Run the block over which energy is measured, of no less than `seconds`; it is in no other figure."""
        program = self._programs[key]

        def long_block() -> Blocks:
            parts: list[Measured] = []
            steps = planned = duration_ns = span_ns = restored_ns = 0
            while (left_s := seconds - span_ns / 1e9) > 0:
                segment = long_segment(program.pace, left_s)
                begins_block = not parts or restored_ns <= RESTORE_FRACTION_MAX * parts[-1].span_ns
                measured, (waits_ns,) = self._measure(
                    "energy", program, [segment], is_block=True, is_summed=True, begins_block=begins_block
                )
                parts.append(measured)
                restored_ns = max(restored_ns, measured.restored_ns)
                ran, part_ns = measured.ran[0] * segment.per_wait, int(waits_ns.sum())
                steps, planned, duration_ns = steps + ran, planned + segment.steps, duration_ns + part_ns
                span_ns = measured.begin_ns + measured.span_ns - parts[0].begin_ns
                program.pace = program.pace.after_groups(part_ns / ran)
            groups = Groups(program.pace.per_wait, steps, duration_ns)
            return self._as_blocks(0, joined(parts), NO_STEPS, groups, planned=planned)

        blocks = self._turn(program, long_block)
        if blocks is not None:
            self.long_blocks[key, group] = blocks
        return blocks

    def stretch(self, key: str, cycle: int) -> tuple[Blocks, Steps, int] | None:
        """Run the reference, then a stretch of a fit; return its block, its steps, and how many steps are left."""
        program = self._programs[key]
        fit, reference = program.fit, program.reference
        if fit is None or reference is None:  # building it failed
            return None

        def refer() -> None:
            reference.pace = fit.refer(
                reference.pace, lambda segments: self._measure("steady", reference, segments, begins_block=True)
            )

        def stretch() -> tuple[Blocks, Steps, int]:
            refer()
            ran = fit.stretch(
                lambda segments: self._measure("steady", program, segments, is_block=True, begins_block=True)
            )
            if not fit.left:
                refer()
            blocks = self._as_blocks(cycle, ran.measured, ran.step_ns, ran.groups, planned=ran.planned)
            return blocks, ran.step_ns, fit.left

        return self._turn(program, stretch)

    def add(self, key: str, group: str, blocks: Blocks, step_ns: Steps) -> None:
        """Add a block to the launch of a cell in a group."""
        self.launches[key, group].add(LaunchPart(blocks=blocks))
        self.steps[key, group].append(step_ns)

    def conclude(self, key: str) -> None:
        """Let a cell that no later group wants prove itself and go, and take what it knows then."""
        program = self._programs[key]

        def conclude() -> None:
            fit = program.fit
            events = 0 if fit is not None or program.cell.device == "cpu" else event_steps(program.pace)
            request = Conclude(program=program.index, proves=self.spec.proves, event_steps=events)
            part = self._phase_of("parity", request).part
            if fit is not None and part.failure is None:
                part.add(self._phase_of("evaluate", Score(program=program.index, fit=fit.record)).part)
            self._phase_of("finish", Release(program=program.index))
            if program.reference is not None:
                self._phase_of("finish", Release(program=program.reference.index))
            for launch in self._launches_of(key).values():
                launch.add(part)

        self._turn(program, conclude)

    def finish(self) -> None:
        """Let the worker end, and take what it knows then; what it has started ends with it."""
        if self.has_ended:
            return
        self._at = None
        try:
            part = self._phase_of("finish", Finish()).part
        except WorkerFailed as failed:
            self._take_failure(failed)
            return
        self.end()
        for launch in self.launches.values():
            launch.add(part)

    def end(self) -> None:
        """End it at once; nothing where it has ended."""
        self.has_ended = True
        self._asked.end()

    # What the round wants to know.

    @property
    def has_energy(self) -> bool:
        """Return whether joules are asked for in this run."""
        return self._plan.energy_s > 0

    def processes_on(self, cell: Cell) -> int | None:
        """Return how many processes compute on the accelerators of a cell, this one among them; None: not known."""
        environment = {**os.environ, **self.spec.variant.env}
        return DEVICES[cell.device].processes(cell.devices, environment)

    def is_command(self, key: str) -> bool:
        """Return whether a cell is a command."""
        source = self.spec.sources.get(self.cell(key).workload)
        return source is not None and source.command is not None

    def step_s(self, key: str) -> float:
        """Return how long a step takes, by the last ones."""
        return self._programs[key].pace.waited_ns / 1e9

    def is_built(self, key: str) -> bool:
        """Return whether a cell is ready to be measured."""
        return self._programs[key].is_built

    def is_gone(self, key: str) -> bool:
        """Return whether a cell measures no more: it has failed, or its process has ended."""
        return self.has_ended or self._programs[key].has_failed

    def cell(self, key: str) -> Cell:
        """Return the cell of that key."""
        return self._programs[key].cell

    # How it is done.

    def _build(self, program: _HeldProgram) -> int | None:
        cell, spec = program.cell, self.spec
        seed = spec.seed + (0 if cell.in_blocks else spec.fit_number)
        part = LaunchPart()
        source = spec.sources.get(cell.workload)
        if source is None and not is_operation(cell):
            used = spec.data[workload(cell.workload, cell.parameters).data]
            loaded = self._phase_of("data", Load(program=program.index, cell=cell, data=used, seed=seed))
            part.add(loaded.part)
            if not cell.in_blocks:
                program.fit = FitInRound(cell, self._plan, loaded.epoch_updates)
                program.reference = _HeldProgram(len(self.plan.cells) + program.index, program.fit.reference_cell)
                self._build(program.reference)
        variables = self._variables_of_user(cell) if source is not None and source.command is not None else {}
        build = Build(program=program.index, cell=cell, seed=seed, source=source, variables=variables)
        part.add(self._phase_of("build", build).part)
        part.add(self._phase_of("trace", Trace(program=program.index)).part)
        part.add(self._phase_of("compile", Compile(program=program.index)).part)
        segments = [Segment(1)]
        measured, (first_ns,) = self._measure("first_step", program, segments)
        part.phases = [*part.phases, Phase(name="first_step", begin_ns=measured.begin_ns, duration_ns=measured.span_ns)]
        program.pace = Pace.of(first_ns)
        program.built, program.built_steps, program.is_built = part, first_ns, True
        return measured.resident_b

    def _variables_of_user(self, cell: Cell) -> dict[str, str | None]:
        """Return what Steadykit set for the worker, as its user has it: a command is run as in its user's shell."""
        given = {**os.environ, **self.spec.variant.env}
        set_here = own_variables(self.spec)
        return {name: given.get(name) for name in set_here if cell.threads is None or name not in THREAD_VARIABLES}

    def _warm_up(self, program: _HeldProgram, tell: Callable[[float], None]) -> tuple[LaunchPart, Steps]:
        """Run until the warm-up is over; on an accelerator, find out how many steps to run for a wait."""
        is_command = self.is_command(program.cell.key)
        program = program.reference or program
        plan, steps_ns = self._plan, list[Steps]()
        begin_ns = spent_ns = steps = 0
        parts_ns: list[float] = []
        while not is_warm(plan, program.cell, spent_ns, steps, parts_ns):
            measured, (step_ns,) = self._measure("warmup", program, [warm_up_segment(program.pace)])
            begin_ns = begin_ns or measured.begin_ns
            spent_ns, steps = measured.begin_ns + measured.span_ns - begin_ns, steps + step_ns.size
            steps_ns.append(step_ns)
            program.pace = Pace.of(step_ns)
            parts_ns.append(program.pace.waited_ns)
            tell(program.pace.waited_ns / 1e9)
        if program.cell.device != "cpu" and not is_command:
            segments = probe_segments(program.pace)
            _, waits_ns = self._measure("warmup", program, segments)
            program.pace = probed_pace(program.pace, segments, waits_ns)
        phase = Phase(name="warmup", begin_ns=begin_ns, duration_ns=spent_ns)
        return LaunchPart(phases=[phase], warmup_steps=steps), np.concatenate(steps_ns)

    def _as_blocks(
        self, cycle: int, measured: Measured, step_ns: Steps, groups: Groups | None, *, planned: int, lead_in: int = 0
    ) -> Blocks:
        """Return what was measured as the one block of `Blocks`.

        Args:
            cycle: that it was in.
            measured: its edges.
            step_ns: of each step that was waited for by itself, shape (lead-in and timed steps,).
            groups: the steps that count, where they have no times of their own.
            planned: steps that count, had it not been cut.
            lead_in: steps at its begin that are not timed.
        """
        counters = dict(zip(self._counters, measured.counters, strict=True))
        if self.spec.variant.slowdown_pct:
            counters[INJECTED_NS] = measured.injected_ns
        if any(source.command is not None for source in self.spec.sources.values()):
            counters[FAILED_RUNS] = measured.failed_runs
        waited_ns = step_ns[lead_in:]
        figures = measured.figures[lead_in:]
        return Blocks(
            cycle=[cycle],
            begin_ns=[measured.begin_ns],
            span_ns=[measured.span_ns],
            lead_in=[lead_in],
            steps=[waited_ns.size if groups is None else groups.steps],
            duration_ns=[int(waited_ns.sum()) if groups is None else groups.duration_ns],
            median_ns=[round(float(np.median(waited_ns))) if waited_ns.size else None],
            early_ns=[third_ns(waited_ns)],
            late_ns=[third_ns(waited_ns[::-1])],
            waited_steps=[] if groups is None else [waited_ns.size],
            per_wait=[] if groups is None else [groups.per_wait],
            planned_steps=[planned],
            figure=[float(np.mean(figures))] if figures else [],
            counters={name: [difference] for name, difference in counters.items()},
        )

    def _launches_of(self, key: str) -> dict[LaunchKey, Launch]:
        return {known: launch for known, launch in self.launches.items() if known[0] == key}

    def _turn(self, program: _HeldProgram | None, do: Callable[[], Result]) -> Result | None:
        """Let the worker run for one thing, and stop it again; None where it or the program has failed, or fails."""
        if self.has_ended or (program is not None and program.has_failed):
            return None
        self._at = program
        result = None
        try:
            try:
                result = do()
            except WorkerFailed as failed:
                self._take_failure(failed)
                if program is not None and program.reference is not None and not self.has_ended:
                    # The worker has released the one that failed of these two.
                    for program_left in (program, program.reference):
                        self._phase_of("finish", Release(program=program_left.index))
            if not self.has_ended:
                self._asked.stop()
        except WorkerFailed as failed:
            self._take_failure(failed)
            return None
        except BaseException:
            self.end()
            raise
        return result

    def _phase_of(self, phase: PhaseName, request: Requests, *, is_phase: bool = True) -> Done:
        """Ask for something that is a phase of its own, unless the framework has no such phase."""
        self._phase = phase
        done = self._asked.ask(request, self._limit_s)
        assert isinstance(done, Done)
        if is_phase and done.span_ns is not None:
            done.part.phases = [*done.part.phases, Phase(name=phase, begin_ns=done.begin_ns, duration_ns=done.span_ns)]
        return done

    def _measure(
        self,
        phase: PhaseName,
        program: _HeldProgram,
        segments: list[Segment],
        *,
        is_block: bool = False,
        is_summed: bool = False,
        begins_block: bool = False,
    ) -> tuple[Measured, list[Steps]]:
        """Run segments of a program; return the answer, and the waits of each segment, or the sum of all."""
        self._phase = phase
        request = Measure(
            program=program.index,
            segments=segments,
            slowdown_pct=self.spec.variant.slowdown_pct if is_block else 0.0,
            is_block=is_block,
            is_summed=is_summed,
            begins_block=begins_block,
        )
        if self.spec.ranks == 1:
            measured = self._asked.ask(request, self._limit_s)
            assert isinstance(measured, Measured)
        else:
            measured = joined([*self._in_pieces(request)])
        return measured, measured.waits_ns()

    def _in_pieces(self, request: Measure) -> Iterator[Measured]:
        """Ask ranks for pieces of a request's segments, so that all of them end with the piece past a segment's limit.

        The limit is the whole segment's: a piece that one stall makes long does not choose where a segment ends.
        """
        for number, segment in enumerate(request.segments):
            span_ns = 0
            for piece in pieces(segment):
                measured = self._asked.ask(replace(request, segments=[piece._replace(limit_ns=0)]), self._limit_s)
                request = replace(request, begins_block=False)
                assert isinstance(measured, Measured)
                yield replace(measured, ran=[0] * number + measured.ran + [0] * (len(request.segments) - number - 1))
                span_ns += measured.span_ns
                if 0 < segment.limit_ns < span_ns:
                    break

    def _take_failure(self, failed: WorkerFailed) -> None:
        """Put a failure where it belongs; launches that are measured keep what they have."""
        failure = Failure(phase=self._phase, reason=failed.reason, stderr_tail=failed.stderr_tail)
        guilty = None if self._at is None else self._at.cell.key
        if failed.goes_on and self._at is not None:
            self._at.has_failed = True
            launches = self._launches_of(self._at.cell.key)
        else:
            self.end()
            launches = {key: launch for key, launch in self.launches.items() if not self._programs[key[0]].has_failed}
        for (key, group), launch in launches.items():
            if (key, group) in self.measured and (failure.phase in MEASURING or guilty not in {None, key}):
                launch.notes.append(reason("process_ended_early", cell=guilty or key))
            elif guilty is not None and key != guilty:
                launch.failure = Failure(phase=failure.phase, reason=reason(SHARED_PROCESS_ENDED, cell=guilty))
            elif launch.failure is None:
                launch.failure = failure
