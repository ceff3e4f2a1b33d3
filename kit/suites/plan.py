"""From a request to the plan of its run, without a look at the machine.

    RunRequest ─► suite in which the request has its say ─► cells ─► groups ─► bundles

cells   the product of the axes and the variants; `kit.suites.groups` has the rest
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from kit.backends.backend_catalog import CATALOG, FRAMEWORKS, has_operations
from kit.backends.program.about import OWN_AXES
from kit.devices import DEVICES
from kit.documentation import page
from kit.errors import KitError
from kit.nearest import choices
from kit.printable import printable_line
from kit.profile.cell import FRAMEWORKS_OWN, Cell, Variant
from kit.profile.instruments import ClockChoice
from kit.profile.program_source import ProgramSource
from kit.profile.schema import Group, SuiteUsed
from kit.stats.estimate import ROUNDS_PRELIMINARY
from kit.suites.commands import commands_given
from kit.suites.groups import plan_groups
from kit.suites.programs import programs_given, sources_of
from kit.suites.run_request import OF_COMMANDS, OPTIONS, RunRequest
from kit.suites.suite import (
    FIELDS,
    QUICK_SUITE,
    Axes,
    MeasureTable,
    ProgramTable,
    Suite,
    SuiteError,
    check_choice,
    load_suite,
    place_in,
    suite_file,
)
from kit.workloads.device_operations import OPERATIONS, is_operation, networks_among
from kit.workloads.workload import Workload
from kit.workloads.workload_catalog import DATASETS, WORKLOADS, parameters_of
from kit.workloads.workload_catalog import workload as workload_of

# On a GPU the default is a compiled mode; "plain" is what each framework does by itself, on a CPU the same.
DEFAULT_COMPILE_MODE, PLAIN_COMPILE_MODE = "default", "plain"
# Options that select among the cells of a suite's tables.
SELECTIONS = ("workloads", *FIELDS.values())
# Several values of these are compared unless something else is asked for; more workloads or tasks are more groups.
SWEPT = ("batch", "threads", "devices", "compile_mode", "feed", "precision")
# This is enough for the mean of steps that do not change over an epoch: half a minute where a step takes 0.3 s.
QUICK_FIT_STEPS = 50
# The best round of a ceiling counts: a second start shows whether the first was slow.
CEILING_ROUNDS = 2
# A round of commands starts in a second, so that more and shorter rounds show more (docs/explanation/method.md).
COMMAND_CYCLES = 4
COMMAND_TURN_S = 0.02
# A terabyte in float32: the kit has no network whose weights are divided over machines.
WEIGHTS_MAX = 2**38
# What a machine has not may be missing from a whole suite.
OF_THE_MACHINE = ("backend", "device", "compile_mode")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is asked for, decided as far as that needs no look at the machine."""

    suite: SuiteUsed  # as yet without data, digests of images, what is skipped, and joules that depend on sensors
    cells: list[Cell]
    baseline: str | None  # value of a compared axis; null: the first
    also_compare: list[str]  # axes of further groups
    energy_s: float | None  # of a long block; null: as long as the sensors need that are here
    backends: tuple[str, ...]  # that are named, and so must be here
    devices: tuple[str, ...]  # kinds that are named
    code_of_file: frozenset[str]  # programs and variants that a suite's file starts, and no option
    data: str
    clock: ClockChoice
    label: str
    names_only: bool
    is_dry: bool  # nothing is downloaded, and nothing of `code_of_file` is started
    options: dict[str, Any]  # that a run keeps until its end

    @property
    def groups(self) -> list[Group]:
        """The groups of its cells."""
        return plan_groups(self.cells, self.suite.compare, self.baseline, self.also_compare)


