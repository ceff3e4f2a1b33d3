"""A suite: which cells, and how long each is measured. TOML, built in or the user's own."""

from __future__ import annotations

import hashlib
import math
import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from kit.errors import KitError
from kit.profile.cell import Device, Feed, Task
from kit.profile.launch import StepPlan

DEFAULT_SUITE = "standard"
QUICK_SUITE = "quick"
# kit.stats.steady_state: two segments of ten steps are the least that can be steady.
STEADY_STEPS_MIN = 20

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class SuiteError(KitError):
    """There is no such suite, or its file is not one."""


class Axes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cells are the product of these. Compile mode "default" is the backend's own first one."""

    workloads: list[str]
    backends: list[str]
    devices: list[Device] = msgspec.field(default_factory=lambda: ["cpu"])
    tasks: list[Task] = msgspec.field(default_factory=lambda: ["train", "infer"])
    batches: list[Count] = msgspec.field(default_factory=lambda: [128])
    precisions: list[str] = msgspec.field(default_factory=lambda: ["float32"])
    compile_modes: list[str] = msgspec.field(default_factory=lambda: ["default"])
    feeds: list[Feed] = msgspec.field(default_factory=lambda: ["device"])


class Measure(StepPlan, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many launches a cell gets, and how long each is.

    Raises:
        ValueError: seconds that are not finite, or more steps at least than at most.
    """

    launches: Count
    warmup_s: Seconds
    warmup_steps_min: Annotated[int, msgspec.Meta(ge=0)]
    steady_s: Seconds
    steps_min: Annotated[int, msgspec.Meta(ge=STEADY_STEPS_MIN)]
    steps_max: Count
    energy_s: Seconds | None = None  # in place of steady_s where an energy sensor answers: joules need a long window
    observer_s: Seconds = 0.0  # of the first cell's first launch: blocks of steps with the sampler running and stopped

    def __post_init__(self) -> None:
        for name in ("warmup_s", "steady_s", "energy_s", "observer_s"):
            seconds = getattr(self, name)
            if seconds is not None and not math.isfinite(seconds):
                raise ValueError(f"{name} is {seconds}; give a number of seconds, 0 or more")
        if self.steps_min > self.steps_max:
            raise ValueError(f"steps_min {self.steps_min} is more than steps_max {self.steps_max}")

    def plan(self, *, energy_answers: bool = False) -> StepPlan:
        """The part that the worker needs, on a machine where an energy sensor answers or not."""
        plan = StepPlan(**{name: getattr(self, name) for name in StepPlan.__struct_fields__})
        if energy_answers and self.energy_s is not None:
            return msgspec.structs.replace(plan, steady_s=max(self.steady_s, self.energy_s))
        return plan


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One suite file."""

    name: str
    title: str
    cells: Axes
    measure: Measure
    sha256: str = ""  # of the file


def builtin_suites() -> list[str]:
    """Names of the suites that come with the kit."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.toml"))


def load_suite(name: str) -> Suite:
    """A built-in suite by name, or a file by path (anything with a slash or ending in .toml).

    Raises:
        SuiteError: no such suite, unreadable, or not a suite.
    """
    is_path = name.endswith(".toml") or "/" in name
    path = Path(name) if is_path else Path(__file__).parent / f"{name}.toml"
    if not is_path and name not in builtin_suites():
        raise SuiteError(
            f"no suite {name!r}; choose from {', '.join(builtin_suites())}, or give the path of a .toml file"
        )
    try:
        data = path.read_bytes()
        suite = msgspec.convert(tomllib.loads(data.decode()), Suite)
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read: {error.strerror}; give the path of a suite's .toml file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path}: not TOML: {error}; the README has an example") from None
    except msgspec.ValidationError as error:
        raise SuiteError(f"{path}: not a suite: {error}; the README has an example") from None
    return msgspec.structs.replace(suite, sha256=hashlib.sha256(data).hexdigest())
