"""The record of one launch as it grows: what a member answers, put where the profile has it."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from kit.profile.cell import Cell
from kit.profile.launch import Launch
from kit.profile.sensor import Energy, SensorSummary
from kit.profile.unfinished import KeptLaunch
from kit.sensors.sampling import Samples
from kit.stats.percentile import percentile_ns
from kit.worker.messages import BlockDone, Built, Concluded, Finished, Prepared, WarmedUp


class LaunchRecord:
    """One cell of one group in one round.

    Attributes:
        launch: as far as it has come.
        done: whether all its blocks have run.
    """

    def __init__(self, cell: Cell, group: str, number: int, process: str) -> None:
        self.launch = Launch(
            cell_key=cell.key,
            group=group,
            round=number,
            process=process,
            started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )
        self.done = False
        self._batch = cell.batch
        self._first_ns: list[int] = []
        self._warmup_ns: list[int] = []
        self._step_ns: list[int] = []
        self._waited_ns: list[int] = []
        self._long_blocks: list[BlockDone] = []

    def prepared(self, answer: Prepared) -> None:
        """Take what the member said when its framework was there."""
        self.launch.python = answer.python
        self.launch.phases = list(answer.phases)
        self.launch.threads, self.launch.calibration_start = answer.threads, answer.calibration

    def built(self, answer: Built) -> None:
        """Take the program's build and first step, once."""
        if not self._first_ns:
            self.launch.backend_version = answer.backend_version
            self.launch.phases += answer.phases
            self.launch.data = answer.data
            self.launch.settings = answer.settings
            self._first_ns = [answer.first_step_ns]

    def warmed_up(self, answer: WarmedUp) -> None:
        """Take the warm-up."""
        self.launch.phases.append(answer.phase)
        self.launch.warmup_steps = len(answer.step_ns)
        self._warmup_ns = answer.step_ns

    def block(self, cycle: int, answer: BlockDone) -> None:
        """Take one block."""
        waited_ns = answer.step_ns[answer.lead_in :]
        blocks = self.launch.blocks
        blocks.cycle.append(cycle)
        blocks.begin_ns.append(answer.begin_ns)
        blocks.span_ns.append(answer.span_ns)
        blocks.lead_in.append(answer.lead_in)
        blocks.steps.append(answer.steps)
        blocks.duration_ns.append(answer.duration_ns)
        blocks.median_ns.append(round(float(np.median(waited_ns))) if waited_ns else None)
        if answer.per_wait is not None:
            blocks.waited_steps.append(len(waited_ns))
            blocks.per_wait.append(answer.per_wait)
        for name, difference in answer.counters.items():
            blocks.counters.setdefault(name, []).append(difference)
        self._waited_ns += waited_ns
        self._step_ns += answer.step_ns

    def long_block(self, answer: BlockDone) -> None:
        """Take the block over which energy is measured; its steps are in no other figure."""
        self._long_blocks.append(answer)

    def concluded(self, answer: Concluded) -> None:
        """Take what was known at the program's end."""
        launch = self.launch
        launch.recompiles = answer.recompiles
        launch.phases += answer.phases
        launch.parity, launch.kernels = answer.parity, answer.kernels
        launch.fit, launch.failure = answer.fit, answer.failure
        launch.device_events = answer.device_events

    def finished(self, answer: Finished) -> None:
        """Take what was known at the member's end."""
        self.launch.peak_memory_b = answer.peak_memory_b
        self.launch.peak_device_memory_b, self.launch.device_ids = answer.peak_device_memory_b, answer.device_ids
        self.launch.calibration_end, self.launch.certificate = answer.calibration, answer.certificate

    def sampled(self, samples: Samples | None) -> None:
        """Take what the sampler saw of this launch's blocks."""
        if samples is None:
            return
        if samples.failure is not None:
            self.launch.marks.append(samples.failure)
        blocks = self.launch.blocks
        windows = [(begin, begin + span) for begin, span in zip(blocks.begin_ns, blocks.span_ns, strict=True)]
        summaries: dict[str, SensorSummary] = samples.summaries(windows) if windows else {}
        energy: list[Energy] = []
        for long in self._long_blocks:
            energy += samples.energy(long.begin_ns, long.begin_ns + long.span_ns, long.steps * self._batch)
        self.launch.sensors, self.launch.energy = summaries, energy

    def kept(self) -> KeptLaunch:
        """Return the launch with all its steps."""
        waited_ns = np.asarray(self._waited_ns, np.int64)
        self.launch.p95_ns, self.launch.p99_ns = percentile_ns(waited_ns, 95), percentile_ns(waited_ns, 99)
        return KeptLaunch(launch=self.launch, step_ns=[*self._first_ns, *self._warmup_ns, *self._step_ns])
