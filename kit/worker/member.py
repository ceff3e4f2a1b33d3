"""A member of a round: holds programs, and does what its runner asks, one command at a time.

It owns the process: standard input and output are its runner's; what a framework prints goes to standard error.
"""

from __future__ import annotations

import gc
import os
import platform
import traceback
from typing import BinaryIO

import msgspec

from kit import clock
from kit.backends.catalog import CATALOG, load
from kit.backends.environment import decided_by_environment
from kit.backends.program.source import import_function, line_in
from kit.backends.protocol import Backend
from kit.devices.catalog import DEVICES
from kit.errors import KitError
from kit.profile.launch import Failure, LaunchPart, Phase, PhaseName, Threads
from kit.profile.program import ProgramSource
from kit.profile.reason import Reason, reason
from kit.sensors.catalog import EdgeCounters
from kit.sensors.process import peak_memory_b, process_age_ns
from kit.worker.device_memory import ran_out
from kit.worker.fit import MeasuredFit
from kit.worker.inputs import load_inputs
from kit.worker.ledger import PhaseLedger
from kit.worker.measured_program import (
    HOST_DEVICE,
    MeasuredOperation,
    MeasuredOwnProgram,
    MeasuredProgram,
    MeasuredWorkload,
    Shared,
    raised,
)
from kit.worker.messages import Answer, Command, Do, Done, Entered, Failed, Finish, Prepare, ProgramRequest
from kit.workloads.operations import is_operation