def plan_of(request: RunRequest, say: Callable[[str], None]) -> Plan:
    """Return the plan of a request.

    Args:
        request: what is asked for.
        say: gets each line that its user should know of: what a file starts, and which axis is compared.

    Raises:
        KitError: no machine could measure it as it is asked for.
    """
    suite = requested_suite(request)
    foreign = _code_of_file(request, suite)
    for line in foreign.values():
        say(line)
    cells = plan_cells(suite, named=request.backends)
    networks = [cell for cell in cells if not is_operation(cell)]
    _check_baseline(request, suite, cells)
    images = [name for name, table in suite.variants.items() if table.image]
    if images and any(program.command is not None for program in suite.programs.values()):
        raise KitError(
            f"variant {images[0]}: a command runs on this machine; make `docker run …` the command of an image"
        )
    if request.ceilings and len(networks) == len(cells):
        names = ", ".join(dict.fromkeys(cell.backend for cell in cells))
        raise KitError(f"--ceilings: {names} has no operations that measure a ceiling; leave it out")
    if not request.compare and (line := _what_is_compared(request, suite, networks)):
        say(line)
    if request.reuse_compiled and (request.hosts > 1 or any(table.image for table in suite.variants.values())):
        where = "several hosts" if request.hosts > 1 else "an image's containers"
        raise KitError(f"--reuse-compiled: {where} share no cache of compilations; leave it out")
    return plan_with(request, suite, cells, code_of_file=foreign)


def _what_is_compared(request: RunRequest, suite: Suite, cells: Sequence[Cell]) -> str:
    """Return the line that says which axes are compared, and which are not although cells have several values there.

    Empty where nothing was given that changes what the suite itself compares, or could.
    """
    given, is_own = _given(request), suite.compare in ([], load_suite(request.suite_name).compare)
    if is_own and not given:
        return ""
    axes = dict.fromkeys([*suite.compared, "backend", *SWEPT, "variant", *request.parameters])
    varying = [axis for axis in axes if len({cell.value(axis) for cell in cells}) > 1]
    compared = [axis for axis in varying if axis in suite.compared]
    apart = [axis for axis in varying if axis not in suite.compared and axis != "compile_mode"]
    if not compared:
        # A backend has no cell for a compile mode that it lacks: what is given may leave nothing to compare.
        return "" if is_own else f"nothing to compare: one {suite.compare[0]} is left"
    if apart:
        together = f"to compare all with each other: --compare {','.join([*compared, *apart])}"
        return f"comparing {', '.join(compared)} at each {', '.join(apart)}; {together}"
    reason = "because you gave several values; --compare AXIS chooses another axis"
    return "" if is_own else f"comparing {', '.join(compared)}, {reason}"


def _given(request: RunRequest) -> dict[str, Sequence[Any]]:
    """Return the values of each axis that may be compared, as far as several are requested."""
    values = {axis: getattr(request, FIELDS[axis]) for axis in ("backend", *SWEPT)} | dict(request.parameters)
    return {axis: given for axis, given in values.items() if len(set(given)) > 1}


def _check_baseline(request: RunRequest, suite: Suite, cells: Iterable[Cell]) -> None:
    """Raise SuiteError where no cell has the baseline of the suite's file."""
    values = sorted({str(cell.value(axis)) for cell in cells for axis in suite.compared})
    if suite.baseline is not None and suite.baseline not in values:
        where = place_in(request.suite_name, "baseline")
        raise SuiteError(f"{where}: baseline is {suite.baseline!r}; {choices(suite.baseline, values)}")


