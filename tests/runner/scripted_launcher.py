"""Processes below our conducting code that answer at once: step times, memory and deaths are planted.

It keeps a clock of its own, on which the machine drifts, and refuses what no process could do: to work while stopped,
or while another member is awake.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import numpy as np
from profile_builder import certificate, profile, run_plan

from kit.profile.launch import Blocks, Compilations, DataUsed, Failure, LaunchPart, Phase, Threads
from kit.profile.reason import Reason, reason
from kit.runner.processes.process import MemberRequest
from kit.suites.plan import plan_cells, plan_groups
from kit.suites.suite import Axes, Measure, Suite, VariantTable
from kit.worker.messages import Command, Do, Done, Entered, Failed

S = 1_000_000_000
FIT_BLOCKS = 3
MS = 1_000_000
NO_DEVICE_MEMORY = reason("out_of_device_memory", type="OutOfMemoryError", message="CUDA out of memory")
DIED = reason("signal", signal="SIGKILL")


@dataclass
class Death:
    """A member dies in one of its calls."""

    backend: str
    call: str  # "prepare", "build", "warm_up", "block", "conclude", "finish"
    start: int = 0  # of this process, counted from 0
    nth: int = 0  # such call after its start
    program: int | None = 0
    why: Reason = DIED
    alone: bool = False  # the program fails, its process lives
    is_silent: bool = False  # the process says nothing of the phase that it dies in


@dataclass
class ScriptedLauncher:
    """Members by backend; see the module."""

    step_ms: dict[str, float] = field(default_factory=dict)  # by backend or variant; else 2 ms
    luck: float = 0.0  # SD of the log of a process's level
    noise: float = 0.01  # SD of the log of a block
    drift: float = 0.3  # of the machine, over seconds
    others: Callable[[float], float] = lambda at_s: 0.0  # CPUs that other programs use at a second of this clock
    resident_b: int = 300 << 20
    device_share: dict[str, float] = field(default_factory=dict)  # by backend: what it needs of a board's memory
    device_ids: tuple[str, ...] = ()
    long_blocks: list[tuple[int, int]] = field(default_factory=list)  # begin and end of each
    idles: list[tuple[int, int]] = field(default_factory=list)
    compile_s: float = 0.0
    compiled: list[tuple[int, int]] = field(default_factory=list)
    deaths: list[Death] = field(default_factory=list)
    seed: int = 0
    calls: list[tuple[str, str]] = field(default_factory=list)  # what, cell key or backend
    requests: list[MemberRequest] = field(default_factory=list)

    def __post_init__(self):
        self.now_ns = S
        self.awake: ScriptedProcess | None = None
        self.alive: list[ScriptedProcess] = []
        self.most_alive = 0
        self.starts = Counter()
        self.draw = random.Random(self.seed)

    def start(self, request):
        assert self.awake is None
        self.requests.append(request)
        member = ScriptedProcess(self, request)
        self.alive.append(member)
        self.most_alive = max(self.most_alive, len(self.alive))
        self.awake = member
        return member

    def stay_idle(self, sampling, seconds, stop):
        """The machine without members, on this clock."""
        assert not self.alive
        begin_ns = self.now_ns
        self.now_ns += int(seconds * S)
        self.idles.append((begin_ns, self.now_ns))
        return self.idles[-1]

    def machine(self):
        """How slow it is now: waves of half a minute and of five seconds, deeper than any planted difference."""
        at_s = self.now_ns / S
        return math.exp(self.drift * (math.sin(at_s / 5) + 0.5 * math.sin(at_s / 0.8)))


PHASE_OF = {"prepare": "import", "warm_up": "warmup", "block": "steady", "conclude": "parity"}


class ScriptedProcess:
    """See `kit.runner.processes.process.Process`."""

    def __init__(self, launcher, request):
        self.launcher, self.request = launcher, request
        self.programs = request.prepare.programs
        self.keys = [program.cell.key for program in self.programs]
        name = (request.backend, request.variant.name)
        self.number = launcher.starts[name]
        launcher.starts[name] += 1
        self.counts = Counter()
        self.fit_blocks = 0
        self.level = math.exp(launcher.draw.gauss(0, launcher.luck))
        self.answers, self.why = b"", None

    def send(self, line):
        command = msgspec.json.decode(line, type=Command)
        verb = command.verb if isinstance(command, Do) else type(command).__name__.lower()
        place = command.program if isinstance(command, Do) else None
        assert self.launcher.awake is self, f"{verb} of a member that is stopped"
        self.launcher.calls.append((verb, self.request.backend if place is None else self.keys[place]))
        nth = self.counts[verb]
        self.counts[verb] += 1
        planned = (self.request.backend, verb, self.number, nth)
        for death in self.launcher.deaths:
            if (death.backend, death.call, death.start, death.nth) == planned:
                self.die(death, PHASE_OF.get(verb, verb))
                return
        self.say(getattr(self, verb)(command))

    def die(self, death, phase):
        if death.alone:
            self.say(Failed(program=death.program, failure=Failure(phase=phase, reason=death.why)))
        else:
            if not death.is_silent:
                self.say(Entered(phase=phase, program=death.program))
            self.why = death.why

    def say(self, answer):
        self.answers += msgspec.json.encode(answer) + b"\n"

    def receive(self, wait_s):
        answers, self.answers = self.answers, b""
        assert answers or self.why, "a member is asked, and nothing was said to it"
        return answers

    def how_it_ended(self):
        return self.why

    def stderr_tail(self):
        return "last words"

    def wait(self, limit_s):
        pass

    def _phase(self, name, seconds):
        begin_ns, duration_ns = self.launcher.now_ns, int(seconds * S)
        self.launcher.now_ns += duration_ns
        return Phase(name=name, begin_ns=begin_ns, duration_ns=duration_ns)

    def prepare(self, asked):
        threads = Threads(requested=asked.threads, reported=asked.threads, reason=None, cpus=asked.cpus)
        part = LaunchPart(python="3.11.0", phases=[self._phase("import", 1.0)], threads=threads)
        part.device_memory_fraction = asked.memory_share
        return Done(part=part)

    def build(self, do):
        if self.request.prepare.memory_share < self.launcher.device_share.get(self.request.backend, 0):
            return Failed(program=do.program, failure=Failure(phase="first_step", reason=NO_DEVICE_MEMORY))
        data = DataUsed(name="mnist", sha256="d" * 64, pool_batches=16)
        begin_ns = self.launcher.now_ns
        phases = [self._phase("build", 0.01), self._phase("first_step", self.launcher.compile_s)]
        self.launcher.compiled.append((begin_ns, self.launcher.now_ns))
        part = LaunchPart(backend_version="1.0", phases=phases, data=data)
        return Done(part=part, steps=packed([50 * MS]), resident_b=self.launcher.resident_b)

    def warm_up(self, do):
        part = LaunchPart(phases=[self._phase("warmup", 1.0)], warmup_steps=10)
        return Done(part=part, steps=packed([3 * MS] * 10))

    def block(self, do):
        planned = self.launcher.step_ms
        base_ms = planned.get(self.request.variant.name, planned.get(self.request.backend, 2.0))
        luck = self.level * math.exp(self.launcher.draw.gauss(0, self.launcher.noise))
        step_ns = round(base_ms * MS * luck * self.launcher.machine())
        begin_ns, span_ns = self.launcher.now_ns, int(do.seconds * S)
        self.launcher.now_ns += span_ns
        if do.by_time:
            self.launcher.long_blocks.append((begin_ns, self.launcher.now_ns))
        is_fit = self.programs[do.program].cell.task == "fit"
        self.fit_blocks += is_fit
        # The first is the lead-in, which nothing may count.
        steps_ns = [step_ns] * 4 if is_fit else [10 * step_ns, *[step_ns] * 4]
        lead_in = 0 if is_fit or do.by_time else 1
        blocks = Blocks(
            cycle=[do.cycle],
            begin_ns=[begin_ns],
            span_ns=[span_ns],
            lead_in=[lead_in],
            steps=[len(steps_ns) - lead_in],
            duration_ns=[sum(steps_ns[lead_in:])],
            median_ns=[step_ns],
            counters={
                "process.cpu_ns": [7],
                "machine.busy_ns": [7 + round(span_ns * self.launcher.others(begin_ns / S))],
                "machine.steal_ns": [0],
            },
        )
        left = FIT_BLOCKS - self.fit_blocks if is_fit else None
        return Done(part=LaunchPart(blocks=blocks), steps=packed(steps_ns), left=left)

    def conclude(self, do):
        phases = [self._phase("parity", 0.0)] if self.request.prepare.prove else []
        return Done(part=LaunchPart(recompiles=Compilations(count=0), phases=phases))

    def finish(self, _):
        device_ids = list(self.launcher.device_ids)
        return Done(part=LaunchPart(peak_memory_b=1, certificate=certificate(), device_ids=device_ids))

    def pause(self):
        assert self.launcher.awake is self
        self.launcher.awake = None
        return True

    def resume(self):
        assert self.launcher.awake is None, "another member is awake"
        assert self in self.launcher.alive
        self.launcher.awake = self

    def kill(self):
        if self in self.launcher.alive:
            self.launcher.alive.remove(self)
        if self.launcher.awake is self:
            self.launcher.awake = None


def launches_of(profile, backend, task="train"):
    (result,) = [cell for cell in profile.cells if (cell.cell.backend, cell.cell.task) == (backend, task)]
    return result.launches


def packed(step_ns):
    return np.array(step_ns, np.int64).tobytes()


class Watching:
    """Notes the rounds, and may act at each block."""

    def __init__(self, at_block=lambda count: None):
        self.rounds, self.cycles, self.repeats, self.blocks, self.at_block = [], [], [], 0, at_block

    def round_begins(self, number, bundles):
        pass

    def begins_anew(self, lost_ns):
        pass

    def starting(self, process):
        pass

    def building(self, cell):
        pass

    def block_done(self, cell, done):
        self.blocks += 1
        self.at_block(self.blocks)

    def cycle_done(self, clean, planned, others, *, is_repeated):
        self.cycles.append((clean, planned, others))

    def round_done(self, number, launches, repeats):
        self.rounds.append((number, len(launches)))
        self.repeats.append(repeats)


def suite(*, backends=("tensorflow", "torch", "jax"), tasks=("train",), rounds=3, share=(), variants=(), **fields):
    axes = {name: fields.pop(name) for name in list(fields) if name in Axes.__struct_fields__}
    return Suite(
        name="x",
        title="x",
        cells=Axes(workloads=["mlp"], backends=list(backends), tasks=list(tasks), **axes),
        measure=Measure(rounds=rounds, share=list(share)),
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
