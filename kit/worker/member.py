"""A member of a round: holds programs, and does what its runner asks, one command at a time.

It owns the process: standard input and output are its runner's; what a framework prints goes to standard error.
"""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import threading
import traceback
from typing import BinaryIO, NoReturn

import msgspec
from msgspec.structs import replace

from kit import clock
from kit.backends.catalog import CATALOG, load
from kit.backends.environment import decided_by_environment
from kit.backends.program.source import import_function, line_in
from kit.backends.protocol import Backend
from kit.backends.ranks import ALONE, RankPlace
from kit.devices.catalog import DEVICES, member_environment
from kit.errors import KitError
from kit.profile.launch import Failure, LaunchPart, Phase, PhaseName, Rank, Threads
from kit.profile.reason import Reason, reason
from kit.profile.schema import ProgramSource
from kit.sensors.catalog import EdgeCounters
from kit.sensors.linux import peak_memory_b, process_age_ns
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
from kit.worker.merged import merged, unlike
from kit.worker.messages import Answer, Command, Do, Done, Entered, Failed, Finish, Prepare, ProgramRequest
from kit.worker.rank_cpus import cpus_of
from kit.worker.rank_process import PROCESS_ENDED, ranks_per_host
from kit.worker.ranks import FAILED_GRACE_S, Followers, NoOthers, RankError, Ranks, is_value
from kit.workloads.operations import is_operation