def plan_with(request: RunRequest, suite: Suite, cells: Sequence[Cell], code_of_file: Iterable[str] = ()) -> Plan:
    """Return the plan of these cells of a suite, measured as is requested."""
    measure, precision_pct = suite.measure, request.precision_pct
    # When a compilation pays back is told by programs that are the first of their process, in each round.
    # A command has a process of its own, so that the servers of others are stopped while it is measured.
    has_commands = any(program.command is not None for program in suite.programs.values())
    share = [] if has_commands or "compile_mode" in suite.compared else measure.share
    used = SuiteUsed(
        name=suite.name,
        sha256=suite.sha256,
        compare=suite.compared,
        process_axes=share,
        rounds=measure.rounds if precision_pct is None else ROUNDS_PRELIMINARY,
        precision_pct=precision_pct,
        plan=measure.plan(),
        variants=suite.all_variants(),
        programs=sources_of(suite),
        batch_is_default=bool(request.programs or request.commands)
        and not request.batches
        and suite_file(request.suite_name) is None,
        data={},
        seed=request.seed,
        hosts=request.hosts,
        reuse_compiled=request.reuse_compiled,
    )
    return Plan(
        suite=used,
        cells=list(cells),
        baseline=suite.baseline,
        also_compare=suite.also_compare,
        energy_s=measure.energy_s,
        backends=request.backends,
        devices=request.devices,
        code_of_file=frozenset(code_of_file),
        data=request.data,
        clock=request.clock,
        label=request.label,
        names_only=request.names_only,
        is_dry=request.dry_run,
        options=request.decided(),
    )


def _code_of_file(request: RunRequest, suite: Suite) -> dict[str, str]:
    """Return what a suite's file makes a run start, by the name of the program or variant, each as a line to say.

    Nothing of a suite of the kit, and nothing that the command line names itself.
    """
    file = suite_file(request.suite_name)
    if file is None:
        return {}
    lines = {}
    programs, variants = (
        {} if request.programs or request.commands else suite.programs,
        {} if request.variants else suite.variants,
    )
    for name, program in programs.items():
        lines[name] = f"{file} runs {program.text} as program {name}"
    for name, table in variants.items():
        settings = [f"{kind} {value}" for kind, value in (("python", table.python), ("image", table.image)) if value]
        settings += [f"{variable}={value}" for variable, value in table.env.items()]
        if settings:
            lines[name] = f"{file} runs variant {name} with {', '.join(settings)}"
    return {name: printable_line(line) for name, line in lines.items()}


def named_code(request: RunRequest, begun_with: Mapping[str, object]) -> tuple[dict[str, ProgramSource], list[Variant]]:
    """Return the programs and the variants that a command names which resumes a run that began with these options."""
    begun = str(begun_with.get(OPTIONS["suite"]) or "")
    named = RunRequest(
        suite=request.suite or ("" if suite_file(begun) else begun),
        quick=bool(begun_with.get(OPTIONS["quick"])),
        programs=request.programs,
        variants=request.variants,
        **{name: getattr(request, name) for name in OF_COMMANDS},
    )
    suite = requested_suite(named)
    return sources_of(suite), suite.all_variants()


