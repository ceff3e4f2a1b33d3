"""A member of a round: one process that measures its cells, and their launches as they grow.

prepare ─► build ─► warm_up ─► block … ─► conclude ─► finish       stopped after each, so that others run alone

What goes wrong with the process, or with one of its programs, ends up in the launches that it concerns.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
import numpy as np
from msgspec.structs import replace

from kit.clock import now_ns
from kit.devices.catalog import DEVICES
from kit.environment import PHASE_LIMIT_S
from kit.errors import KitError
from kit.profile.cell import Cell
from kit.profile.launch import Failure, Launch, LaunchPart, PhaseName
from kit.profile.reason import Reason, reason
from kit.profile.schema import Group
from kit.profile.sensor import NO_SENSOR, Energy
from kit.profile.store import Steps, timed_steps
from kit.profile.unfinished import SavedLaunch
from kit.runner.boards import Boards, board_marks, why_not_its_joules
from kit.runner.energy import Idle
from kit.runner.interrupt import StopFlag
from kit.runner.processes.process import SIGNAL_LIMIT_S, MemberRequest, Process
from kit.sensors.samples import Samples
from kit.stats.energy import Window
from kit.stats.modes_and_trends import percentile_ns
from kit.suites.plan import MemberPlan
from kit.worker.messages import Answer, Command, Do, Done, Entered, Failed, Finish

# A cell whose process ended in another cell's blocks has not failed itself: the next round gives it a process.
SHARED_PROCESS_ENDED = "shared_process_ended"
# A cell that dies in these has finished what it measured before them; one that dies later computes nonsense.
MEASURING = ("warmup", "steady", "energy")
# The phase that a command begins with: a process that dies before it names one has died in this.
BEGINS_WITH: dict[str, PhaseName] = {"build": "build", "warm_up": "warmup", "block": "steady", "conclude": "parity"}
# An import from a cold network disk, XLA's autotuning and torch.compile take minutes where they work at all.
LIMIT_S = 900.0
# How soon an interrupt is heeded while a member works.
LOOK_EVERY_S = 0.5

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


class Member:
    """One process of the round. Every call may raise KeyboardInterrupt; the process has been killed then.

    Args:
        plan: which cells it holds.
        request: what `process` was started with.
        process: running.
        groups: that are measured in this round.
        number: of the round.
        stop: looked at while the member works.

    Attributes:
        launches: as far as they have come.
        measured: launches whose blocks have all run.
        has_ended: the process has ended, by itself or as it was told to.
    """

    def __init__(  # noqa: PLR0917
        self,
        plan: MemberPlan,
        request: MemberRequest,
        process: Process,
        groups: Iterable[Group],
        number: int,
        stop: StopFlag,
    ) -> None:
        self.plan = plan
        self.has_ended = False
        self.measured: set[LaunchKey] = set()
        self.launches: dict[LaunchKey, Launch] = {}
        for group in groups:
            for cell in plan.cells:
                if cell.key in group.cells:
                    self.launches[cell.key, group.key] = Launch(
                        cell_key=cell.key,
                        group=group.key,
                        round=number,
                        process=plan.name,
                        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
                    )
        self._request, self._process, self._stop, self._limit_s = request, process, stop, phase_limit_s()
        self._steps: dict[LaunchKey, list[Steps]] = {key: [] for key in self.launches}
        self._long_blocks: dict[LaunchKey, list[Done]] = {key: [] for key in self.launches}
        self._built: dict[str, Done] = {}
        self._failed: set[str] = set()
        self._phase: PhaseName = "start"
        self._program: int | None = None
        self._unread = b""
        self._decoder: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)

    def prepare(self) -> None:
        """Import the framework, and stop."""
        if (done := self._ask(self._request.prepare)) is not None:
            for launch in self.launches.values():
                launch.add(done.part)

    def build(self, key: str, group: str) -> int | None:
        """Make a cell ready unless it is; return the process' resident bytes, None where it fails or is not known."""
        if key not in self._built:
            if (done := self._do(Do(verb="build", program=self._place(key)))) is None:
                return None
            self._built[key] = done
        if not self._steps[key, group]:
            self.add(key, group, self._built[key])
        return self._built[key].resident_b

    def warm_up(self, key: str, group: str) -> None:
        """Run a cell's warm-up."""
        if (done := self._do(Do(verb="warm_up", program=self._place(key)))) is not None:
            self.add(key, group, done)

    def block(self, key: str, cycle: int, seconds: float) -> Done | None:
        """Run one block of a cell, of about `seconds`; None where it has failed, or does in it.

        The block is not in its launch before `add`.
        """
        return self._do(Do(verb="block", program=self._place(key), cycle=cycle, seconds=seconds))

    def long_block(self, key: str, group: str, seconds: float) -> Done | None:
        """Run the block over which energy is measured, of no less than `seconds`; it is in no other figure.

        It takes the place of an earlier one, which others disturbed.
        """
        done = self._do(Do(verb="block", program=self._place(key), seconds=seconds, by_time=True))
        if done is not None:
            self._long_blocks[key, group] = [done]
        return done

    def add(self, key: str, group: str, done: Done) -> None:
        """Add what a cell has measured to its launch in a group."""
        self.launches[key, group].add(done.part)
        self._steps[key, group].append(done.step_ns)

    def conclude(self, key: str) -> None:
        """Let a cell that no later group wants prove itself and go, and take what it knows then."""
        if (done := self._do(Do(verb="conclude", program=self._place(key)))) is not None:
            for launch in self._launches_of(key).values():
                launch.add(done.part)

    def finish(self) -> None:
        """Let the process end, and take what it knows then; what it has started ends with it."""
        if self.has_ended:
            return
        self._process.resume()
        self._phase, self._program = "finish", None
        if (done := self._ask(Finish())) is not None:
            self._process.wait(SIGNAL_LIMIT_S)
            self.kill()
            for launch in self.launches.values():
                launch.add(done.part)

    def kill(self) -> None:
        """End it at once; nothing where it has ended."""
        self.has_ended = True
        self._process.kill()

    def processes_on(self, cell: Cell) -> int | None:
        """Return how many processes compute on the accelerators of a cell, this one among them; None: not known."""
        environment = {**os.environ, **self._request.variant.env}
        return DEVICES[cell.device].processes(cell.devices, environment)

    def is_built(self, key: str) -> bool:
        """Return whether a cell is ready to be measured."""
        return key in self._built

    def is_gone(self, key: str) -> bool:
        """Return whether a cell measures no more: it has failed, or its process has ended."""
        return self.has_ended or key in self._failed

    def cell(self, key: str) -> Cell:
        """Return the cell of that key."""
        return self.plan.cells[self._place(key)]

    def finished_launches(self, samples: Samples | None, boards: Boards, idle: Idle | None = None) -> list[SavedLaunch]:
        """Return the launches with all their steps, and with what the sampler saw of their blocks and their boards.

        `idle`: of the round, where it has joules.
        """
        return [self._finished(key, launch, samples, boards, idle) for key, launch in self.launches.items()]

    def _finished(
        self, key: LaunchKey, launch: Launch, samples: Samples | None, boards: Boards, idle: Idle | None
    ) -> SavedLaunch:
        steps = np.concatenate([*self._steps[key], np.array([], np.int64)])
        timed_ns = timed_steps(launch, steps)
        launch.p95_ns, launch.p99_ns = percentile_ns(timed_ns, 95), percentile_ns(timed_ns, 99)
        if samples is not None:
            if samples.failure is not None:
                launch.notes.append(samples.failure)
            self._add_sampled(key, launch, samples, boards, idle)
        if not any(energy.kind == "steady" for energy in launch.energy):
            launch.energy += [_unread(done, self.cell(launch.cell_key)) for done in self._long_blocks[key]]
        launch.notes += board_marks(launch, boards)
        return SavedLaunch(launch=launch, step_ns=steps.tobytes())

    def _add_sampled(self, key: LaunchKey, launch: Launch, samples: Samples, boards: Boards, idle: Idle | None) -> None:
        """Add gauges, of what runs as people run it, and joules: of the launch's own boards alone."""
        cell, long_blocks = self.cell(launch.cell_key), self._long_blocks[key]
        on_cpu = cell.device == "cpu"
        if on_cpu or launch.device_ids:
            samples = samples.for_devices(() if on_cpu else launch.device_ids)
        # An accelerator's other blocks wait for single steps, too, and are shorter than some gauges' period.
        if windows := (not on_cpu and [_windows(done.part)[0] for done in long_blocks]) or _windows(launch):
            launch.sensors, launch.sensor_reasons = (
                samples.summaries(windows),
                samples.gauges_needing_longer_windows(windows),
            )
        entries = self._energy(key, launch, samples, with_compile=idle is not None)
        entries = [_of_board(_with_idle(entry, samples, idle), boards) for entry in entries]
        if self._request.prepare.hosts:
            entries = [_without_joules(entry, reason("several_hosts_energy")) for entry in entries]
        launch.energy += entries

    def _energy(self, key: LaunchKey, launch: Launch, samples: Samples, *, with_compile: bool) -> list[Energy]:
        """Return joules of the long block, of a fit's own blocks, and of what came before the first step's end."""
        cell, entries = self.cell(launch.cell_key), list[Energy]()
        is_asked = self._request.prepare.plan.energy_s > 0
        for done in self._long_blocks[key]:
            (steps,), (window,) = done.part.blocks.steps, _windows(done.part)
            entries += samples.energy(*window, steps * cell.batch, steps)
        if cell.task == "fit" and launch.gave_number and is_asked:
            steps = sum(launch.blocks.steps)
            entries += samples.energy_of_parts("fit", _windows(launch), steps * cell.batch, steps)
        first = _until_first_step(launch) if with_compile and is_asked else None
        if first is not None:
            entries += samples.energy_of_parts("compile", [first], 0, 0)
        return entries

    def _place(self, key: str) -> int:
        return [cell.key for cell in self.plan.cells].index(key)

    def _launches_of(self, key: str) -> dict[LaunchKey, Launch]:
        return {place: launch for place, launch in self.launches.items() if place[0] == key}

    def _do(self, do: Do) -> Done | None:
        """Continue the process for one command of a program, and stop it again."""
        if self.is_gone(self.plan.cells[do.program].key):
            return None
        self._process.resume()
        self._phase, self._program = "energy" if do.by_time else BEGINS_WITH[do.verb], do.program
        return self._ask(do, more_s=3 * do.seconds)

    def _ask(self, command: Command, more_s: float = 0.0) -> Done | None:
        """Return the answer to a command once the process has stopped again; None where it or the program fails."""
        try:
            done = self._answer_to(command, self._limit_s + more_s)
            if not self.has_ended and not isinstance(command, Finish):
                self._pause()
        except BaseException:
            self.kill()
            raise
        return None if self.has_ended else done

    def _answer_to(self, command: Command, limit_s: float) -> Done | None:
        """Send a command and wait for its answer; each phase on the way has its own deadline."""
        try:
            self._process.send(msgspec.json.encode(command) + b"\n")
        except OSError:
            self._fail_process(self._process.how_it_ended())
            return None
        while True:
            match answer := self._next_answer(limit_s):
                case Done():
                    return answer
                case Entered():
                    self._phase, self._program = answer.phase, answer.program
                case Failed(program=None):
                    self._process.wait(SIGNAL_LIMIT_S)  # for its last words
                    self._phase, self._program = answer.failure.phase, None
                    self._fail_process(answer.failure.reason)
                    return None
                case Failed():
                    self._fail_program(answer)
                    return None
                case Reason():
                    self._fail_process(answer)
                    return None

    def _next_answer(self, limit_s: float) -> Answer | Reason:
        """Return the next answer, or why none comes."""
        deadline_ns = now_ns() + int(limit_s * 1e9)
        while b"\n" not in self._unread:
            self._stop.check()
            data = self._process.receive(LOOK_EVERY_S)
            if data is None:
                if now_ns() > deadline_ns:
                    return reason("phase_timeout", limit_s=limit_s)
            elif not data:
                self._process.wait(SIGNAL_LIMIT_S)
                self._stop.check()
                return self._process.how_it_ended()
            else:
                self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        try:
            return self._decoder.decode(line)
        except msgspec.DecodeError as error:
            return reason("protocol", message=str(error))

    def _pause(self) -> None:
        try:
            if not self._process.pause():
                self._fail_process(self._process.how_it_ended())
        except TimeoutError:
            self._fail_process(reason("does_not_stop", limit_s=SIGNAL_LIMIT_S))

    def _fail_program(self, answer: Failed) -> None:
        """Let the other cells of the process go on."""
        assert answer.program is not None
        key = self.plan.cells[answer.program].key
        self._failed.add(key)
        failure = msgspec.structs.replace(answer.failure, stderr_tail=self._process.stderr_tail())
        for place, launch in self._launches_of(key).items():
            if place in self.measured and failure.phase in MEASURING:
                launch.notes.append(reason("process_ended_early", cell=key))
            elif launch.failure is None:
                launch.failure = failure

    def _fail_process(self, why: Reason) -> None:
        """Put the failure where it belongs: to the cell it was at. Launches that are measured keep what they have."""
        failure = Failure(phase=self._phase, reason=why, stderr_tail=self._process.stderr_tail())
        self.has_ended = True
        self.kill()
        guilty = None if self._program is None else self.plan.cells[self._program].key
        for (key, group), launch in self.launches.items():
            if key in self._failed:
                continue
            if (key, group) in self.measured and (failure.phase in MEASURING or guilty not in (None, key)):
                launch.notes.append(reason("process_ended_early", cell=guilty or key))
            elif guilty is None or key == guilty:
                launch.failure = failure
            else:
                launch.failure = Failure(phase=failure.phase, reason=reason(SHARED_PROCESS_ENDED, cell=guilty))


