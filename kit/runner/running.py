"""A run, from its plan to its profile, and where that goes.

begin ─► plan on disk ─► round ─► its launches on disk ─► round … ─► profile ─► folder removed
                           │ Ctrl-C, budget, full disk
resume ◄───────────────────┘    the folder stays; a profile of the whole rounds is written, too, if it can be
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

import numpy as np

from kit.clock import now_ns
from kit.compare.clean import count_blocks
from kit.errors import KitError
from kit.files import name_of
from kit.fingerprint.machine_state import state
from kit.fingerprint.private import published
from kit.profile.schema import SCHEMA, CellResult, Launch, Profile, StateSpan
from kit.profile.store import Steps, launch_id, timed_steps, write_profile
from kit.profile.unfinished import RunPlan, SavedLaunch, UnfinishedRun, folder_of, resume_command, unfinished_refusal
from kit.runner.interrupt import StopFlag
from kit.runner.plan_ahead import is_look, look_ahead
from kit.runner.resumable import check_code, check_options, check_resumable, without_counters
from kit.runner.round import Context, run_round
from kit.runner.round_worker import phase_limit_s
from kit.runner.rounds_left import failed_cells, lost_with, next_round, proved_cells, repeats_to_come
from kit.runner.target import allocated_hosts
from kit.runner.worker_processes import Asked, Ranks
from kit.runner.worker_spec import WorkerSpec, compile_cache_folder, make_compile_cache, usable_cpus
from kit.sensors.nvml import measured_lags_ns
from kit.stats.modes_and_trends import percentile_ns
from kit.suites.groups import Bundle
from kit.workloads.workload_catalog import resolve_data

if TYPE_CHECKING:
    from kit.runner.progress import RunProgress
    from kit.suites.run_request import RunRequest


PERCENTILES = (50, 95, 99)


def profile_path(out: str | None, suite: str, run_id: str, created: str, *, replace: bool = False) -> Path:
    """Return the file to write: `out` itself, or ``<suite>-<UTC time>-<id>.json`` in the folder `out` (default: here).

    With `replace` a file may be there: it is replaced when the first profile of the run is written.

    Raises:
        KitError: the file is there already, an unfinished run is, or its folder is not.
    """
    name = f"{name_of(suite)}-{datetime.fromisoformat(created):%Y%m%dT%H%M%SZ}-{run_id[:8]}.json"
    path = Path(out) if out else Path(name)
    try:
        if out and (path.is_dir() or out.endswith("/")):
            path /= name
        if path.name in ("", ".."):
            raise KitError(f"{path} is a folder; name a file, such as --out run.json")
        if os.path.lexists(folder_of(path)):
            raise unfinished_refusal(path)
        if os.path.lexists(path) and not replace:
            raise KitError(f"{path}: this file exists; choose another --out (`kit run --force` replaces it)")
        if not path.parent.is_dir():
            raise KitError(f"{path.parent}: the folder does not exist; create it, or choose another --out")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise KitError(f"{path.parent}: this folder is not writable for you; choose another --out")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise KitError(f"{path} cannot be created: {why}; choose another --out") from None
    return path


def check_out(out: str, *, replace: bool) -> None:
    """Raise KitError where `profile_path` will: before anything is downloaded."""
    profile_path(out, "suite", "unplanned", datetime.now(UTC).isoformat(), replace=replace)


class RunUnderWay:
    """A run under way, its folder open.

    Attributes:
        launches: that are on disk.
        rounds_done: whole ones.
        rounds_s: seconds that each round took that was measured now.
    """

    def __init__(self, kept: UnfinishedRun, plan: RunPlan) -> None:
        self.path = kept.path
        self.plan = plan
        self.launches: list[Launch] = []
        self.rounds_s: list[float] = []
        self._steps: dict[str, Steps] = {}
        for launch in kept.launches():
            self._take(launch)
        following = next_round(plan, self.launches, 0)
        self.rounds_done = plan.suite.rounds if following is None else following[0]
        self.ended_by_budget = False  # though more rounds were wanted
        self._kept = kept

    @classmethod
    def begin(cls, path: Path, plan: RunPlan) -> Self:
        """Open a new folder beside `path`; ProfileError where an unfinished run is kept."""
        return cls(UnfinishedRun.begin(path, plan), plan)

    @classmethod
    def resume(cls, path: Path, request: RunRequest, options: Mapping[str, object] = MappingProxyType({})) -> Self:
        """Resume the run whose folder lies beside `path`.

        Args:
            path: of its profile.
            request: what is typed now; it names all code that runs but the kit's own.
            options: those of `kit run` that are given again.

        Raises:
            ProfileError: there is none, or another run is writing it.
            KitError: it was begun with other options, or on another machine, software or CPUs; KIT_PHASE_LIMIT_S is no
                number, or KIT_GPU_FILE no profile of a self-test.
            DataError: its data is not here: every cell would fail for good.
        """
        phase_limit_s()  # refused before a worker runs
        measured_lags_ns()
        kept = UnfinishedRun.reopen(path)
        try:
            check_options(kept.plan, options)
            check_code(path, kept.plan, request)
            check_resumable(kept.plan, usable_cpus())
            for name, used in kept.plan.suite.data.items():
                resolve_data(used, name)
        except KitError:
            kept.close()
            raise
        return cls(kept, without_counters(kept.plan))

    @property
    def failed(self) -> list[Launch]:
        """The first failed launch of each cell that failed."""
        failed = failed_cells(self.launches) | {launch.cell_key for launch in self.lost}
        first = {launch.cell_key: launch for launch in reversed(self.launches) if launch.failure is not None}
        return [
            launch for launch in self.launches if first.get(launch.cell_key) is launch and launch.cell_key in failed
        ]

    @property
    def lost(self) -> list[Launch]:
        """The launches that failed with another host: a resumed run makes them again."""
        return [launch for launch in self.launches if lost_with(launch) is not None]

    def run(
        self,
        progress: RunProgress,
        stop: StopFlag,
        budget_s: float | None = None,
        start: Callable[[WorkerSpec, StopFlag], Asked] = Ranks,
        *,
        replaces: bool = False,
    ) -> Profile:
        """Run what remains and write the profile. Past `budget_s` no further round begins.

        A file that another program has put there meanwhile stays, unless this run `replaces` any.

        The folder stays then, and where launches were lost with a host.

        Raises:
            KeyboardInterrupt: after the profile of the whole rounds is written; the folder stays for `resume`.
            KitError: the disk is full, the folder is gone, a worker cannot be started, or hosts are wanted that are not
                here; what had finished is kept.
        """
        hosts = allocated_hosts(self.plan.suite.hosts)
        bounded = budget_s is not None and budget_s < math.inf  # nor NaN, which click lets pass
        deadline_ns = now_ns() + int((budget_s or 0) * 1e9) if bounded else None
        try:
            complete = self._rounds(Context(self.plan, start, progress, stop, {}, {}, {}, hosts=hosts), deadline_ns)
            profile = self._write(interrupted=not complete, replaces=replaces)
        except (KeyboardInterrupt, OSError, KitError) as error:
            is_interrupt = isinstance(error, KeyboardInterrupt)
            # A profile that --force is to replace does not go for one without a round.
            if self.rounds_done or (is_interrupt and not self.path.exists()):
                with suppress(OSError):
                    self._write(interrupted=True, replaces=replaces)
            self._kept.close()
            if is_interrupt:
                raise
            what = str(error)
            if isinstance(error, FileExistsError):
                what = f"{self.path}: this file was made during the run; move it elsewhere"
            elif isinstance(error, OSError):
                what = f"{error.filename or self.path}: {error.strerror or error}; fix this"
            raise KitError(f"{what}, then resume with `{resume_command(self.path)}`") from error
        if complete:
            self._kept.remove()
            shutil.rmtree(compile_cache_folder(self.plan), ignore_errors=True)
        else:
            self._kept.close()
        return profile

    def _rounds(self, context: Context, deadline_ns: int | None) -> bool:
        """Return whether all rounds are done; past the deadline, or with a host lost, they may not be."""
        begun = False
        has_budget = deadline_ns is not None
        while (following := next_round(self.plan, self.launches, self.rounds_done, has_budget=has_budget)) is not None:
            number, shared = following
            if begun and deadline_ns is not None and now_ns() >= deadline_ns:
                self.ended_by_budget = True
                # What follows the planned rounds is for a precision, or in place of rounds that others disturbed.
                return number >= self.plan.suite.rounds and not self.lost
            if (has_budget or self.plan.suite.precision_pct is not None) and (is_look(number) or not begun):
                context = self._looked_ahead(context, shared, deadline_ns)
            begun, begin_ns = True, now_ns()
            context.progress.round_begins(number, shared)
            if self.plan.suite.reuse_compiled:
                if number == 0:  # a first round that is measured again compiles again
                    shutil.rmtree(compile_cache_folder(self.plan), ignore_errors=True)
                make_compile_cache(self.plan)
            context = context._replace(proved=proved_cells(self.launches, number))
            for groups in shared:
                for kept in run_round(context, groups, number):
                    self._keep(kept)
            self.rounds_done = number + 1
            self.rounds_s.append((now_ns() - begin_ns) / 1e9)
            round_launches = [launch for launch in self.launches if launch.round == number]
            repeats = repeats_to_come(self.plan, self.launches, self.rounds_done)
            context.progress.round_done(number, round_launches, repeats)
        return not self.lost

    def _looked_ahead(self, context: Context, shared: Sequence[Bundle], deadline_ns: int | None) -> Context:
        """Return the context with the cycles of the rounds to come, and say what is foreseen."""
        left_s = None if deadline_ns is None else max(0.0, (deadline_ns - now_ns()) / 1e9)
        ahead = look_ahead(self.plan, shared, self.launches, self.rounds_s, left_s)
        if ahead is None:
            return context
        context.progress.looked_ahead(ahead)
        return context._replace(cycles=ahead.cycles)

    def _keep(self, kept: SavedLaunch) -> None:
        """Take a launch and write it to the disk, where others may have removed the folder in the meantime."""
        self._take(kept)
        try:
            self._kept.save(kept)
        except FileNotFoundError:
            self._kept.restore()
            for launch in self.launches:
                self._kept.save(SavedLaunch(launch=launch, step_ns=self._steps[launch_id(launch)].tobytes()))

    def _take(self, kept: SavedLaunch) -> None:
        """A round that was not whole is measured again: the later launch counts."""
        name = launch_id(kept.launch)
        self.launches = [launch for launch in self.launches if launch_id(launch) != name] + [kept.launch]
        self._steps[name] = kept.steps

    def _write(self, *, interrupted: bool, replaces: bool) -> Profile:
        plan = self.plan
        certificates = (launch.certificate for launch in self.launches)
        launches_by_cell: dict[str, list[Launch]] = {cell.key: [] for cell in plan.cells}
        for launch in sorted(self.launches, key=lambda launch: (launch.round, launch.group)):
            launches_by_cell[launch.cell_key].append(launch)
        profile = Profile(
            schema=SCHEMA,
            id=plan.id,
            created=plan.created,
            label=plan.label,
            kit=plan.kit,
            identity=plan.identity,
            state=StateSpan(before=plan.state_before, after=state()),
            clock=next((certificate for certificate in certificates if certificate is not None), None),
            sensors=plan.sensors,
            responses=plan.responses,
            suite=plan.suite,
            groups=plan.groups,
            cells=[CellResult(key=cell.key, cell=cell, launches=launches_by_cell[cell.key]) for cell in plan.cells],
            interrupted=interrupted,
        )
        _add_percentiles(profile, self._steps)
        profile = published(profile, names_only=plan.names_only)
        write_profile(self.path, profile, self._steps, replaces=replaces, is_checked=True)
        return profile


def _add_percentiles(profile: Profile, steps: Mapping[str, Steps]) -> None:
    """Add the percentiles of each cell's steps, of all launches together: one alone has few where steps are long."""
    table, _ = count_blocks(profile.cells, profile.suite.plan.cycles)
    for result in profile.cells:
        every = {launch_id(launch): launch for launch in result.launches if launch.gave_number}
        figures = [launch for launch in table.by_cell[result.key] if launch.gives_figures]
        cycles = {launch_id(launch.record): launch.counting.cycle for launch in figures}
        clean, whole = (
            [timed_steps(every[name], steps[name], cycles_used) for name, cycles_used in known.items()]
            for known in (cycles, dict.fromkeys(every))
        )
        (result.p50_ns, result.p95_ns, result.p99_ns), all_ns = _percentiles_ns(clean), _percentiles_ns(whole)
        if cycles != {name: launch.blocks.cycle for name, launch in every.items()}:
            result.all_cycles_ns = all_ns


def _percentiles_ns(steps: Sequence[Steps]) -> list[int | None]:
    together = np.concatenate([*steps, np.array([], np.int64)])
    return [percentile_ns(together, percent) for percent in PERCENTILES]
