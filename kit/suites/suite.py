"""A suite: which cells, which axis they are compared over, how long each is measured. TOML, built in or the user's.

A mistake in a file is named in the user's own words: ``line 7: cells.tasks[0] is "trian"; choose from …``.
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import inspect as types

from kit.backends.program.about import OWN_AXES
from kit.distribution import shipped
from kit.documentation import page
from kit.errors import KitError
from kit.files import read_limited
from kit.nearest import choices
from kit.profile import fields
from kit.profile.cell import AXES, DEFAULT_VARIANT, Feed, Task, Variant, axis_named
from kit.profile.program_source import CommandSource
from kit.profile.schema import FigureName, StepPlan
from kit.workloads.device_operations import OPERATIONS
from kit.workloads.workload_catalog import WORKLOADS, parameters_of

# The largest suite of the kit has 2 kB.
FILE_MAX_B = 1 << 20
DEFAULT_SUITE = "standard"
QUICK_SUITE = "quick"
# Set once for a whole process; cells that differ only in other axes may be programs of one.
UNSHAREABLE = ("backend", "device", "devices", "precision", "threads", "variant")
EXAMPLE = f"{page('reference/suite-file.md')} has an example"
# A variant's name is part of its cells' keys, between slashes.
VARIANT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,39}")

# The Python types that a value of a type may have in TOML, and what to write for it.
TOML_KINDS: dict[type, tuple[type | tuple[type, ...], str]] = {
    types.BoolType: (bool, "true or false"),
    types.IntType: (int, "a whole number"),
    types.FloatType: ((int, float), "a number"),
    types.StrType: (str, "text in quotes"),
    types.LiteralType: (str, "text in quotes"),
    types.ListType: (list, "a list in [ ]"),
    types.DictType: (dict, "a table"),
    types.StructType: (dict, "a table"),
}
# A larger limit is none that a message names.
NAMED_MAX = 10**9
# Longer values are cut in a message.
SHOWN_MAX = 40

TomlPath = tuple[str | int, ...]

CountFrom1 = Annotated[int, msgspec.Meta(ge=1, le=fields.COUNT_MAX)]
BatchFrom1 = Annotated[int, msgspec.Meta(ge=1, le=fields.BATCH_MAX)]
ParameterFrom1 = Annotated[int, msgspec.Meta(ge=1, le=fields.PARAMETER_MAX)]
DevicesFrom1 = Annotated[int, msgspec.Meta(ge=1, le=fields.CPU_MAX)]  # and threads
RoundsFrom1 = Annotated[int, msgspec.Meta(ge=1, le=fields.ROUNDS_MAX)]
UpdatesFrom2 = Annotated[int, msgspec.Meta(ge=2, le=fields.COUNT_MAX)]  # the first is not timed
Seconds = fields.Seconds


class SuiteError(KitError):
    """A suite, a program of it or an option that changes it is not one; or it has no cells."""


def check_choice(kind: str, name: str, known: Sequence[str], unless: str = "") -> None:
    """Raise SuiteError with the choices, and with what to do `unless` one of them fits, if `name` is none of them."""
    if name not in known:
        raise SuiteError(f"no {kind} {name!r}; {choices(name, known, unless)}")


# Each axis of a cell with its field of `Axes`; the first varies slowest.
FIELDS = {
    "device": "devices", "batch": "batches", "precision": "precisions", "feed": "feeds", "threads": "threads",
    "devices": "device_counts", "task": "tasks", "backend": "backends", "compile_mode": "compile_modes",
}  # fmt: skip


class Axes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The cells are the product of these.

    Compile mode "plain" is what a framework does by itself; "default" is the same, but on a GPU a compiled mode.
    """

    workloads: list[str]
    backends: list[str]
    devices: list[str] = msgspec.field(default_factory=lambda: ["cpu"])
    tasks: list[Task] = msgspec.field(default_factory=lambda: ["train", "infer"])
    batches: list[BatchFrom1] = msgspec.field(default_factory=lambda: [128])
    parameters: dict[str, list[ParameterFrom1]] = {}  # of those workloads that have them, as units = [32, 64]
    precisions: list[str] = msgspec.field(default_factory=lambda: ["float32"])
    compile_modes: list[str] = msgspec.field(default_factory=lambda: ["default"])
    feeds: list[Feed] = msgspec.field(default_factory=lambda: ["device"])
    threads: list[DevicesFrom1] = []  # none given: one for each usable CPU
    batches_each: list[BatchFrom1] = []  # samples per step and device, in place of `batches`
    variants: list[str] = []  # none given: all of the suite's
    device_counts: list[DevicesFrom1] = msgspec.field(default_factory=lambda: [1])  # that share a batch
    only_if_named: bool = False  # these cells are planned only if a request names one of their devices