def requested_suite(request: RunRequest) -> Suite:
    """Return the suite, in its quick form where that is asked for, with what is requested in place of what it says.

    Programs take the place of workloads.

    Raises:
        SuiteError: no such suite, an axis that there is not, or one that programs bring themselves.
    """
    suite = load_suite(request.suite_name)
    selected = {name: list(getattr(request, name)) for name in SELECTIONS if getattr(request, name)}
    tables = suite.axes
    commands = commands_given(request)
    if request.programs or commands:
        programs = _programs_of(request, commands, selected)
        tables = [replace(tables[0], parameters={})]
        suite = replace(suite, table=None, compare=[], baseline=None, programs=programs, folder="")
    elif request.quick and suite.quick.cells is not None:
        tables = suite.quick.cells if isinstance(suite.quick.cells, list) else [suite.quick.cells]
    tables = [table for table in tables if not table.only_if_named or {*table.devices} & {*request.devices}]
    for axis, values in selected.items():
        # A table has those of the values that are its own; where some value is in no table, each has all of them.
        narrowed = [[value for value in values if value in getattr(table, axis)] for table in tables]
        if not all(any(value in left for left in narrowed) for value in values):
            narrowed = [values for _ in tables]
        tables = [replace(table, **{axis: left}) for table, left in zip(tables, narrowed, strict=True) if left]
    measure = _quick(suite) if request.quick else suite.measure
    if suite.programs and all(program.command is not None for program in suite.programs.values()):
        # Nothing compiles in a command: a run or some fill its caches.
        warm_up = {"warmup_s": 0.0, "warmup_least_s": 0.0, "warmup_steps": request.warmup_runs or 1}
        measure = replace(measure, cycles=min(measure.cycles, COMMAND_CYCLES), turn_s=COMMAND_TURN_S, **warm_up)
    if request.energy_s is not None:
        measure = replace(measure, energy_s=request.energy_s)
    if request.rounds is not None:
        measure = replace(measure, rounds=request.rounds)
    name = suite.name if not request.quick or suite.name == QUICK_SUITE else f"{suite.name}-{QUICK_SUITE}"
    compared = list(request.compare) or ([] if request.variants else _swept(suite, request) or suite.compare)
    also = suite.also_compare if compared == suite.compare else []
    tables, variants = _with_parameters(tables, request.parameters), request.variants or suite.variants
    try:
        changed = replace(
            suite, name=name, cells=tables, compare=compared, also_compare=also, variants=variants, measure=measure
        )
    except ValueError as error:
        raise SuiteError(f"{error}; `kit run --help` lists the options") from None
    if changed.baseline is not None and (selected or request.compare or request.variants or request.parameters):
        # Where no cell has the baseline any more, it is the first.
        left = {str(cell.value(axis)) for cell in plan_cells(changed) for axis in changed.compare}
        changed = changed if changed.baseline in left else replace(changed, baseline=None)
    return with_ceilings(changed) if request.ceilings else changed


def _programs_of(
    request: RunRequest, commands: dict[str, ProgramTable], selected: dict[str, list[Any]]
) -> dict[str, ProgramTable]:
    """Return the programs and commands of a request, and select the values that these have on each axis.

    Raises:
        SuiteError: the request gives an axis that they bring themselves, or one name twice.
    """
    are_commands = not request.programs
    for axis in ("workloads", *OWN_AXES, *(("tasks", "batches") if are_commands else ())):
        if axis in selected:
            kind = f"command has no {axis}" if are_commands else f"user program has its own {axis}"
            raise SuiteError(f"a {kind}; leave out {OPTIONS[axis]}")
    programs = programs_given(request.programs) | commands
    if len(programs) < len(request.programs) + len(commands):
        raise SuiteError("a program and a command have one name; rename one: --command NAME='…'")
    selected |= OWN_AXES | {"workloads": list(programs)} | ({"batches": [1]} if are_commands else {})
    return programs


def _swept(suite: Suite, request: RunRequest) -> list[str]:
    """Return the axes of which several values are requested and which the suite does not compare anyway.

    Frameworks are compared where several are named, at each value of other axes. Compile modes are each framework's
    own, so that these are compared with them.
    """
    given = [axis for axis in _given(request) if axis not in suite.compared or axis == "backend"]
    if suite.variants or not any(axis != "backend" for axis in given):
        return []
    return [axis for axis in given if axis in ("backend", "compile_mode")] if "backend" in given else given


def _with_parameters(tables: list[Axes], parameters: Mapping[str, tuple[int, ...]]) -> list[Axes]:
    """Return the tables with the parameters that their workloads have, and those that none has, to be refused."""
    parametric = {*WORKLOADS, *OPERATIONS}
    known = [
        {name for workload in table.workloads if workload in parametric for name in parameters_of(workload)}
        for table in tables
    ]
    unknown = set(parameters).difference(*known)
    return [
        replace(table, parameters=table.parameters | {n: [*v] for n, v in parameters.items() if n in here | unknown})
        for table, here in zip(tables, known, strict=True)
    ]


