"""Workers below our conducting code that answer at once: step times, memory and deaths are planted.

It keeps a clock of its own, on which the machine drifts, and refuses what no worker could do: to work after its end, or
while another worker is awake.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np
from profile_builder import MS, S, certificate, profile, run_plan

from kit.profile.fields import Reason, reason
from kit.profile.schema import Compilations, DataUsed, LaunchPart, Threads
from kit.runner.worker_processes import WorkerFailed
from kit.runner.worker_spec import WorkerSpec
from kit.suites.groups import plan_groups
from kit.suites.plan import plan_cells
from kit.suites.suite import Axes, MeasureTable, Suite, VariantTable
from kit.worker import messages
from kit.worker.messages import Done, Measured

NO_DEVICE_MEMORY = reason("out_of_device_memory", type="OutOfMemoryError", message="CUDA out of memory")
DIED = reason("signal", signal="SIGKILL")
COUNTERS = ["process.cpu_ns", "machine.busy_ns", "machine.steal_ns"]
# What others may wait for; the rest are parts of a worker's way to them.
TURNS = ("prepare", "build", "warm_up", "block", "long_block", "conclude", "finish")


def run_within_limit(segment, step_ns, wait_ns=0):
    """The waits of a segment that ends with the first one past its limit, as a worker's do."""
    waits_ns = np.full(segment.waits, segment.per_wait * step_ns + wait_ns, np.int64)
    if not segment.limit_ns:
        return waits_ns
    return waits_ns[: 1 + np.searchsorted(waits_ns.cumsum(), segment.limit_ns, side="right")]


@dataclass
class Death:
    """A worker dies of one of its requests."""

    backend: str
    request: str  # as `ScriptedWorker.name_of` has it, or "stop"
    start: int = 0  # of this process, counted from 0
    nth: int = 0  # such request after its start
    why: Reason = DIED
    alone: bool = False  # the program fails, its process lives


@dataclass
class ScriptedLauncher:
    """Workers by backend; see the module."""

    step_ms: dict[str, float] = field(default_factory=dict)  # by backend or variant; else 2 ms
    wait_ms: float = 0.1  # for an accelerator, after its steps
    luck: float = 0.0  # SD of the log of a process's level
    noise: float = 0.01  # SD of the log of a request's steps
    drift: float = 0.3  # of the machine, over seconds
    others: Callable[[float], float] = lambda at_s: 0.0  # CPUs that other programs use at a second of this clock
    resident_b: int = 300 << 20
    larger_b: dict[str, int] = field(default_factory=dict)  # by workload: resident bytes in place of those
    device_share: dict[str, float] = field(default_factory=dict)  # by backend: what it needs of a board's memory
    device_ids: tuple[str, ...] = ()
    long_blocks: list[tuple[int, int]] = field(default_factory=list)  # begin and end of each
    idles: list[tuple[int, int]] = field(default_factory=list)
    compile_s: float = 0.0
    compiled: list[tuple[int, int]] = field(default_factory=list)
    epoch_updates: int = 1201  # of a fit
    deaths: list[Death] = field(default_factory=list)
    seed: int = 0
    calls: list[tuple[str, str]] = field(default_factory=list)  # one of TURNS, cell key or backend
    specs: list[WorkerSpec] = field(default_factory=list)

    def __post_init__(self):
        self.now_ns = S
        self.awake: ScriptedWorker | None = None
        self.alive: list[ScriptedWorker] = []
        self.most_alive = 0
        self.starts = Counter()
        self.draw = random.Random(self.seed)

    def start(self, spec, stop):
        assert self.awake is None
        self.specs.append(spec)
        worker = ScriptedWorker(self, spec, stop)
        self.alive.append(worker)
        self.most_alive = max(self.most_alive, len(self.alive))
        self.awake = worker
        return worker

    def stay_idle(self, sampling, seconds, stop):
        """The machine without workers, on this clock."""
        assert not self.alive
        begin_ns = self.now_ns
        self.now_ns += int(seconds * S)
        self.idles.append((begin_ns, self.now_ns))
        return self.idles[-1]

    def machine(self):
        """How slow it is now: waves of half a minute and of five seconds, deeper than any planted difference."""
        at_s = self.now_ns / S
        return math.exp(self.drift * (math.sin(at_s / 5) + 0.5 * math.sin(at_s / 0.8)))


