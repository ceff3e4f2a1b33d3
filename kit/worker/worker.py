"""The worker: holds programs of one framework, and does what its runner asks, one request at a time.

prepare ─ join │ load ─ build ─ trace ─ compile ─ first step ─ warm-up ─ block … block ─ conclude │ finish
"""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import platform
import re
import socket
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import repeat
from typing import Any, BinaryIO

import msgspec
import numpy as np
import psutil
from msgspec.structs import replace

from kit import clock
from kit.backends.backend_catalog import CATALOG, load, load_operations
from kit.backends.compile_caches import compile_anew, is_as_given, kept_by
from kit.backends.entry import read_from_environment
from kit.backends.program.backend import HOST, UserProgram, defined_at, device_of, import_function, leaves, line_in
from kit.backends.program.command import CommandProgram
from kit.backends.program.frameworks import loaded_versions
from kit.backends.protocol import ALONE, Backend, DeviceBatch, RankGroup, Runnable, StepOutput, Stepping, all_reduces
from kit.devices import DEVICES, worker_environment
from kit.environment import COMPILE_CACHE
from kit.errors import KitError
from kit.import_order import import_as_plain_python
from kit.profile.cell import Cell
from kit.profile.consistency import SHRINKING
from kit.profile.fields import Reason, reason
from kit.profile.program_source import ProgramSource
from kit.profile.schema import BlockBegin, Compilations, Failure, LaunchPart, Phase, Rank, Threads
from kit.profile.store import Steps
from kit.sensors.linux import peak_memory_b, process_age_ns
from kit.sensors.sources import EdgeCounters
from kit.version import __version__
from kit.worker.evidence import (
    ThreadUse,
    compilations,
    empty_wait_ns,
    imported_code,
    record_parity,
    timed_on_device,
    what_ran,
)
from kit.worker.fit import FitFeed, scored
from kit.worker.inputs import Inputs, feed, load_inputs
from kit.worker.messages import (
    RAISED,
    Build,
    Compile,
    Conclude,
    Done,
    Failed,
    Finish,
    Join,
    Load,
    Measure,
    Measured,
    Prepare,
    Reach,
    Release,
    Request,
    Requests,
    Score,
    Trace,
)
from kit.worker.numbers import Losses
from kit.worker.rank_place import address_of, cpus_of_rank, held_port
from kit.worker.step_loop import InjectedDelay, run_segments
from kit.worker.sudden_end import write_the_line_of_a_sudden_end
from kit.workloads.device_operations import is_operation
from kit.workloads.parity_proof import parity_batch
from kit.workloads.seeded_arrays import Epochs, initial_weights

# On a CPU a step has returned when it is done, or its wait costs next to nothing.
HOST_DEVICE = "cpu"
# A framework's message is cut: XLA's can fill pages, and the stack is in the tail of standard error.
MESSAGE_LENGTH = 500
# torch.OutOfMemoryError; tensorflow.errors.ResourceExhaustedError.
MEMORY_ERRORS = ("OutOfMemoryError", "ResourceExhaustedError")
# XLA's status, in a JaxRuntimeError that can be anything; CUDA's and its libraries', in a RuntimeError.
MEMORY_WORDS = re.compile(r"RESOURCE_EXHAUSTED|out of memory|OOM when allocating|_ALLOC_FAILED", re.IGNORECASE)