def _quick(suite: Suite) -> MeasureTable:
    """Return a look in minutes at what the suite measures: fewer rounds, a part of a fit, what its own table says."""
    measure, quick = suite.measure, load_suite(QUICK_SUITE).measure
    general = {
        "rounds": min(measure.rounds, quick.rounds),
        "cycles": min(measure.cycles, quick.cycles),
        "energy_rounds": "last",
        "fit_rounds": 1,
        "fit_steps": min(measure.fit_steps or QUICK_FIT_STEPS, QUICK_FIT_STEPS),
        "share": measure.share or quick.share,
    }
    written = {name: value for name, value in asdict(suite.quick).items() if name != "cells" and value is not None}
    return replace(measure, **general | written)


def with_ceilings(suite: Suite) -> Suite:
    """Return the suite with every operation, in the precisions and on the devices, threads and variants of its cells.

    Programs name no framework: beside them every framework's operations are measured.
    """
    tables = [
        replace(
            axes,
            workloads=list(OPERATIONS),
            parameters={},
            tasks=["infer"],
            feeds=["device"],
            compile_modes=[DEFAULT_COMPILE_MODE],
            **({"backends": FRAMEWORKS, "precisions": ["float32"]} if suite.programs else {}),
        )
        for axes in suite.axes
        if not {*axes.workloads} <= OPERATIONS.keys() - suite.programs.keys()
    ]
    measure = replace(suite.measure, ceiling_rounds=suite.measure.ceiling_rounds or CEILING_ROUNDS)
    return replace(suite, cells=[*suite.axes, *tables], measure=measure) if tables else suite


def plan_cells(suite: Suite, named: Sequence[str] = ()) -> list[Cell]:
    """Return all cells of the suite, in its order, each once; backends that the user `named` have one at least.

    A compile mode that a backend does not have gives no cell for that backend; one that no backend has is an error.

    Raises:
        KitError: a name that is not among its choices, a batch that no data set can fill, a program that is not
            there, or no cell.
    """
    if not suite.axes:
        raise SuiteError(f'suite "{suite.name}" has no cells; give a table [cells]')
    for axes in suite.axes:
        _check(suite, axes)
    sources = sources_of(suite)
    cells: dict[str, Cell] = {}
    for axes in suite.axes:
        for cell in (*_product(suite, axes), *_operations(suite, axes)):
            source = sources.get(cell.workload)
            if source is None or source.takes_task or cell.task == axes.tasks[0]:
                cells.setdefault(cell.key, cell)
    networks = networks_among(cells.values())
    are_operations = all(_are_operations(suite, axes) for axes in suite.axes)
    modes = {name: ", ".join(CATALOG[name].compile_modes) for name in suite.axes[0].backends}
    requested = " or ".join(suite.axes[0].compile_modes)
    if not cells and are_operations:
        having = ", ".join(filter(has_operations, CATALOG))
        raise SuiteError(f"{', '.join(modes)} cannot run operations; choose from {having}")
    if not networks and not are_operations:
        known = "; ".join(f"{name} has {names}" for name, names in modes.items())
        why = f"because no backend has the compile mode {requested}: {known}"
        raise SuiteError(f'suite "{suite.name}" has no cells, {why}')
    backends = {cell.backend for cell in networks or cells.values()}
    for name in named:
        if name not in backends:
            other = f"add one that it has ({modes[name]}), or leave out --backend {name}"
            raise SuiteError(f"{name} has no compile mode {requested}; {other}")
    return list(cells.values())


def _operations(suite: Suite, axes: Axes) -> Iterator[Cell]:
    """Yield the cells of a table's operations, in the backends that have them."""
    names = [name for name in axes.workloads if name in OPERATIONS and name not in suite.programs]
    backends = [name for name in axes.backends if has_operations(name)]
    variants = axes.variants or [variant.name for variant in suite.all_variants()]
    counts: list[int | None] = [*axes.threads] or [None]
    for name, device, threads in product(names, axes.devices, counts):
        operation = OPERATIONS[name]
        precisions = axes.precisions if operation.in_precisions else ["float32"]
        points = operation.points(device, axes.parameters)
        for precision, parameters, backend, variant in product(precisions, points, backends, variants):
            yield Cell(
                workload=name,
                parameters=parameters,
                backend=backend,
                device=device,
                task="infer",
                batch=1,
                precision=precision,
                compile_mode=CATALOG[backend].compile_modes[0],
                feed="device",
                threads=threads,
                variant=variant,
            )