class Member:
    """Answers commands until told to finish, or until its runner is gone."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO, ranks: Ranks | None = None) -> None:
        self._commands = commands
        self._answers = answers
        self._saying = threading.Lock()
        self._ranks: Ranks = ranks or NoOthers()
        self._encode = msgspec.json.Encoder().encode
        self._ledger = PhaseLedger(self._tell)
        self._programs: dict[int, MeasuredProgram] = {}
        self._ledgers: dict[int, PhaseLedger] = {}
        self._sources: list[ProgramSource] = []
        self._current: int | None = None
        self._device = HOST_DEVICE
        self._place = ALONE

    def serve(self) -> int:
        """Return the exit code: 0 after `Finish` or the runner's end, 1 after a failure that is no program's."""
        decoder = msgspec.json.Decoder(Command)
        for line in self._commands:
            if is_value(line):
                continue
            command = decoder.decode(line)
            self._current = getattr(command, "program", None)
            try:
                self._lead(command, line)
                answer: Done | Failed = self._answer(command)
            except Exception as error:
                answer = Failed(program=self._current, failure=self._failure_of(error))
                # Released before it is said: what comes next may need its memory. A traceback holds its frames.
                error.__traceback__ = None
                self._release(self._current)
            answer = self._of_all(answer)
            self._say(answer)
            if isinstance(answer, Failed) and answer.program is None:
                return 1
            if isinstance(command, Finish):
                return 0
        return 0

    def _lead(self, command: Command, line: bytes) -> None:
        """Start the other ranks of a member that has some, if this is its first; pass the command on to them."""
        if isinstance(command, Prepare) and command.ranks > 1 and command.rank == 0 and not command.addresses:
            self._ranks = followers = Followers(command, self._give_up)
            self._place = RankPlace(0, tuple(followers.addresses))
            asked = (replace(command, rank=rank, addresses=followers.addresses) for rank in range(1, command.ranks))
            followers.send(self._encode(prepare) + b"\n" for prepare in asked)
        elif isinstance(self._ranks, Followers):
            self._ranks.are_ending = isinstance(command, Finish)
            self._ranks.send([line] * (self._ranks.size - 1))

    def _of_all(self, answer: Done | Failed) -> Done | Failed:
        """Return the answers of all ranks as one: a program fails where all do, the member where only some."""
        if not isinstance(self._ranks, Followers):
            return answer
        of_others = self._ranks.answers(limit_s=FAILED_GRACE_S if isinstance(answer, Failed) else None)
        if of_others is None and isinstance(answer, Failed):
            self._give_up(self._ranks.error(0, answer.failure).failure)
        answers = [answer, *(of_others or [])]
        failures = {rank: given.failure for rank, given in enumerate(answers) if isinstance(given, Failed)}
        if not failures:
            done = [given for given in answers if isinstance(given, Done)]
            if (difference := unlike(done)) is None:
                return merged(done, self._ranks.ranks_per_host, share_cpus=self._ranks.share_cpus)
            rank, why = difference
            failures = {rank: Failure(phase=self._phase, reason=why)}
        ended = {rank: failure for rank, failure in failures.items() if failure.reason.code in PROCESS_ENDED}
        if isinstance(answer, Failed) and len(failures) == len(answers) and not ended:
            return answer
        rank, failure = next(iter((ended or failures).items()))
        return self._give_up(self._ranks.error(rank, failure).failure)

    def _give_up(self, failure: Failure) -> NoReturn:
        """End the member: a rank has failed, and what the framework does at an end may wait for it."""
        self._say(Failed(program=None, failure=failure))
        os._exit(1)

    def _failure_of(self, error: Exception) -> Failure:
        if isinstance(error, RankError):
            return error.failure
        if not isinstance(error, KitError):
            traceback.print_exc()
        return Failure(phase=self._phase, reason=self._reason_of(error))

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
        cell = asked.programs[0].cell
        if asked.ranks > 1:
            asked = self._as_rank(asked)
        with self._ledger.phase("import"):
            backend = load(cell.backend)
            for program_source in self._sources:
                import_function(program_source)
        self._device = cell.device
        # A backend that knows no such device need not share one; it says so when its first program is built.
        is_shared = DEVICES[self._device].shares_memory and hasattr(backend, "share_gpu_memory")
        if is_shared:
            backend.share_gpu_memory(asked.memory_share)
        if cell.devices > 1:
            backend.join(self._place, self._device, cell.devices // asked.ranks)
        setting = backend.set_threads(asked.threads if asked.tells_threads else None)
        threads = Threads(requested=asked.threads, reported=setting.reported, reason=setting.reason, cpus=asked.cpus)
        # Counters are opened once the framework has its threads: what was before is no part of any block.
        self._shared = Shared(
            asked, backend, source, calibration, EdgeCounters(asked.cpus), threads, self._ranks, proofs={}
        )
        host = hashlib.sha256(platform.node().encode()).hexdigest()
        part = LaunchPart(
            python=platform.python_version(),
            phases=[*started, *self._ledger.take()],
            threads=threads,
            environment=environment,
            ranks=[Rank(host_sha256=host, cpus=asked.cpus, threads=setting.reported)] if asked.ranks > 1 else [],
            calibration_start=calibration,
            device_memory_fraction=asked.memory_share if is_shared else None,
        )
        return Done(part=part)

    def _as_rank(self, asked: Prepare) -> Prepare:
        """Take this rank's place, and its part of its host's devices; return what is asked of it with its own CPUs."""
        if asked.addresses:
            self._place = RankPlace(asked.rank, tuple(asked.addresses))
        cell = asked.programs[0].cell
        if asked.hosts:
            os.environ |= member_environment(cell.device, cell.devices // len(asked.hosts), os.environ)
        cpus = list(cpus_of(asked, asked.rank))
        if asked.ranks == cell.devices:
            os.environ |= DEVICES[cell.device].shown_to_rank(asked.rank % ranks_per_host(asked), os.environ)
        os.sched_setaffinity(0, cpus)
        # Another host may have fewer, and so may a board's node.
        may_be_fewer = asked.rank >= ranks_per_host(asked) or cell.device != HOST_DEVICE
        return replace(asked, cpus=cpus, threads=min(asked.threads, len(cpus)) if may_be_fewer else asked.threads)

    def _build(self, place: int) -> Done:
        request, backend = self._shared.asked.programs[place], self._shared.backend
        ledger = self._ledgers[place] = PhaseLedger(self._tell, place)
        _check_device(backend, request.cell.device, request.cell.devices // self._shared.asked.ranks)
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
            inputs = load_inputs(request.cell, asked, self._place)
        kind = MeasuredFit if request.cell.task == "fit" else MeasuredWorkload
        return kind(self._shared, request, ledger, inputs)

    def _release(self, place: int | None) -> None:
        """Give back what a program holds; what was frozen for its steps may be collected again."""
        if place is not None:
            self._programs.pop(place, None)
        gc.unfreeze()
        gc.collect()

    def _finish(self) -> Done:
        part, shared = LaunchPart(peak_memory_b=peak_memory_b()), self._shared
        if self._device != HOST_DEVICE:
            part.peak_device_memory_b = shared.backend.peak_memory_b(self._device)
        part.device_ids = DEVICES[self._device].ids(shared.asked.programs[0].cell.devices // shared.asked.ranks)
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
        with self._saying:
            self._answers.write(self._encode(answer) + b"\n")
            self._answers.flush()


def _start_phase() -> list[Phase]:
    """Return the phase from this process's creation until now; none where the kernel does not tell."""
    age_ns, now_ns = process_age_ns(), clock.now_ns()
    return [] if age_ns is None else [Phase(name="start", begin_ns=now_ns - age_ns, duration_ns=age_ns)]


def _check_device(backend: Backend, device: str, wanted: int) -> None:
    seen = backend.count(device)
    if seen < wanted:
        raise KitError(f"{backend.name} sees {seen} {device}, and --devices needs {wanted}; `kit doctor` lists them")
