"""From a suite to its cells, the groups they are compared in, and the processes that hold them.

cells   the product of the axes and the variants
group   cells that are alike but for the compared axes: at most four, which take turns in a round
bundle  groups whose cells share workers, measured together
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from kit.backends.backend_catalog import CATALOG, has_operations
from kit.devices import DEVICES
from kit.profile.cell import FRAMEWORKS_OWN, Cell
from kit.profile.schema import PART, Group
from kit.suites.program import sources_of
from kit.suites.suite import FIELDS, Axes, Suite, SuiteError, check_choice
from kit.workloads.device_operations import OPERATIONS, is_operation, networks_among
from kit.workloads.workload_catalog import DATASETS, WORKLOADS, parameters_of
from kit.workloads.workload_catalog import workload as workload_of

DEFAULT_COMPILE_MODE = "default"
# Pairs that lie further apart in a cycle pair worse: 0.75, 3 and 6 s apart, an SD of 1.1 % became 1.7, 2.9 and 3.9 %.
GROUP_CELLS_MAX = 4
# What a machine has not may be missing from a whole suite.
OF_THE_MACHINE = ("backend", "device", "compile_mode")


class WorkerPlan(NamedTuple):
    """The cells of one worker."""

    name: str
    cells: list[Cell]


class Bundle(NamedTuple):
    """Groups that are measured by the same workers."""

    groups: list[Group]
    workers: list[WorkerPlan]


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


def is_whole(suite: Suite, cells: Iterable[Cell]) -> bool:
    """Whether nothing of a suite was left out, besides frameworks and devices: its document's figures go with that."""
    planned = {cell.key_without(OF_THE_MACHINE) for cell in plan_cells(suite)}
    return planned <= {cell.key_without(OF_THE_MACHINE) for cell in cells}


def plan_groups(cells: Sequence[Cell], compare: Sequence[str], baseline: str | None = None) -> list[Group]:
    """Return groups of cells that differ in the axes `compare`, in the order of their first cells.

    A group of more than GROUP_CELLS_MAX is split, each part with the baseline: the cell that has the value `baseline`
    on a compared axis, or the first.

    Raises:
        SuiteError: no cell has that value.
    """
    values = {str(cell.value(axis)) for cell in cells for axis in compare}
    if baseline is not None:
        check_choice("baseline", baseline, sorted(values))
    alike_by_key: dict[str, list[Cell]] = {}
    for cell in cells:
        is_default = cell.compile_mode == CATALOG[cell.backend].compile_modes[0]
        # Operations are compared between backends, whatever networks are compared over.
        over = ["backend"] if is_operation(cell) else compare
        # Between backends a default compile mode is like any other's.
        differing = [*over, "compile_mode"] if "backend" in over and is_default else over
        alike_by_key.setdefault(cell.key_without(differing), []).append(cell)
    groups = []
    for key, alike in alike_by_key.items():
        first = next((cell for cell in alike if baseline in {str(cell.value(axis)) for axis in compare}), alike[0])
        others = [cell for cell in alike if cell is not first]
        step = GROUP_CELLS_MAX - 1
        for part, start in enumerate(range(0, max(1, len(others)), step)):
            taken = [first, *others[start : start + step]]
            part_key = key if part == 0 else f"{key}{PART}{part + 1}"
            in_order = [cell.key for cell in alike if cell in taken]
            groups.append(Group(key=part_key, cells=in_order, baseline=first.key))
    return groups