def serve(requests: BinaryIO, answers: BinaryIO) -> int:
    """Answer requests until `Finish` or their end; return the exit code, 1 after a failure that is no program's."""
    worker, encoder, decoder = _Worker(), msgspec.json.Encoder(), msgspec.json.Decoder(Requests)
    for line in requests:
        request = decoder.decode(line)
        program: int | None = getattr(request, "program", None)
        try:
            answer: Done | Measured | Failed = worker.answer(request)
        except BaseException as error:  # a program may raise whatever there is
            if not isinstance(error, KitError):
                with suppress(Exception):  # a program may have put anything in the place of standard error
                    print(RAISED, file=sys.__stderr__)
                    traceback.print_exc(file=sys.__stderr__)
            answer = Failed(program=program, reason=worker.reason_of(error, program))
            # Released before it is said, as what comes next may need its memory. A traceback holds its frames.
            error.__traceback__ = None
            worker.release(program)
        try:
            answers.write(encoder.encode(answer) + b"\n")
            answers.flush()
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            sys.exit(
                "the program closed files that it had not opened: those by which Steadykit asks it and is answered"
            )
        if isinstance(request, Finish) or (isinstance(answer, Failed) and program is None):
            return int(isinstance(answer, Failed))
    return 0


class _Running:
    """A program that has been built."""

    def __init__(self, cell: Cell, seed: int, program: Runnable, batches: Iterator[DeviceBatch]) -> None:
        self.cell, self.seed, self.program, self.batches = cell, seed, program, batches
        self.compiled_before: Compilations | None = None  # after the first step
        self.output: StepOutput = None  # of the last step
        self.thread_use: ThreadUse | None = None  # since its first block
        self.losses = Losses()
        self.is_restored = False  # before each block
        self.is_in_block = False  # of a cycle or a fit, since its begin

    def end_block(self) -> None:
        """Take the loss of the last step of a block, which ends where the next begins, or at the end of all."""
        if self.is_in_block:
            self.losses.add(self.program, self.output, is_block=True)
        self.is_in_block = False