class ScriptedWorker:
    """See `kit.runner.worker_processes.Asked`."""

    def __init__(self, launcher, spec, stop):
        self.launcher, self.spec, self.interrupt = launcher, spec, stop
        self.backend, self.cells = spec.prepare.backend, list(spec.cells)
        name = (self.backend, spec.variant.name)
        self.number = launcher.starts[name]
        launcher.starts[name] += 1
        self.counts = Counter()
        self.stepped = set()  # programs that have made their first step
        self.last = self.long_block = None
        self.level = math.exp(launcher.draw.gauss(0, launcher.luck))

    def ask(self, request, limit_s):
        name, launcher = self.name_of(request), self.launcher
        assert self in launcher.alive, f"{name} of a worker that has ended"
        assert launcher.awake in (None, self), f"{name} while another worker is awake"
        launcher.awake = self
        self.interrupt.check()
        # Of a fit's reference, too, which is a program of its own.
        program = getattr(request, "program", None)
        cell = None if program is None else self.cells[program % len(self.cells)]
        call = name, self.backend if cell is None else cell.key
        if name in TURNS and call != self.last:
            launcher.calls.append(call)
        self.last = None if name == "block" else call  # parts of a warm-up are one call
        self.meet(name)
        if isinstance(request, messages.Measure):
            return self.measure(request, name, cell)
        return getattr(self, name)(request)

    def stop(self):
        assert self.launcher.awake is self
        self.meet("stop")
        self.launcher.awake = self.last = self.long_block = None

    def end(self):
        if self in self.launcher.alive:
            self.launcher.alive.remove(self)
        if self.launcher.awake is self:
            self.launcher.awake = None

    def name_of(self, request):
        """What is asked for, in a word."""
        if not isinstance(request, messages.Measure):
            return type(request).__name__.lower()
        if request.program not in self.stepped:
            return "first_step"
        return "long_block" if request.is_summed else "block" if request.is_block else "warm_up"

    def meet(self, name):
        """Die where that is planned."""
        nth = self.counts[name]
        self.counts[name] += 1
        for death in self.launcher.deaths:
            if (death.backend, death.request, death.start, death.nth) == (self.backend, name, self.number, nth):
                raise WorkerFailed(death.why, "last words", goes_on=death.alone)

    def passes(self, seconds, **part):
        """What takes so long, with its part of the launch."""
        begin_ns, span_ns = self.launcher.now_ns, int(seconds * S)
        self.launcher.now_ns += span_ns
        return Done(begin_ns=begin_ns, span_ns=span_ns, part=LaunchPart(**part))

    def prepare(self, _):
        return self.passes(1.0, python="3.11.0")

    def join(self, asked):
        threads = Threads(
            requested=asked.threads, reported=asked.threads, reason=None, cpus=list(self.spec.prepare.cpus)
        )
        part = LaunchPart(threads=threads, device_memory_fraction=asked.memory_fraction)
        return Done(part=part, counters=COUNTERS)

    def load(self, _):
        done = self.passes(0.0, data=DataUsed(name="mnist", sha256="d" * 64, pool_batches=16))
        return msgspec.structs.replace(done, epoch_updates=self.launcher.epoch_updates)

    def build(self, _):
        if self.spec.join.memory_fraction < self.launcher.device_share.get(self.backend, 0):
            raise WorkerFailed(NO_DEVICE_MEMORY, goes_on=True)
        self.launcher.compiled.append((self.launcher.now_ns, self.launcher.now_ns))
        return self.passes(0.01, backend_version="1.0")

    def trace(self, _):
        return Done()

    compile = release = trace

    def measure(self, request, name, cell):
        launcher, begin_ns = self.launcher, self.launcher.now_ns
        planned, variant = launcher.step_ms, self.spec.variant.name
        luck = self.level * math.exp(launcher.draw.gauss(0, launcher.noise))
        step_ns = round(planned.get(variant, planned.get(self.backend, 2.0)) * MS * luck * launcher.machine())
        wait_ns = 0 if cell.device == "cpu" else round(launcher.wait_ms * MS)
        waits_ns = [run_within_limit(segment, step_ns, wait_ns) for segment in request.segments]
        if name == "first_step":
            waits_ns = [np.array([50 * MS])]
            launcher.now_ns += int(launcher.compile_s * S)
        elif name == "block" and len(waits_ns) > 1:
            waits_ns[0][0] *= 10  # of the lead-in, which nothing may count
        launcher.now_ns += int(sum(waits.sum() for waits in waits_ns))
        self.stepped.add(request.program)
        if name == "first_step":
            launcher.compiled[-1] = (launcher.compiled[-1][0], launcher.now_ns)
        if name == "long_block":
            if self.long_block is None:
                launcher.long_blocks.append((begin_ns, begin_ns))
            self.long_block = launcher.long_blocks[-1] = (launcher.long_blocks[-1][0], launcher.now_ns)
        span_ns = launcher.now_ns - begin_ns
        return Measured(
            begin_ns=begin_ns,
            span_ns=span_ns,
            waits=np.concatenate([[waits.sum()] if request.is_summed else waits for waits in waits_ns]).tobytes(),
            ran=[*map(len, waits_ns)],
            counters=[7, 7 + round(span_ns * launcher.others(begin_ns / S)), 0],
            resident_b=launcher.larger_b.get(cell.workload, launcher.resident_b) if name == "first_step" else None,
        )

    def conclude(self, asked):
        done = self.passes(0.0, recompiles=Compilations(count=0))
        return done if asked.proves else msgspec.structs.replace(done, span_ns=None)

    def score(self, asked):
        return self.passes(0.0, fit=msgspec.structs.replace(asked.fit, test_ns=1))

    def finish(self, _):
        return self.passes(0.0, peak_memory_b=1, certificate=certificate(), device_ids=list(self.launcher.device_ids))