def _windows(part: LaunchPart) -> list[tuple[int, int]]:
    """Return begin and end of each block."""
    blocks = part.blocks
    return [(begin_ns, begin_ns + span_ns) for begin_ns, span_ns in zip(blocks.begin_ns, blocks.span_ns, strict=True)]


def _until_first_step(launch: Launch) -> Window | None:
    """Return from when to when a launch was built, compiled and made its first step; None where it did not."""
    phases = {phase.name: phase for phase in launch.phases}
    if "build" not in phases or "first_step" not in phases:
        return None
    return phases["build"].begin_ns, phases["first_step"].begin_ns + phases["first_step"].duration_ns


def _with_idle(entry: Energy, samples: Samples, idle: Idle | None) -> Energy:
    """Return the entry with what its sensor showed of idle before and after the round."""
    if idle is None:
        return replace(entry, idle_reason=reason("idle_not_measured"))
    before, after = (samples.idle_w(window)[entry.sensor] for window in idle)
    shown = [None if isinstance(of, Reason) else of for of in (before, after)]
    watts = [None if of is None else of.joules_j / of.window_ns * 1e9 for of in shown]
    return replace(
        entry,
        idle_before_w=watts[0],
        idle_after_w=watts[1],
        idle_error_fraction=max((of.error_fraction for of in shown if of is not None), default=None),
        idle_reason=next((of for of in (before, after) if isinstance(of, Reason)), None),
    )


def _of_board(entry: Energy, boards: Boards) -> Energy:
    """Return the entry without its joules where others had a part in them, and with how many others there were."""
    states = boards.get(entry.device_id or "", ())
    known = [state.processes for state in states if state.processes is not None]
    entry = replace(entry, idle_processes=max(known, default=None))
    why = why_not_its_joules(states)
    return entry if why is None else _without_joules(entry, why)


def _without_joules(entry: Energy, why: Reason) -> Energy:
    return replace(
        entry, joules_j=None, window_ns=None, updates=None, error_fraction=None, power_max_w=None, reason=why
    )


def _unread(done: Done, cell: Cell) -> Energy:
    """Return a long block that no sensor saw: an external meter may have."""
    (steps,), ((begin_ns, end_ns),) = done.part.blocks.steps, _windows(done.part)
    return Energy(
        sensor=NO_SENSOR,
        joules_j=None,
        window_ns=None,
        samples=steps * cell.batch,
        block_ns=end_ns - begin_ns,
        reason=reason("meter_not_given"),
        begin_ns=begin_ns,
        steps=steps,
    )
