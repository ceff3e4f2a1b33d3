"""A member of a round: holds programs, and does what its runner asks, one command at a time.

It owns the process: standard input and output are its runner's; what a framework prints goes to standard error.
"""

from __future__ import annotations

import gc
import platform
import traceback
from typing import BinaryIO

import msgspec

from kit import clock
from kit.backends.protocol import Backend
from kit.errors import KitError
from kit.profile.launch import Failure, Phase, PhaseName, Threads
from kit.profile.program import ProgramSource
from kit.profile.reason import Reason, reason
from kit.sensors import cuda
from kit.sensors.catalog import EdgeCounters
from kit.sensors.process import peak_memory_b, process_age_ns
from kit.worker.ledger import PhaseLedger
from kit.worker.measured import HOST_DEVICE, LaunchError, MeasuredProgram, MeasuredWorkload, ParityCache, Timing, raised
from kit.worker.messages import (
    Answer,
    Build,
    Built,
    Command,
    Conclude,
    Entered,
    Failed,
    Finish,
    Finished,
    Prepare,
    Prepared,
    ProgramRequest,
    RunBlock,
    WarmUp,
)


class Member:
    """Answers commands until told to finish, or until its runner is gone."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands = commands
        self._answers = answers
        self._encode = msgspec.json.Encoder().encode
        self._ledger = PhaseLedger(self._tell)
        self._programs: dict[int, MeasuredProgram] = {}
        self._ledgers: dict[int, PhaseLedger] = {}
        self._parities: ParityCache = {}
        self._sources: list[ProgramSource] = []
        self._current: int | None = None

    def serve(self) -> int:
        """Return the exit code: 0 after `Finish` or the runner's end, 1 after a failure that is no program's."""
        decoder = msgspec.json.Decoder(Command)
        for line in self._commands:
            command = decoder.decode(line)
            self._current = getattr(command, "program", None)
            try:
                self._say(self._do(command))
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

    def _do(self, command: Command) -> Answer:
        match command:
            case Prepare():
                return self._prepare(command)
            case Build(program=place):
                return self._build(place)
            case WarmUp(program=place):
                return self._programs[place].warm_up()
            case RunBlock(program=place, seconds=seconds, by_time=by_time):
                return self._programs[place].block(seconds, self._counters, by_time=by_time)
            case Conclude(program=place):
                concluded = self._programs[place].conclude()
                self._release(place)
                return concluded
            case Finish():
                return self._finish()

    def _prepare(self, asked: Prepare) -> Prepared:
        from kit.backends.catalog import load
        from kit.backends.program.source import import_function

        self._asked = asked
        started = _start_phase()
        wanted = {own.cell.workload for own in asked.programs}
        self._sources = [source for name, source in asked.sources.items() if name in wanted]
        source, _ = clock.choose_source(asked.clock)
        self._timing = Timing(source, clock.calibrate(source))
        with self._ledger.phase("import"):
            self._backend = load(asked.programs[0].cell.backend)
            for own_source in self._sources:
                import_function(own_source)
        self._device = asked.programs[0].cell.device
        # A backend that knows no GPU need not share one; it says so when its first program is built.
        if self._device == "gpu" and hasattr(self._backend, "share_gpu_memory"):
            self._backend.share_gpu_memory(asked.memory_share)
        threads = _set_threads(self._backend, asked)
        # Opened once the framework has its threads: what was before is no part of any block.
        self._counters = EdgeCounters(asked.cpus)
        return Prepared(
            python=platform.python_version(),
            phases=[*started, *self._ledger.take()],
            threads=threads,
            calibration=self._timing.calibration,
        )

    def _build(self, place: int) -> Built:
        own = self._asked.programs[place]
        ledger = self._ledgers[place] = PhaseLedger(self._tell, place)
        _check_device(self._backend, own.cell.device, own.cell.devices)
        self._programs[place] = self._measured(own, ledger)
        built = self._programs[place].build(self._timing)
        # A program may have imported its framework just now.
        return msgspec.structs.replace(built, backend_version=self._backend.version)

    def _measured(self, own: ProgramRequest, ledger: PhaseLedger) -> MeasuredProgram:
        from kit.worker.fit import MeasuredFit
        from kit.worker.inputs import load_inputs
        from kit.worker.own import MeasuredOwn

        if own.cell.workload in self._asked.sources:
            return MeasuredOwn(self._asked, own, ledger)
        with ledger.phase("data"):
            inputs = load_inputs(own.cell, self._asked)
        kind = MeasuredFit if own.cell.task == "fit" else MeasuredWorkload
        return kind(self._backend, self._asked, own, inputs, ledger, self._parities)

    def _release(self, place: int) -> None:
        """Give back what a program holds; what was frozen for its steps may be collected again."""
        self._programs.pop(place, None)
        gc.unfreeze()
        gc.collect()

    def _finish(self) -> Finished:
        peak_b, device_peak_b, device_ids = peak_memory_b(), None, list[str]()
        if self._device != HOST_DEVICE:
            device_peak_b = self._backend.peak_memory_b(self._device)
            device_ids = cuda.pci_bus_ids(self._asked.programs[0].cell.devices) if self._device == "gpu" else []
        with self._ledger.phase("finish"):
            end = clock.calibrate(self._timing.source)
            certificate = clock.certify(self._timing.source, self._timing.calibration, end)
        return Finished(
            peak_memory_b=peak_b,
            peak_device_memory_b=device_peak_b,
            device_ids=device_ids,
            calibration=end,
            certificate=certificate,
        )

    def _reason_of(self, error: Exception) -> Reason:
        from kit.backends.program.source import line_in

        known = raised(error)
        if isinstance(error, KitError):
            return reason("refused", message=known.values["message"])
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


def _set_threads(backend: Backend, asked: Prepare) -> Threads:
    setting = backend.set_threads(asked.threads)
    return Threads(requested=asked.threads, reported=setting.reported, reason=setting.reason, cpus=asked.cpus)


def _check_device(backend: Backend, device: str, wanted: int) -> None:
    found = backend.devices()
    if found.get(device, 0) < wanted:
        seen = ", ".join(f"{count} {kind}" for kind, count in found.items() if count) or "none"
        raise LaunchError(
            f"{backend.name} sees {found.get(device, 0)} {device} of the {wanted} asked for; it sees: {seen}"
        )