class _Worker:
    """One framework and its programs."""

    _prepared: Prepare
    _threads: Threads
    _counters: EdgeCounters
    _backend: Backend

    def __init__(self) -> None:
        self._inputs: dict[int, Inputs] = {}
        self._fits: dict[int, FitFeed] = {}
        self._programs: dict[int, _Running] = {}
        self._has_commands = False
        self._sources: dict[int | None, ProgramSource] = {}  # of user programs
        self._proofs: dict[str, LaunchPart] = {}  # by cell: the points of a sweep share one, which is of small batches
        self._rank = ALONE
        self._held: socket.socket | None = None  # the port of this rank

    def answer(self, request: Requests) -> Done | Measured:
        """Do what is asked; the framework's own exceptions pass."""
        handlers: dict[type[Request], Callable[[Any], Done | Measured]] = {
            Prepare: self._prepare, Reach: self._reach, Join: self._join, Load: self._load, Build: self._build,
            Trace: self._trace, Compile: self._compile, Measure: self._measure, Conclude: self._conclude,
            Score: self._score, Release: self._release, Finish: self._finish,
        }  # fmt: skip
        return handlers[type(request)](request)

    def release(self, program: int | None) -> None:
        """Give back what a program holds; what was frozen for its steps may be collected again."""
        if program is not None:
            running = self._programs.get(program)
            if running is not None and isinstance(running.program, CommandProgram):
                running.program.close()
            for held in (self._programs, self._inputs, self._fits):
                held.pop(program, None)
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # what is left lives on: the next program's collection need not look at it

    def reason_of(self, error: BaseException, program: int | None = None) -> Reason:
        """Return an exception as a reason, its message in one line; the program that raised it, if it was one."""
        message = " ".join(_text_of(error).split())[:MESSAGE_LENGTH]
        if isinstance(error, KitError):
            return reason("refused", message=message)
        known = {"type": type(error).__name__, "message": message}
        prepared = getattr(self, "_prepared", None)
        if prepared is not None and prepared.device != HOST_DEVICE and ran_out(error):
            return reason("out_of_device_memory", **known)
        for source in [] if prepared is None else prepared.sources:
            if (raised := line_in(source, error)) is not None:
                file, line = raised
                return reason("program_raised", **known, file=file, line=line)
        if (source := self._sources.get(program)) is not None and (made := defined_at(source, error)) is not None:
            # The step is no code of the user's, such as a layer of a framework.
            file, line = made
            return reason("program_raised", **known, file=file, line=line)
        return reason("exception", **known)

    def _prepare(self, request: Prepare) -> Done:
        age_ns, begin_ns = process_age_ns(), clock.now_ns()
        started = [] if age_ns is None else [Phase(name="start", begin_ns=begin_ns - age_ns, duration_ns=age_ns)]
        self._prepared = request
        self._source, _ = clock.choose_source(request.clock)
        self._calibration = clock.calibrate(self._source)
        given = dict(os.environ)
        if request.compiles_anew:
            compile_anew(CATALOG[request.backend])
        in_force = {name: value for name, value in os.environ.items() if is_as_given(name, value, given)}
        environment = read_from_environment(CATALOG[request.backend], in_force, not request.has_own_threads)
        if request.hides_devices:
            os.environ |= worker_environment(request.device, request.devices, os.environ)
        self._cpus = cpus_of_rank(request)
        if request.parts > 1:
            os.sched_setaffinity(0, self._cpus)
            if request.parts == request.devices:
                os.environ |= DEVICES[request.device].shown_to_rank(request.part, os.environ)
        begin_ns = clock.now_ns()
        import_as_plain_python(is_program=bool(request.sources))
        if request.sources:
            write_the_line_of_a_sudden_end()
        self._backend = load(request.backend)
        for source in request.sources:
            if source.command is None:
                import_function(source)
        gc.freeze()  # a framework's own objects live on: looking at TensorFlow's takes 0.2 s
        part = LaunchPart(
            python=platform.python_version(),
            phases=started,
            environment=environment,
            calibration_start=self._calibration,
        )
        return replace(_timed(begin_ns, part), kit_version=__version__)

    def _reach(self, request: Reach) -> Done:
        self._held = held_port(request.towards)
        return Done(address=address_of(self._held))

    def _join(self, request: Join) -> Done:
        prepared, backend = self._prepared, self._backend
        # A backend that knows no such device need not share one; it says so when its first program is built.
        is_shared = DEVICES[prepared.device].shares_memory and hasattr(backend, "share_gpu_memory")
        if is_shared:
            backend.share_gpu_memory(request.memory_fraction)
        if request.addresses:
            self._rank = RankGroup(request.rank, tuple(request.addresses), request.folder, self._held)
            self._rank.keep_to_interface()
        if request.devices:
            backend.join(self._rank, prepared.device, request.devices)
        # Another host may have fewer CPUs than the runner's, and so may the node of a board.
        threads = min(request.threads, len(self._cpus)) if request.addresses else request.threads
        setting = backend.set_threads(None if prepared.has_own_threads else threads)
        self._threads = Threads(
            requested=threads, reported=setting.reported, reason=setting.reason, cpus=list(self._cpus)
        )
        # Counters are opened once the framework has its threads: what was before belongs to no block.
        self._counters = EdgeCounters(self._cpus)
        host = hashlib.sha256(platform.node().encode()).hexdigest()
        rank = Rank(host_sha256=host, cpus=list(self._cpus), threads=setting.reported)
        part = LaunchPart(
            threads=self._threads,
            ranks=[rank] if request.addresses else [],
            device_memory_fraction=request.memory_fraction if is_shared else None,
        )
        return Done(part=part, counters=list(self._counters.names))

    def _load(self, request: Load) -> Done:
        begin_ns = clock.now_ns()
        inputs = load_inputs(request.cell, request.data, request.seed, self._rank)
        self._inputs[request.program] = inputs
        part = LaunchPart(data=inputs.used)
        if request.cell.in_blocks:
            return _timed(begin_ns, part)
        samples, rank = inputs.samples("train"), self._rank
        epochs = Epochs(
            inputs.workload, inputs.data, samples, request.cell.batch,
            seed=request.seed, part=rank.number, parts=rank.size,
        )  # fmt: skip
        self._fits[request.program] = FitFeed(epochs, request.cell.feed)
        return replace(_timed(begin_ns, part), epoch_updates=epochs.steps)

    def _build(self, request: Build) -> Done:
        begin_ns, cell, backend = clock.now_ns(), request.cell, self._backend
        prepared = self._prepared
        wanted = prepared.devices // prepared.parts or 1
        if (seen := backend.count(cell.device)) < wanted:
            raise KitError(f"{backend.name} sees {seen} {cell.device}, and --devices needs {wanted}; see `kit doctor`")
        if request.source is not None:
            self._sources[request.program] = request.source
            if request.source.command is not None:
                self._has_commands = True
                user_program: UserProgram = CommandProgram(request.source.command, request.variables)
            else:
                user_program = UserProgram(request.source, cell)
            running = _Running(cell, request.seed, user_program, user_program.batches)
        elif (inputs := self._inputs.get(request.program)) is None:
            running = _Running(cell, request.seed, load_operations(cell.backend)(cell), repeat(None))
        else:
            fit = self._fits.get(request.program)
            trained = cell if fit is None else replace(cell, task="train")
            program = backend.build(
                inputs.workload, trained, initial_weights(inputs.workload, request.seed), request.seed
            )
            if fit is not None:
                fit.hold(program)
            batches = iter(()) if fit is not None else feed(program, list(map(inputs.part, inputs.pool)), cell)
            running = _Running(trained, request.seed, program, batches)
        self._programs[request.program] = running
        # A user program may have imported its framework just now.
        if isinstance(running.program, UserProgram):
            tokens = running.program.tokens
        else:
            inputs = self._inputs.get(request.program)
            tokens = None if inputs is None else inputs.tokens(cell)
        done = _timed(begin_ns, LaunchPart(backend_version=backend.version, tokens=tokens))
        if not isinstance(running.program, UserProgram):
            done.part.untested = CATALOG[cell.backend].newer_than_tested(backend.version)
        done.part.device_ids = DEVICES[prepared.device].ids(wanted)
        if running.cell.traits.trains and request.program not in self._fits:
            running.program.keep()  # not in the time of the build
        return done

    def _trace(self, request: Trace) -> Done:
        begin_ns = clock.now_ns()
        return _timed(begin_ns) if self._programs[request.program].program.trace() else Done()

    def _compile(self, request: Compile) -> Done:
        begin_ns = clock.now_ns()
        done = _timed(begin_ns) if self._programs[request.program].program.compile() else Done()
        # What the build left behind is collected now, not in the middle of a step.
        gc.collect()
        gc.freeze()
        return done

    def _measure(self, request: Measure) -> Measured:
        running, counters = self._programs[request.program], self._counters
        if (fit := self._fits.get(request.program)) is not None:
            running.batches = fit.batches(sum(segment.steps for segment in request.segments))
        delay = InjectedDelay(running.program, request.slowdown_pct) if request.slowdown_pct else None
        stepping: Stepping = delay or running.program
        stamps = clock.Stamps(sum(segment.waits for segment in request.segments) + 1, self._source)
        restored_ns = 0
        if request.begins_block:
            running.end_block()
            running.is_in_block = not request.is_summed
            if fit is None:
                restoring_ns = clock.now_ns()
                running.is_restored = running.program.restore()
                restored_ns = clock.now_ns() - restoring_ns
        if isinstance(running.program, UserProgram):
            running.program.begin()
        if request.is_block and running.thread_use is None:
            running.thread_use = ThreadUse()
            if isinstance(running.program, UserProgram):
                # It may compile as it likes until it is measured.
                running.compiled_before = compilations(running.program)
        batches = running.batches
        if isinstance(running.program, UserProgram) and not request.is_block:
            batches = running.program.checked_batches()
        before = counters.read()
        begin_ns = clock.now_ns()
        running.output, ran = run_segments(stepping, batches, request.segments, stamps, self._calibration)
        span_ns = clock.now_ns() - begin_ns
        after = counters.read()
        waits_ns = stamps.intervals_ns(self._calibration)
        if fit is not None:
            asked = zip(request.segments, ran, strict=True)
            fit.give_back(sum(segment.steps - waits * segment.per_wait for segment, waits in asked))
        self._check(running, waits_ns, waits_ns[-ran[-1] :] // request.segments[-1].per_wait)
        resident_b = None
        if running.compiled_before is None:
            running.compiled_before = compilations(running.program)
            running.losses.add(running.program, running.output, is_block=False)
            resident_b = psutil.Process().memory_info().rss
        if request.is_summed:
            waits_ns = waits_ns.sum(keepdims=True)
        command = running.program if isinstance(running.program, CommandProgram) else None
        return Measured(
            begin_ns=begin_ns,
            span_ns=span_ns,
            waits=waits_ns.tobytes(),
            ran=ran,
            counters=[
                # Kernels' counters of a virtual machine have been seen to fall: what such a one shows is not known.
                None if first is None or last is None or (last < first and name not in SHRINKING) else last - first
                for name, first, last in zip(self._counters.names, before, after, strict=True)
            ],
            failed_runs=0 if command is None else command.failed_runs,
            figures=[] if command is None else command.figures,
            restored_ns=restored_ns,
            injected_ns=0 if delay is None else delay.injected_ns,
            resident_b=resident_b,
        )

    def _check(self, running: _Running, waits_ns: Steps, step_ns: Steps) -> None:
        """Look at the last of some steps, outside of their times; raise a KitError where they cannot count.

        Args:
            running: whose steps they are.
            waits_ns: of all segments.
            step_ns: of the last segment.
        """
        if waits_ns.min() <= 0:
            raise KitError("this clock is too coarse for steps this short: a step took no time; use larger batches")
        program = running.program
        if isinstance(program, UserProgram):
            program.check(running.output, step_ns)
        elif running.compiled_before is None:
            devices = {device_of(leaf) for leaf in leaves(running.output)} - {None}
            kinds = {HOST_DEVICE if device == HOST else str(device) for device in devices}
            if kinds and running.cell.device not in kinds:
                where = " and ".join(sorted(kinds))
                raise KitError(f"the first step ran on the {where}, but --device is {running.cell.device}")

    def _conclude(self, request: Conclude) -> Done:
        """Check and prove a program; the span is the proof's."""
        running = self._programs[request.program]
        program = running.program
        before, after = running.compiled_before, compilations(program)
        if before is not None and before.count is not None and after.count is not None:
            after = replace(after, count=after.count - before.count, before=before.count)
        used = (running.thread_use or ThreadUse()).used()
        # What the program has set since the worker joined holds while it is measured.
        if isinstance(program, UserProgram):
            version, reported = program.made_with(running.output)
        else:
            version, reported = None, self._backend.set_threads(None)
        threads = replace(self._threads, reported=reported.reported, reason=reported.reason)
        if isinstance(used, Reason):
            threads = replace(threads, used_reason=used)
        else:
            threads = replace(threads, used=used.threads, placement=used.placement)
        part = LaunchPart(
            backend_version=version,
            frameworks=loaded_versions(),
            compile_cache=None if os.environ.get(COMPILE_CACHE) else kept_by(CATALOG[self._prepared.backend]),
            recompiles=after,
            threads=threads,
            imported=imported_code(),
        )
        running.end_block()
        if not is_operation(running.cell):
            is_program = isinstance(program, UserProgram)
            begin: BlockBegin = ("reset" if is_program else "restored") if running.is_restored else "left"
            part.numbers = running.losses.numbers(begin, program)
        if (why := not_finite(program, running.output)) is not None:
            # Nonsense is not timed: a network that diverged skips work on some hardware.
            part.failure = Failure(phase="steady", reason=why)
            return Done(part=part)
        part.settings = program.settings()
        if isinstance(program, UserProgram):
            part.output_unchecked = program.why_unchecked()
        if running.cell.device != HOST_DEVICE:
            part.empty_wait_ns = empty_wait_ns(program)
        if request.event_steps:
            part.device_events = timed_on_device(program, running.batches, request.event_steps)
        begin_ns = clock.now_ns()
        if not request.proves:
            return Done(part=part)
        if isinstance(program, UserProgram) or request.program in self._inputs:
            part.ran = what_ran(program, running.batches)
        part.add(self._proof(request.program, running))
        return _timed(begin_ns, part)

    def _proof(self, program: int, running: _Running) -> LaunchPart:
        """Return the parity losses and the kernels of a workload."""
        cell, inputs = running.cell, self._inputs.get(program)
        if inputs is None or (cell.devices > 1 and not all_reduces()):
            return LaunchPart()  # devices that learn apart from each other have losses that compare with nothing
        # Every device has a part of the small batch, as it has of the cell's own.
        small = replace(cell, batch=parity_batch(inputs.workload, cell))
        if small.key not in self._proofs:
            self._proofs[small.key] = record_parity(self._backend, inputs, small, running.seed)
        return self._proofs[small.key]

    def _score(self, request: Score) -> Done:
        begin_ns = clock.now_ns()
        try:
            fit = scored(request.fit, self._fits[request.program].program, self._inputs[request.program])
        except Exception as error:
            fit = replace(request.fit, reason=self.reason_of(error))
        return _timed(begin_ns, LaunchPart(fit=fit))

    def _release(self, request: Release) -> Done:
        self.release(request.program)
        return Done()

    def _finish(self, _request: Finish) -> Done:
        begin_ns, prepared, part = clock.now_ns(), self._prepared, LaunchPart()
        # A command has its memory to itself: what this process held says nothing of it.
        part.peak_memory_b = None if self._has_commands else peak_memory_b()
        if prepared.device != HOST_DEVICE:
            part.peak_device_memory_b = self._backend.peak_memory_b(prepared.device)
        # A user program may have opened its devices in its first step.
        part.device_ids = DEVICES[prepared.device].ids(prepared.devices // prepared.parts)
        part.calibration_end = clock.calibrate(self._source)
        part.certificate = clock.certify(self._source, self._calibration, part.calibration_end)
        return _timed(begin_ns, part)


def _timed(begin_ns: int, part: LaunchPart | None = None) -> Done:
    """Return that a phase, which began then, is done now."""
    return Done(begin_ns=begin_ns, span_ns=clock.now_ns() - begin_ns, part=part or LaunchPart())


def not_finite(program: Runnable, output: StepOutput) -> Reason | None:
    """Return why what a program's step returned cannot count; None where all numbers that can be read are finite."""
    numbers = program.to_host(output)
    is_nan, is_finite = np.isnan(numbers), np.isfinite(numbers)
    if is_finite.all():
        return None
    if not isinstance(program, UserProgram):
        return reason("output_not_finite")
    if not program.must_be_finite:
        return None
    infinite = int(numbers.size - is_finite.sum() - is_nan.sum())
    return reason("program_output_not_finite", nans=int(is_nan.sum()), infinite=infinite, numbers=int(numbers.size))


def _text_of(error: BaseException) -> str:
    """Return an exception's message, in characters that any file can hold."""
    try:
        return str(error).encode(errors="backslashreplace").decode()
    except Exception:  # of a class of the user's
        return ""


def ran_out(error: BaseException) -> bool:
    """Return whether a framework raised for want of the device's memory; no framework is imported to tell.

    What the exception was raised from is looked at, too: torch.compile wraps what a kernel raises.
    """
    raised: BaseException | None = error
    while raised is not None:
        names = {kind.__name__ for kind in type(raised).__mro__}
        if names.intersection(MEMORY_ERRORS) or MEMORY_WORDS.search(_text_of(raised)):
            return True
        raised = raised.__cause__
    return False