def _product(suite: Suite, axes: Axes) -> Iterator[Cell]:
    """Yield the cells of a table's networks; a parameter that it does not give has its workload's default."""
    variants = {variant.name: variant for variant in suite.all_variants()}
    for workload in axes.workloads:
        if workload in OPERATIONS and workload not in suite.programs:
            continue
        known = {} if suite.programs else parameters_of(workload)
        values: dict[str, Sequence[Any]] = {
            **{name: axes.parameters.get(name, [default]) for name, default in known.items()},
            **{axis: getattr(axes, field) or [None] for axis, field in FIELDS.items()},
            **({"batch": axes.batches_each} if axes.batches_each else {}),
            "variant": axes.variants or list(variants),
        }
        for combination in product(*values.values()):
            fields = dict(zip(values, combination, strict=True))
            if axes.batches_each:
                fields["batch"] *= fields["devices"]
            if fields["devices"] == 1 and not variants[fields["variant"]].all_reduces:
                continue  # one has nothing to average
            cell = Cell(workload=workload, parameters={name: fields.pop(name) for name in known}, **fields)
            entry = CATALOG[cell.backend]
            _check_cell(cell)
            named = {DEFAULT_COMPILE_MODE: entry.default_mode(cell.device), PLAIN_COMPILE_MODE: entry.compile_modes[0]}
            mode = named.get(cell.compile_mode, cell.compile_mode)
            if mode in entry.compile_modes:
                yield replace(cell, compile_mode=mode)


def _are_operations(suite: Suite, axes: Axes) -> bool:
    return {*axes.workloads} <= OPERATIONS.keys() - suite.programs.keys()


def _check(suite: Suite, axes: Axes) -> None:
    """Raise SuiteError where a name is none of its choices, or an axis is empty."""
    programs = {} if _are_operations(suite, axes) else suite.programs
    entries = {name: entry for name, entry in CATALOG.items() if entry.builds_workloads != bool(programs)}
    modes = dict.fromkeys(mode for entry in entries.values() for mode in entry.compile_modes)
    for name, values in asdict(axes).items():
        if not values and name not in ("parameters", "threads", "batches_each", "variants", "only_if_named"):
            raise SuiteError(f'suite "{suite.name}" has no cells, because {name} is empty; give a value')
    if "fit" in axes.tasks and any(variant.slowdown_pct for variant in suite.variants.values()):
        raise SuiteError("slowdown_pct slows only the steps of train and infer; leave out the task fit")
    requested = [entries[name] for name in axes.backends if name in entries]
    networks = [name for name in axes.workloads if name in {*WORKLOADS, *OPERATIONS} - programs.keys()]
    known = [parameter for name in networks for parameter in parameters_of(name)]
    if axes.parameters and not known:
        having, given = ", ".join(axes.workloads), ", ".join(axes.parameters)
        has = "has" if len(axes.workloads) == 1 else "have"
        raise SuiteError(f"{having} {has} no parameters; leave out the parameter {given}")
    choices: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("workload", axes.workloads, programs or [*WORKLOADS, *OPERATIONS]),
        ("backend", axes.backends, entries),
        ("device", axes.devices, DEVICES),
        *((f"precision of {entry.name}", axes.precisions, entry.precisions) for entry in requested),
        *((f"feed of {entry.name}", axes.feeds, entry.feeds) for entry in requested),
        ("compile mode", axes.compile_modes, [DEFAULT_COMPILE_MODE, PLAIN_COMPILE_MODE, *modes]),
        ("variant", axes.variants, [variant.name for variant in suite.all_variants()]),
        ("task of a program", axes.tasks if programs else (), ("train", "infer")),
        (f"parameter of {', '.join(axes.workloads)}", axes.parameters, dict.fromkeys(known)),
    ]
    for kind, names, able in choices:
        for name in names:
            check_choice(kind, name, list(able))
    for kind, device in DEVICES.items():
        for name in {*device.precisions} & {*axes.precisions}:
            if {*axes.devices} != {kind}:
                raise SuiteError(f"precision {name} needs a {kind}; leave it out, or measure only on --device {kind}")
    if FRAMEWORKS_OWN in axes.precisions and "cpu" in axes.devices:
        raise SuiteError(
            f"precision {FRAMEWORKS_OWN} needs a GPU or TPU, as a CPU's default is float32; give another --device"
        )