# PyTorch needs up to 0.7 s; most programs are warm after 0.2 s (docs/trust/measurements.md).
WARMUP_LEAST_S, WARMUP_S = 0.1, 1.0


class MeasureTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many rounds, and what a round is; docs/explanation/method.md has the evidence for the defaults.

    Raises:
        ValueError: seconds that are not finite, or no time in a block.
    """

    # The interval of 8 rounds covers at 93 to 95 % even when a run stops as soon as it is narrow enough.
    rounds: RoundsFrom1 = 8
    # With a start of 4 to 8 s, 4 to 8 cycles leave about the same interval after the same time (method.md).
    cycles: RoundsFrom1 = 8
    # Long enough for some steps of most networks, short against the seconds in which a machine's speed changes.
    block_s: Seconds = 0.25
    # A machine's speed changes within a second: variants that alternate sooner share more of it (bench_builds.py). Four
    # turns make a block, and each has a lead-in of a third: after a switch steps take longer for some 20 ms.
    turn_s: Seconds = 0.0625
    # After a switch the first step takes up to twice as long, the next up to 7 % longer; 100 ms gave the same as 20.
    lead_in_s: Seconds = 0.02
    # A warm-up ends between these two, when its own steps are no longer getting faster. One whose length is set has it.
    warmup_least_s: Seconds | None = None  # null: WARMUP_LEAST_S, or as long as `warmup_s`
    warmup_s: Seconds | None = None  # null: WARMUP_S
    warmup_steps: CountFrom1 = 10
    epochs: RoundsFrom1 = 1
    fit_rounds: RoundsFrom1 | None = None  # in which fits are repeated; null: all
    fit_steps: UpdatesFrom2 | None = None  # of a fit at most; null: whole epochs
    ceiling_rounds: RoundsFrom1 | None = None  # in which operations stand beside networks; null: all
    energy_s: Seconds | None = None  # null: as long as the sensors need that are here; 0: no joules
    # Joules of one block say what a network costs; of all rounds, whether two differ.
    energy_rounds: Literal["all", "last"] = "last"
    share: list[str] = []

    def __post_init__(self) -> None:
        for name in ("block_s", "turn_s", "lead_in_s", "warmup_least_s", "warmup_s", "energy_s"):
            if not math.isfinite(getattr(self, name) or 0):
                raise ValueError(f"{name} is {getattr(self, name)}; give seconds, 0 or more")
        if self.block_s <= self.lead_in_s:
            raise ValueError(f"block_s {self.block_s} leaves no time after lead_in_s {self.lead_in_s}; give more")

    def plan(self) -> StepPlan:
        """Return the part that each launch needs, without joules unless they are asked for: no sensor is known here."""
        fields = {name: getattr(self, name) for name in StepPlan.__struct_fields__}
        longest_s = WARMUP_S if self.warmup_s is None else self.warmup_s
        least_s = self.warmup_least_s
        if least_s is None:
            least_s = WARMUP_LEAST_S if self.warmup_s is None else self.warmup_s
        lengths = {"warmup_s": longest_s, "warmup_least_s": least_s}
        return StepPlan(**fields | lengths | {"energy_s": self.energy_s or 0.0})


class Quick(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `--quick` measures in place of the suite's own; null: the general rule (`kit.suites.run_request`)."""

    cells: Axes | list[Axes] | None = None
    rounds: RoundsFrom1 | None = None
    cycles: RoundsFrom1 | None = None
    warmup_s: Seconds | None = None
    warmup_steps: CountFrom1 | None = None
    fit_steps: UpdatesFrom2 | None = None
    share: list[str] | None = None


class TableShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table that a suite answers: a row for each combination of `rows`, under each device its `figures`."""

    rows: list[str]  # axes
    figures: list[FigureName]


class VariantTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[variants.NAME]`` of a suite file."""

    python: str | None = None
    image: str | None = None
    env: dict[str, str] = {}
    slowdown_pct: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0  # injected into every step, to be found


class ProgramTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[programs.NAME]`` of a suite file: a network of the user's own (`kit.suites.programs`), or a command.

    Raises:
        ValueError: it is neither, or both.
    """

    path: str = ""  # my_model.py:function, or package.module:function
    command: CommandSource | None = None

    def __post_init__(self) -> None:
        if bool(self.path) == (self.command is not None):
            raise ValueError("give either path or command")
        if self.command is not None and not self.command.words:
            raise ValueError("the command has no words; give one at least")

    @property
    def text(self) -> str:
        """What runs."""
        if self.command is None:
            return self.path
        every = (self.command.serve, self.command.prepare, self.command.words)
        return " and ".join(shlex.join(words) for words in every if words)


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One suite file. Without `compare`, variants are compared where there are any, else programs, else backends.

    Where there are programs, they are the workloads.
    """

    name: str
    title: str
    compare: list[str] = []
    also_compare: list[str] = []  # axes of further groups, which have cells of the others
    baseline: str | None = None  # value of the compared axis; null: the first
    cells: Axes | list[Axes]  # the cells of all tables, where there are several
    measure: MeasureTable = MeasureTable()
    quick: Quick = Quick()
    variants: dict[str, VariantTable] = {}
    table: TableShape | None = None
    programs: dict[str, ProgramTable] = {}
    folder: str = msgspec.field(default="", name="_folder")  # of the file: paths of programs are relative to it
    sha256: str = msgspec.field(default="", name="_sha256")  # of the file

    def __post_init__(self) -> None:
        workloads = [name for table in self.axes for name in table.workloads if name in WORKLOADS or name in OPERATIONS]
        known = dict.fromkeys([*AXES, *(name for workload in workloads for name in parameters_of(workload))])
        for name in ("compare", "also_compare"):
            msgspec.structs.force_setattr(self, name, [axis_named(axis, known) for axis in getattr(self, name)])
        shared, rows = (*self.measure.share, *(self.quick.share or ())), self.table.rows if self.table else ()
        for name in (*self.compare, *self.also_compare, *shared, *rows):
            if name in shared and name in UNSHAREABLE:
                raise ValueError(f"share: a process cannot be shared over {name!r}, which is fixed when it starts")
            if name not in known:
                raise ValueError(f"no axis {name!r}; {choices(name, known)}")
        for table, names in (("variants", self.variants), ("programs", self.programs)):
            for name in names:
                if not VARIANT_NAME.fullmatch(name):
                    raise ValueError(f"{table}: {name!r} is not a name; use letters, digits and . _ + -")

    @property
    def axes(self) -> list[Axes]:
        """The tables of cells."""
        return self.cells if isinstance(self.cells, list) else [self.cells]

    @property
    def compared(self) -> list[str]:
        """The axes that groups compare over."""
        return self.compare or (["variant"] if self.variants else ["workload"] if self.programs else ["backend"])

    def all_variants(self) -> list[Variant]:
        """Return the variants as workers are started with them; one that stands alone is compared with the default."""
        named = [Variant(name=name, **msgspec.structs.asdict(table)) for name, table in self.variants.items()]
        is_alone = len(named) == 1 and named[0].name != DEFAULT_VARIANT
        return [Variant(name=DEFAULT_VARIANT), *named] if is_alone or not named else named


def builtin_suites() -> list[str]:
    """Return the names of the suites that come with the kit."""
    return sorted(path.stem for path in Path(__file__).parent.glob("*.toml"))


def published_file(suite: str) -> Path | None:
    """Return the published profile of a built-in suite; None where there is none."""
    file = shipped() / "profiles" / "published" / f"{suite}.json"
    return file if file.is_file() else None


def suite_file(name: str) -> Path | None:
    """Return the file that a suite's name stands for, one with a slash or ending in .toml; None: it is built in."""
    return Path(name) if name.endswith(".toml") or "/" in name else None


def was_edited(name: str, sha256: str) -> bool:
    """Return whether a name stands for a file that holds another suite by now; a built-in one is the kit's own."""
    return suite_file(name) is not None and load_suite(name).sha256 != sha256


def load_suite(name: str) -> Suite:
    """Return a built-in suite by name, or a file by path.

    Raises:
        SuiteError: no such suite, unreadable, or not a suite.
    """
    path = suite_file(name)
    if path is None:
        program = f", or measure a program: --program {name}" if name.endswith(".py") else ""
        check_choice("suite", name, builtin_suites(), f", or give the path of a .toml file{program}")
        path = Path(__file__).parent / f"{name}.toml"
    try:
        data = read_limited(path, FILE_MAX_B)
        text = data.decode()
        tables = tomllib.loads(text)
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error.strerror}; give the path of a suite's .toml file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path} is not TOML: {error}; {EXAMPLE}") from None
    programs, cells = tables.get("programs"), tables.get("cells", {})
    if programs and isinstance(programs, dict) and isinstance(cells, dict):
        tables["cells"] = OWN_AXES | {"workloads": list(programs)} | cells
    try:
        suite = msgspec.convert(tables, Suite)
    except msgspec.ValidationError:
        raise SuiteError(f"{path}{_mistake(text, tables, Suite)}; {EXAMPLE}") from None
    return msgspec.structs.replace(suite, folder=str(path.parent), sha256=hashlib.sha256(data).hexdigest())