def launches_of(profile, backend, task="train"):
    (result,) = [cell for cell in profile.cells if (cell.cell.backend, cell.cell.task) == (backend, task)]
    return result.launches


class Watching:
    """Notes the rounds, and may act at each block."""

    def __init__(self, at_block=lambda count: None):
        self.rounds, self.cycles, self.repeats, self.foreseen = [], [], [], []
        self.blocks, self.at_block = 0, at_block

    def round_begins(self, number, shared):
        pass

    def begins_anew(self, lost_ns):
        pass

    def starting(self, worker):
        pass

    def building(self, cell):
        pass

    def warming_up(self, cell, step_s):
        pass

    def block_done(self, cell, blocks, left):
        self.blocks += 1
        self.at_block(self.blocks)

    def cycle_done(self, clean, planned, others, *, is_repeated):
        self.cycles.append((clean, planned, others))

    def looked_ahead(self, ahead):
        self.foreseen.append((len(self.rounds), ahead))

    def round_done(self, number, launches, repeats):
        self.rounds.append((number, len(launches)))
        self.repeats.append(repeats)


def suite(*, backends=("tensorflow", "torch", "jax"), tasks=("train",), rounds=3, share=(), variants=(), **fields):
    axes = {name: fields.pop(name) for name in list(fields) if name in Axes.__struct_fields__}
    return Suite(
        name="x",
        title="x",
        cells=Axes(**{"workloads": ["mlp"]} | axes, backends=list(backends), tasks=list(tasks)),
        measure=MeasureTable(rounds=rounds, share=list(share)),
        variants={name: VariantTable() for name in variants},
        **fields,
    )


def plan_of(
    suite, *, precision_pct=None, cycles=4, seed=0, energy_s=0.0, energy_rounds="all", sensors=(), fit_rounds=None
):
    """The plan of a run of `suite`, on a machine with these sensors."""
    like = profile(rounds=1, cycles=1)
    cells = plan_cells(suite)
    used = msgspec.structs.replace(
        like.suite,
        compare=suite.compared,
        process_axes=suite.measure.share,
        rounds=suite.measure.rounds,
        precision_pct=precision_pct,
        plan=msgspec.structs.replace(
            like.suite.plan, cycles=cycles, energy_s=energy_s, energy_rounds=energy_rounds, fit_rounds=fit_rounds
        ),
        variants=suite.all_variants(),
        seed=seed,
    )
    groups = plan_groups(cells, suite.compared, suite.baseline)
    return msgspec.structs.replace(run_plan(like), sensors=list(sensors), suite=used, cells=cells, groups=groups)