def _check_cell(cell: Cell) -> None:
    """Raise SuiteError where several devices cannot share the cell's batches, or its network does not fit its data."""
    entry = CATALOG[cell.backend]
    if cell.devices > 1 and cell.device not in entry.data_parallel:
        able = ", ".join(name for name, other in CATALOG.items() if cell.device in other.data_parallel)
        line = f"leave out --devices {cell.devices}, or choose from {able}"
        raise SuiteError(f"{entry.title} measures on only one {cell.device}; {line}")
    if cell.batch % cell.devices:
        line = f"batch {cell.batch} cannot be split over {cell.devices} devices; give a multiple of {cell.devices}"
        raise SuiteError(line)
    if not entry.builds_workloads:
        return
    network = workload_of(cell.workload, cell.parameters)
    if network.data not in DATASETS:
        raise SuiteError(
            f"workload {network.name} needs the data set {network.data!r}, which is not there; "
            f"choose from {', '.join(DATASETS)}, or add it ({page('reference/add-ons.md')})"
        )
    _check_task(cell, network)
    *_, last = network.placed_layers()
    gives = last.layer.output_shape(last.input_shape)
    takes = network.input_shape if network.loss == "reconstruction" else (*network.target_shape, network.classes)
    if gives != takes:
        what = "its input" if network.loss == "reconstruction" else f"classes={network.classes}"
        raise SuiteError(f"workload {network.name}: its last layer gives {gives}, but {what} takes {takes}; change one")
    numbers = sum(math.prod(weight.shape) for placed in network.placed_layers() for weight in placed.weights.values())
    if numbers > WEIGHTS_MAX:
        given = ", ".join(f"{name}={value}" for name, value in cell.parameters.items())
        raise SuiteError(
            f"{network.name} with {given} has {numbers:.1e} weights, more than any memory; give smaller ones"
        )
    samples = DATASETS[network.data].samples("train" if cell.traits.trains else "test")
    if cell.batch > samples:
        line = f"batch {cell.batch} exceeds the {samples} samples that exist to {cell.task} on; give fewer"
        raise SuiteError(line)


def _check_task(cell: Cell, network: Workload) -> None:
    """Raise SuiteError where a task and a network do not go together, or a task and how it is fed."""
    if cell.task == "fit" and network.takes_tokens:
        raise SuiteError(
            f"{network.name} has no fit, as its tokens are made; choose from the tasks train, infer, decode"
        )
    if cell.task != "decode":
        return
    if not network.takes_tokens:
        able = ", ".join(name for name in WORKLOADS if workload_of(name, {}).takes_tokens)
        raise SuiteError(f"{network.name} takes no tokens, so it has nothing to decode; choose from {able}")
    if cell.feed == "host" or cell.devices > 1:
        raise SuiteError("decode keeps its tokens on one device; leave out --feed host and --devices")


def is_whole(suite: Suite, cells: Iterable[Cell]) -> bool:
    """Whether nothing of a suite was left out, besides frameworks and devices: its document's figures go with that."""
    planned = {cell.key_without(OF_THE_MACHINE) for cell in plan_cells(suite)}
    return planned <= {cell.key_without(OF_THE_MACHINE) for cell in cells}