def _mistake(text: str, document: dict[str, Any], kind: type[msgspec.Struct]) -> str:
    """Return the first mistake of a TOML document that is no `kind`: ``, line 7: measure.rounds is "8"; give …``."""
    path, what = next(_mistakes_in(document, types.type_info(kind), ()), ((), "it is not complete"))
    dotted = "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" if re.fullmatch(r"[\w-]+", key, re.ASCII) else f'."{key}"'
        for key in path
    ).lstrip(".")
    names = [name for name in path if isinstance(name, str)]
    separator = "" if not dotted else " " if what.startswith("is ") else ": "
    return f"{_line_of(text, names[-1]) if names else ''}: {dotted}{separator}{what}"


def _line_of(text: str, key: str) -> str:
    """Return ``, line 7``, which has a key in a table, a heading or a dotted key; empty where several lines have it."""
    has_key = re.compile(rf"^[^#=]*\b{re.escape(key)}\b")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if has_key.search(line)]
    return f", line {lines[0]}" if len(lines) == 1 else ""


def place_in(name: str, key: str) -> str:
    """Return the file of a suite, and the line of it that has a key: ``mine.toml, line 7``."""
    path = suite_file(name)
    return f'suite "{name}"' if path is None else f"{path}{_line_of(read_limited(path, FILE_MAX_B).decode(), key)}"


def _mistakes_in(value: Any, kind: types.Type, path: TomlPath) -> Iterator[tuple[TomlPath, str]]:  # noqa: ANN401 - any TOML
    """Yield the path and the description of each mistake, inner ones first."""
    if isinstance(kind, types.UnionType):
        fitting = [member for member in kind.types if isinstance(value, TOML_KINDS.get(type(member), ((), ""))[0])]
        kind = (fitting or list(kind.types))[0]
    fitting_types, right = TOML_KINDS[type(kind)]
    is_fit = isinstance(value, fitting_types) and isinstance(value, bool) == isinstance(kind, types.BoolType)
    text = "a table" if isinstance(value, dict) else msgspec.json.encode(value).decode()
    shown = text if len(text) <= SHOWN_MAX else f"{text[: SHOWN_MAX - 1]}…"
    if isinstance(kind, types.LiteralType) and value not in kind.values:
        yield path, f"is {shown}; {choices(str(value), list(map(str, kind.values)))}"
    elif not is_fit:
        yield path, f"is {shown}; give {right}"
    elif isinstance(kind, types.IntType | types.FloatType):
        least, most = kind.ge, kind.le
        if (least is not None and value < least) or (most is not None and value > most):
            has_most = most is not None and most < NAMED_MAX
            yield path, f"is {value}; give {least} {f'to {most:.9g}' if has_most else 'or more'}"
    elif isinstance(kind, types.ListType | types.DictType):
        item_kind = kind.item_type if isinstance(kind, types.ListType) else kind.value_type
        for key, item in enumerate(value) if isinstance(value, list) else value.items():
            yield from _mistakes_in(item, item_kind, (*path, key))
    elif isinstance(kind, types.StructType):
        yield from _mistakes_of_table(value, kind, path)


def _mistakes_of_table(table: dict[str, Any], kind: types.StructType, path: TomlPath) -> Iterator[tuple[TomlPath, str]]:
    # Fields that begin with _ are not the user's.
    fields = {field.encode_name: field for field in kind.fields if not field.encode_name.startswith("_")}
    for key, item in table.items():
        if key in fields:
            yield from _mistakes_in(item, fields[key].type, (*path, key))
        else:
            yield (*path, key), f"is no setting; {choices(key, fields)}"
    for name, field in fields.items():
        if field.required and name not in table:
            yield (*path, name), "is missing"
    try:
        msgspec.convert(table, kind.cls)
    except msgspec.ValidationError as error:
        yield path, str(error).rpartition(" - at ")[0] or str(error)
