"""A run under way: a folder next to its output, one file a finished launch, on disk before the next round begins.

    run.json            the profile to be
    run.json.rounds/    run.json: what was decided before the first round; locked while a run writes here
                        r0003-1a2b3c4d5e6f.json: a launch, with its raw steps

The folder goes when the profile is complete. A file that is torn or damaged costs its own round.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shlex
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from kit.environment import COMMAND
from kit.files import read_limited, write_atomically
from kit.profile.cell import Cell, Variant
from kit.profile.consistency import CheckError, check_launch, check_plan, shortened, step_counts
from kit.profile.facts import Identity, State
from kit.profile.instruments import ClockChoice, SensorReport, SensorResponse
from kit.profile.schema import Group, Kit, Launch, SuiteUsed
from kit.profile.store import FILE_MAX_B, ProfileError, Steps, launch_id, read_profile

SUFFIX = ".rounds"
PLAN = "run.json"
STEP_B = 8
# A launch of a day of steps of a millisecond takes about this, as base64.
LAUNCH_MAX_B = 1 << 30


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided before the first round."""

    id: str
    created: str
    kit: Kit
    identity: Identity
    state_before: State
    sensors: list[SensorReport]
    suite: SuiteUsed
    cells: list[Cell]
    groups: list[Group]
    cpus: list[int]
    clock: ClockChoice
    label: str = ""  # the user's name for the run
    responses: list[SensorResponse] = []
    names_only: bool = False  # of environment variables the profile has no values
    options: dict[str, Any] = {}  # of `kit run`, by the name they are typed with: a resumed run takes the same ones


# Options of `kit run` that name code, and what counts of a command.
NAME_CODE = (
    "--program", "--command", "--serve", "--figure", "--better", "--unit", "--prepare", "--shell", "--ignore-failure",
    "--variant",
)  # fmt: skip


class _Code(msgspec.Struct, frozen=True, kw_only=True):
    """The code that a run starts besides the kit's own."""

    programs: dict[str, Any] = {}
    variants: list[Variant] = []