class Member:
    """Answers commands until told to finish, or until its runner is gone."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands = commands
        self._answers = answers
        self._encode = msgspec.json.Encoder().encode
        self._ledger = PhaseLedger(self._tell)
        self._programs: dict[int, MeasuredProgram] = {}
        self._ledgers: dict[int, PhaseLedger] = {}
        self._sources: list[ProgramSource] = []
        self._current: int | None = None
        self._device = HOST_DEVICE

    def serve(self) -> int:
        """Return the exit code: 0 after `Finish` or the runner's end, 1 after a failure that is no program's."""
        decoder = msgspec.json.Decoder(Command)
        for line in self._commands:
            command = decoder.decode(line)
            self._current = getattr(command, "program", None)
            try:
                self._say(self._answer(command))
            except Exception as error:
                if not isinstance(error, KitError):
                    traceback.print_exc()
                failure = Failure(phase=self._phase, reason=self._reason_of(error))
                if self._current is None:
                    self._say(Failed(program=None, failure=failure))
                    return 1
                # Released before it is said: what comes next may need its memory. A traceback holds its frames.
                error.__traceback__ = None
                self._release(self._current)
                self._say(Failed(program=self._current, failure=failure))
            if isinstance(command, Finish):
                return 0
        return 0

    def _answer(self, command: Command) -> Done:
        match command:
            case Prepare():
                return self._prepare(command)
            case Finish():
                return self._finish()
            case Do(verb="build"):
                return self._build(command.program)
            case Do(verb="warm_up"):
                return self._programs[command.program].warm_up()
            case Do(verb="block"):
                program = self._programs[command.program]
                return program.block(command.seconds, cycle=command.cycle, by_time=command.by_time)
            case Do():  # conclude; no variable may hold what is released
                done = self._programs[command.program].conclude()
                self._release(command.program)
                return done

    def _prepare(self, asked: Prepare) -> Done:
        started = _start_phase()
        wanted = {request.cell.workload for request in asked.programs}
        self._sources = [source for name, source in asked.sources.items() if name in wanted]
        source, _ = clock.choose_source(asked.clock)
        calibration = clock.calibrate(source)
        environment = decided_by_environment(CATALOG[asked.programs[0].cell.backend], os.environ, asked.tells_threads)
        with self._ledger.phase("import"):
            backend = load(asked.programs[0].cell.backend)
            for program_source in self._sources:
                import_function(program_source)
        self._device = asked.programs[0].cell.device
        # A backend that knows no such device need not share one; it says so when its first program is built.
        is_shared = DEVICES[self._device].shares_memory and hasattr(backend, "share_gpu_memory")
        if is_shared:
            backend.share_gpu_memory(asked.memory_share)
        setting = backend.set_threads(asked.threads if asked.tells_threads else None)
        threads = Threads(requested=asked.threads, reported=setting.reported, reason=setting.reason, cpus=asked.cpus)
        # Counters are opened once the framework has its threads: what was before is no part of any block.
        self._shared = Shared(asked, backend, source, calibration, EdgeCounters(asked.cpus), threads, proofs={})
        part = LaunchPart(
            python=platform.python_version(),
            phases=[*started, *self._ledger.take()],
            threads=threads,
            environment=environment,
            calibration_start=calibration,
            device_memory_share=asked.memory_share if is_shared else None,
        )
        return Done(part=part)

    def _build(self, place: int) -> Done:
        request, backend = self._shared.asked.programs[place], self._shared.backend
        ledger = self._ledgers[place] = PhaseLedger(self._tell, place)
        _check_device(backend, request.cell.device, request.cell.devices)
        program = self._programs[place] = self._measured(request, ledger)
        done = program.build()
        # A program may have imported its framework just now.
        done.part.backend_version = backend.version
        return done

    def _measured(self, request: ProgramRequest, ledger: PhaseLedger) -> MeasuredProgram:
        asked = self._shared.asked
        if request.cell.workload in asked.sources:
            return MeasuredOwnProgram(self._shared, request, ledger)
        if is_operation(request.cell):
            return MeasuredOperation(self._shared, request, ledger)
        with ledger.phase("data"):
            inputs = load_inputs(request.cell, asked)
        kind = MeasuredFit if request.cell.task == "fit" else MeasuredWorkload
        return kind(self._shared, request, ledger, inputs)

    def _release(self, place: int) -> None:
        """Give back what a program holds; what was frozen for its steps may be collected again."""
        self._programs.pop(place, None)
        gc.unfreeze()
        gc.collect()

    def _finish(self) -> Done:
        part, shared = LaunchPart(peak_memory_b=peak_memory_b()), self._shared
        if self._device != HOST_DEVICE:
            part.peak_device_memory_b = shared.backend.peak_memory_b(self._device)
        part.device_ids = DEVICES[self._device].ids(shared.asked.programs[0].cell.devices)
        with self._ledger.phase("finish"):
            part.calibration_end = clock.calibrate(shared.source)
            part.certificate = clock.certify(shared.source, shared.calibration, part.calibration_end)
        return Done(part=part)

    def _reason_of(self, error: Exception) -> Reason:
        known = raised(error)
        if isinstance(error, KitError):
            return reason("refused", message=known.values["message"])
        if self._device != HOST_DEVICE and ran_out(error):
            return reason("out_of_device_memory", **known.values)
        for source in self._sources:
            if (line := line_in(source, error)) is not None:
                return reason("program_raised", **known.values, file=source.path, line=line)
        return known

    @property
    def _phase(self) -> PhaseName:
        return (self._ledger if self._current is None else self._ledgers[self._current]).current

    def _tell(self, phase: PhaseName, program: int | None) -> None:
        self._say(Entered(phase=phase, program=program))

    def _say(self, answer: Answer) -> None:
        self._answers.write(self._encode(answer) + b"\n")
        self._answers.flush()


def _start_phase() -> list[Phase]:
    """Return the phase from this process's creation until now; none where the kernel does not tell."""
    age_ns, now_ns = process_age_ns(), clock.now_ns()
    return [] if age_ns is None else [Phase(name="start", begin_ns=now_ns - age_ns, duration_ns=age_ns)]


def _check_device(backend: Backend, device: str, wanted: int) -> None:
    seen = backend.count(device)
    if seen < wanted:
        raise KitError(f"{backend.name} sees {seen} {device} of the {wanted} asked for; kit doctor shows what it sees")