def plan_bundles(cells: Sequence[Cell], groups: Sequence[Group], share: Sequence[str]) -> list[Bundle]:
    """Return the groups with their workers; those that share a worker are together, in the groups' order.

    Parts of a group have workers of their own, so that no more are alive than take turns; unless a worker holds several
    cells of the group, as the points of a sweep: then it holds those of all parts.
    """
    by_key = {cell.key: cell for cell in cells}
    # What the cells of one worker have in common: operations share theirs.
    names = {
        key: f"operations {cell.key_without(('workload',))}" if is_operation(cell) else cell.key_without(share)
        for key, cell in by_key.items()
    }
    whole: dict[str, set[str]] = {}
    for group in groups:
        whole.setdefault(group.key.partition(PART)[0], set()).update(group.cells)
    bundles: list[Bundle] = []
    for group in groups:
        whole_key, separator, number = group.key.partition(PART)
        is_swept = len({names[key] for key in whole[whole_key]}) < len(whole[whole_key])
        held = {key: names[key] if is_swept else f"{names[key]}{separator}{number}" for key in group.cells}
        sharing = (each for each in bundles if any(worker.name in held.values() for worker in each.workers))
        if (bundle := next(sharing, None)) is None:
            bundles.append(bundle := Bundle([], []))
        bundle.groups.append(group)
        workers = {worker.name: worker for worker in bundle.workers}
        for key, name in held.items():
            if name not in workers:
                bundle.workers.append(workers.setdefault(name, WorkerPlan(name, [])))
            if by_key[key] not in workers[name].cells:
                workers[name].cells.append(by_key[key])
    return bundles


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
            modes = CATALOG[cell.backend].compile_modes
            _check_cell(cell)
            if cell.compile_mode == DEFAULT_COMPILE_MODE:
                yield replace(cell, compile_mode=modes[0])
            elif cell.compile_mode in modes:
                yield cell


def _are_operations(suite: Suite, axes: Axes) -> bool:
    return {*axes.workloads} <= OPERATIONS.keys() - suite.programs.keys()


def _check(suite: Suite, axes: Axes) -> None:
    """Raise SuiteError where a name is none of its choices, or an axis is empty."""
    programs = {} if _are_operations(suite, axes) else suite.programs
    entries = {name: entry for name, entry in CATALOG.items() if entry.builds_workloads != bool(programs)}
    modes = dict.fromkeys(mode for entry in entries.values() for mode in entry.compile_modes)
    for name, values in asdict(axes).items():
        if not values and name not in ("parameters", "threads", "batches_each", "variants"):
            raise SuiteError(f'suite "{suite.name}" has no cells, because {name} is empty; give a value')
    if "fit" in axes.tasks and any(variant.slowdown_pct for variant in suite.variants.values()):
        raise SuiteError("slowdown_pct slows only the steps of train and infer; leave out the task fit")
    requested = [entries[name] for name in axes.backends if name in entries]
    networks = [name for name in axes.workloads if name in {*WORKLOADS, *OPERATIONS} - programs.keys()]
    known = [parameter for name in networks for parameter in parameters_of(name)]
    parameter, nothing = f"parameter of {', '.join(axes.workloads)}", "" if known else "nothing: leave it out"
    choices: list[tuple[str, Iterable[str], Iterable[str]]] = [
        ("workload", axes.workloads, programs or [*WORKLOADS, *OPERATIONS]),
        ("backend", axes.backends, entries),
        ("device", axes.devices, DEVICES),
        *((f"precision of {entry.name}", axes.precisions, entry.precisions) for entry in requested),
        *((f"feed of {entry.name}", axes.feeds, entry.feeds) for entry in requested),
        ("compile mode", axes.compile_modes, [DEFAULT_COMPILE_MODE, *modes]),
        ("variant", axes.variants, [variant.name for variant in suite.all_variants()]),
        ("task of a program", axes.tasks if programs else (), ("train", "infer")),
        (parameter, axes.parameters, dict.fromkeys(known)),
    ]
    for kind, names, able in choices:
        for name in names:
            check_choice(kind, name, list(able), nothing if kind == parameter else "")
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
            f"choose from {', '.join(DATASETS)}, or add it (docs/reference/add-ons.md)"
        )
    *_, last = network.placed_layers()
    gives = last.layer.output_shape(last.input_shape)
    takes = network.input_shape if network.loss == "reconstruction" else (network.classes,)
    if gives != takes:
        what = "its input" if network.loss == "reconstruction" else f"classes={network.classes}"
        raise SuiteError(f"workload {network.name}: its last layer gives {gives}, but {what} takes {takes}; change one")
    samples = DATASETS[network.data].samples("test" if cell.task == "infer" else "train")
    if cell.batch > samples:
        line = f"batch {cell.batch} exceeds the {samples} samples that exist to {cell.task} on; give fewer"
        raise SuiteError(line)