class _Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a plan that says which code the run starts, and how it was named."""

    options: dict[str, Any] = {}
    suite: _Code = _Code()


class SavedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """A finished launch, and every step it made (`kit.profile.store`)."""

    launch: Launch
    step_ns: bytes  # 64-bit integers

    @property
    def steps(self) -> Steps:
        """The steps, (steps,), in nanoseconds."""
        return np.frombuffer(self.step_ns, np.int64)


def _check_saved(saved: SavedLaunch, cells: Mapping[str, Cell], members: Mapping[str, Collection[str]]) -> None:
    """Raise CheckError where a saved launch is not one of its run, or has other steps than it says."""
    launch = saved.launch
    if launch.cell_key not in cells or launch.cell_key not in members.get(launch.group, ()):
        raise CheckError("Expected a cell and a group of the run", "launch.cell_key")
    try:
        check_launch(cells[launch.cell_key], launch)
    except CheckError as error:
        raise error.below("launch") from None
    if len(saved.step_ns) % STEP_B or len(saved.step_ns) // STEP_B not in step_counts(launch):
        raise CheckError("Expected the steps of its blocks", "step_ns")
    if saved.steps.size and saved.steps.min() < 0:
        raise CheckError("Expected `int` >= 0", "step_ns")


def folder_of(profile_path: Path) -> Path:
    """``run.json`` -> ``run.json.rounds``."""
    return profile_path.with_name(profile_path.name + SUFFIX)


def resume_command(profile: Path | str, command: str | None = None) -> str:
    """Return the shell command that resumes an unfinished run, with the code that it runs named anew.

    `command` is what the run was started with; null: KIT_COMMAND, else `kit run`.
    """
    begun = command or os.environ.get(COMMAND) or "kit run"
    return f"{begun} {shlex.join([*_code_named(Path(profile)), '--resume', '--out', str(profile)])}"


def _code_named(path: Path) -> list[str]:
    """Return the words of a run's command that name code: a suite's file, programs and variants."""
    begun = _Begun()
    with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        begun = msgspec.json.decode(read_limited(folder_of(path) / PLAN, FILE_MAX_B), type=_Begun)
    options, code = begun.options, begun.suite
    is_of_suite = [bool(code.programs) and not (options.get("--program") or options.get("--command"))]
    is_of_suite += [variant.names_code and not options.get("--variant") for variant in code.variants]
    words = [str(options.get("SUITE") or "")] if any(is_of_suite) else []
    for option in NAME_CODE if options.get("--command") else ("--program", "--variant"):
        value = options.get(option)
        texts = value if isinstance(value, list) else [value] if isinstance(value, str) and value else []
        words += [option] if value is True else [word for text in texts for word in (option, str(text))]
    return words


def unfinished_refusal(path: Path) -> ProfileError:
    """Return the refusal of a profile whose run is unfinished: what was measured stays."""
    folder = folder_of(path)
    with suppress(OSError):
        lock = os.open(folder / PLAN, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _alive(path, lock)
        finally:
            os.close(lock)
    return ProfileError(
        f"{folder} holds an unfinished run; resume it with `{resume_command(path)}`, or choose another --out"
    )


def _alive(path: Path, lock: int) -> ProfileError:
    """Return the refusal of a profile that a run is writing now, named as the kernel lists the owner of its lock."""
    status, process = os.fstat(lock), ""
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text("ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and words[5] == file and int(words[4]) > 0:
                process = f" (process {words[4]})"
    return ProfileError(
        f"{path} is being written by a run that is alive{process}; wait until it ends, or choose another --out"
    )


class UnfinishedRun:
    """The open, locked folder of a run."""

    def __init__(self, path: Path, plan: RunPlan) -> None:
        """Keep other runs out of the folder until `close`, or until the process ends."""
        self.path, self.plan, self._lock = path, plan, -1
        self._folder = folder_of(path)
        self._open()

    def _open(self) -> None:
        self._lock = os.open(self._folder / PLAN, os.O_RDONLY | os.O_CLOEXEC)
        # Some network file systems keep no locks; measuring is possible there all the same.
        with suppress(OSError):
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refusal = _alive(self.path, self._lock)
                self.close()
                raise refusal from None

    @classmethod
    def begin(cls, path: Path, plan: RunPlan) -> Self:
        """Make the folder next to the profile `path`.

        Raises:
            ProfileError: there is an unfinished run, or it cannot be written.
        """
        folder = folder_of(path)
        try:
            _make(folder, plan)
        except FileExistsError:
            raise unfinished_refusal(path) from None
        except OSError as error:
            with suppress(OSError):
                folder.rmdir()
            raise ProfileError(f"{folder} cannot be written: {error.strerror}; choose another --out") from None
        return cls(path, plan)

    @classmethod
    def reopen(cls, path: Path) -> Self:
        """Resume the run whose folder is next to the profile `path`.

        Raises:
            ProfileError: there is none, another run is writing it, or another kit wrote it.
        """
        if path.is_dir():
            names = ", ".join(sorted(begun.name.removesuffix(SUFFIX) for begun in path.glob(f"*{SUFFIX}")))
            raise ProfileError(
                f"{path}: this is a folder; give the profile of an unfinished run: {names or 'there is none in it'}"
            )
        folder = folder_of(path)
        try:
            plan = msgspec.json.decode(read_limited(folder / PLAN, FILE_MAX_B), type=RunPlan)
            check_plan([cell.key for cell in plan.cells], plan.groups)
        except FileNotFoundError:
            raise ProfileError(f"{path}: {_why_nothing_is_left(path)}") from None
        except OSError as error:
            raise ProfileError(f"{folder} cannot be read: {error.strerror}; resume as the run's own user") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, CheckError) as error:
            why = shortened(str(error))
            raise ProfileError(
                f"{folder} is damaged, or from another version of the kit ({why}); choose another --out"
            ) from None
        return cls(path, plan)

    def restore(self) -> None:
        """Make the folder again that somebody has removed under a run that is alive; its launches are saved anew.

        Raises:
            ProfileError: another run has begun there since.
            OSError: it cannot be written.
        """
        self.close()
        try:
            _make(self._folder, self.plan)
        except FileExistsError:
            raise unfinished_refusal(self.path) from None
        self._open()

    def save(self, saved: SavedLaunch) -> None:
        """Write one finished launch and wait until the disk has it.

        Raises:
            FileNotFoundError: the folder has been removed; another that lies there in its place is not written to.
            OSError: the disk has no room.
        """
        if os.stat(self._folder / PLAN).st_ino != os.fstat(self._lock).st_ino:  # noqa: PTH116 - as fstat beside it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._folder))
        name = hashlib.sha256(launch_id(saved.launch).encode()).hexdigest()[:12]
        write_atomically(self._folder / f"r{saved.launch.round:04}-{name}.json", msgspec.json.encode(saved))

    def launches(self) -> list[SavedLaunch]:
        """Return the launches that are whole, by round. What is damaged is left out, and so runs again."""
        launches = []
        cells = {cell.key: cell for cell in self.plan.cells}
        members = {group.key: group.cells for group in self.plan.groups}
        for file in sorted(self._folder.glob("r[0-9]*.json")):
            with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, CheckError):
                saved = msgspec.json.decode(read_limited(file, LAUNCH_MAX_B), type=SavedLaunch)
                _check_saved(saved, cells, members)
                launches.append(saved)
        return launches

    def close(self) -> None:
        """Let go of the folder; it stays on disk."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def remove(self) -> None:
        """Delete the folder: the profile now holds everything."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self.close()


def _make(folder: Path, plan: RunPlan) -> None:
    """Make the folder of a run, which its user alone may read: a plan has the values of a variant's variables."""
    folder.mkdir(0o700)
    write_atomically(folder / PLAN, msgspec.json.encode(plan))


def _why_nothing_is_left(path: Path) -> str:
    """Return why the run of a profile cannot be resumed that has no folder beside it."""
    if not path.exists():
        return "there is no unfinished run; leave out --resume to start one"
    with suppress(ProfileError):
        if read_profile(path).interrupted:
            return f"it lacks rounds, and {folder_of(path).name} with what it needs is gone; choose another --out"
    return "this run is complete; nothing is left to resume"
