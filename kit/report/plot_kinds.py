"""What plots show: flat rows, and the kinds of plots, each an entry of x, y, line and panel over these rows.

    profiles ─► kit compare ─► {"batch": 8, "sample_ns": 4100.0, "line": ("JAX",), "panel": "training", …} ─► plot

A row has the columns of `kit compare --format csv`, and those that `_rows` and a kind add. Nothing here draws.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kit.compare.axes import TableAxes
from kit.compare.ceilings import beside, best_product, named, without_operations
from kit.compare.clean import OTHERS_MOST
from kit.compare.compare import OF_CELLS, compare, compare_within
from kit.compare.metrics import METRICS
from kit.compare.naming import axes_of
from kit.compare.notes import read_run
from kit.compare.ratios import cycle_log_ratios, log_ratios
from kit.compare.rows import Comparison
from kit.compare.sides import are_platforms
from kit.errors import KitError
from kit.nearest import did_you_mean
from kit.profile.cell import DEFAULT_VARIANT, TASKS, Cell
from kit.profile.schema import Profile
from kit.report.records import records
from kit.report.values_in_words import one_line, rate
from kit.report.verdicts_in_words import answer
from kit.workloads.device_operations import MATMUL, networks_among

PlotRow = dict[str, Any]
Scale = Literal["linear", "log"]

SWEPT = ("devices", "batch", "threads", "units", "layers", "width", "depth", "heads", "length")
# A value on these axes says what it is; with others the axis is named, too: "layers 2".
PLAIN_AXES = ("workload", "backend", "device", "precision", "compile_mode", "feed", "variant")
# The interval of a column is that of the step, or of the ratio, to this power.
POWERS = {"ratio": 1, "gain_pct": -1, "samples_per_s": -1, "step_ns": 1, "time_ns": 1, "sample_ns": 1}
LINES_MAX = 8  # nobody can follow more lines in one panel
PANELS_MAX = 40  # a page has no room for more


class PlotRequest(NamedTuple):
    """What is drawn, and from what."""

    kind: str
    profiles: Sequence[tuple[str, Profile]]  # each with its label
    titles: Mapping[str, str]  # name of a backend -> as people write it
    baseline: str | None = None
    metric: str | None = None  # a column of the rows; null, here and below: the kind's own
    title: str | None = None
    axis: Scale | None = None  # of y
    size_in: tuple[float, float] | None = None  # width and height


class Guide(NamedTuple):
    """A grey line of a panel with its words."""

    panel: str
    x: tuple[float, float]
    y: tuple[float, float]
    words: str


class Kind(NamedTuple):
    """Where the rows of a plot come from, which columns it shows, and how."""

    rows: Callable[[PlotRequest], list[PlotRow]]
    x: str
    y: str
    title: str
    note: str
    mark: Literal["line", "point", "bar"]
    axis: Scale = "log"
    shares_y: bool = False  # whether all panels have the same y axis
    alike: float | None = None  # the y of a cell that is like its baseline
    compares: bool = False  # whether a user may choose the baseline
    guides: Callable[[Sequence[PlotRow]], list[Guide]] | None = None  # lines behind the rows, on logarithmic axes


class PlotData(NamedTuple):
    """The rows of one plot, and what is written around them."""

    rows: list[PlotRow]  # each has "panel", "line", "x", "y", "low", "high" and "disturbed"
    guides: list[Guide]
    notes: list[str]
    left_out: list[str]  # a line for each row that is not drawn


def plot_data(request: PlotRequest) -> PlotData:
    """Return what is drawn; KitError where that is nothing, or where there is no such baseline or metric."""
    kind = KINDS[request.kind]
    for label, profile in request.profiles:
        if not profile.measured:
            raise KitError(f"{label} was published, not measured, and has no steps to draw; see kit compare --table")
    rows, y = kind.rows(request), request.metric or kind.y
    columns = {name for row in rows for name, value in row.items() if type(value) in {int, float}}
    if rows and request.metric and y not in columns:
        meant = did_you_mean(y, columns) or "; kit compare --format csv has the names"
        raise KitError(f"--metric {y}: no row has such a number{meant}")
    drawn, left_out = list[PlotRow](), list[str]()
    for row in rows:
        if row["why"] is None and row.get(y):
            low, high = _interval(row, y)
            drawn.append(row | {"x": row[kind.x], "y": row[y], "low": low, "high": high})
        else:
            left_out.append(one_line(f"{row['what']}: {row['why'] or row['failure'] or 'has no number'}"))
    if not drawn:
        why = left_out[0] if left_out else f"no cell has {kind.x if kind.x in SWEPT else 'a step'}"
        raise KitError(f"nothing to draw by {request.kind}: {why}; choose another --kind, or measure more")
    if kind.x in SWEPT and len({row["x"] for row in drawn}) == 1:
        alone = f"every cell has {kind.x} {drawn[0]['x']}, a single point"
        raise KitError(f"nothing to draw by {kind.x}: {alone}; measure several, or draw --kind times")
    panels = list(dict.fromkeys(row["panel"] for row in drawn))
    left_out += [f"{panel}: beyond {PANELS_MAX} panels" for panel in panels[PANELS_MAX:]]
    drawn = [row for row in drawn if row["panel"] in panels[:PANELS_MAX]]
    notes = [kind.note] if kind.note != INTERVALS or any(row["low"] for row in drawn) else []
    if disturbed := [row for row in drawn if row["disturbed"]]:
        taken_pct = max(row["taken_pct"] or 0.0 for row in disturbed)
        much = f"up to {taken_pct:.0f} %" if taken_pct else f"more than {100 * OTHERS_MOST:.0f} %"
        counts = [
            len({(row["panel"], row["x"], row["faint"]) for row in some if "faint" in row})
            for some in (disturbed, drawn)
        ]
        what = f"{counts[0]} of {counts[1]} cycles do not count" if counts[1] else "disturbed"
        notes.append(f"Hollow: {what}, as other programs took {much} of the CPUs.")
    guides = kind.guides(drawn) if kind.guides else []
    return PlotData(drawn, guides, notes, list(dict.fromkeys(left_out)))


def usual_kind(profiles: Sequence[Profile]) -> str:
    """Return the kind of the axis on which the cells have most values.

    Where they have one value on each: `platforms`, where there are several, else `rounds`. Of operations: `roofline`.
    """
    cells = [result.cell for profile in profiles for result in profile.cells]
    counts = {axis: len({cell.value(axis) for cell in cells} - {None}) for axis in SWEPT}
    most = max(SWEPT, key=lambda axis: counts[axis])
    hardware = {(each.identity.hardware_sha256, result.cell.device) for each in profiles for result in each.cells}
    if not networks_among(cells):
        return "roofline"
    return most if counts[most] > 1 else "platforms" if len(hardware) > 1 else "rounds"


def _rows(comparison: Comparison, request: PlotRequest) -> list[PlotRow]:
    """Return a row for each cell of a comparison, in the order of the profiles."""
    keys = [result.cell.key_without(("device",)) for _, profile in request.profiles for result in profile.cells]
    cells, rows = [(group, row) for group in comparison.groups for row in group.rows], list[PlotRow]()
    for (group, row), record in zip(cells, records(comparison), strict=True):
        label = row.side or (comparison.headlines[0].label if len(request.profiles) > 1 else "")
        name, ratio = row.member or row.name, row.versus and row.versus.ratio
        flops, bytes_moved = (row.value(f"reach_{name}") for name in ("flops", "bytes"))
        is_fit, title = not row.cell.in_blocks, [request.titles.get(part, part) for part in group.title]
        added = {
            "row": row,
            "cell": row.cell,
            "label": label,
            "what": f"{label}: {row.cell.key}" if label else row.cell.key,
            "network": "\n".join(_words(row.cell, ["workload", *row.cell.parameters], request)),
            "member": request.titles.get(name, name),
            "baseline": request.titles.get(group.baseline or "", group.baseline),
            "panel": " · ".join(filter(None, [label, *title])),
            "line": (request.titles.get(name, name),),
            "time_ns": record.get("fit_total_ns") if is_fit else record["step_ns"],
            "time_title": "fit" if is_fit else "step",
            "gain_pct": 100 / ratio if ratio else None,
            "intensity": flops / bytes_moved if flops and bytes_moved else None,
            "disturbed": row.value("contention_pct") is not None,
            "taken_pct": row.value("contention_pct"),
            "why": answer(row) if row.blocked else None,
        }
        rows.append(record | added)
    return sorted(rows, key=lambda row: keys.index(row["cell"].key_without(("device",))))


def _interval(row: PlotRow, y: str) -> tuple[float | None, float | None]:
    """Return the ends of the interval of a column; None where it is not known."""
    names = ("ratio", "low", "high") if y in {"ratio", "gain_pct"} else ("step_ns", "step_low_ns", "step_high_ns")
    middle, *ends = (row[name] for name in names)
    if y not in POWERS or None in ends or (y == "time_ns" and row["time_title"] == "fit"):
        return None, None
    low, high = sorted(row[y] * (end / middle) ** POWERS[y] for end in ends)
    return low, high


def _words(cell: Cell, axes: Iterable[str], request: PlotRequest) -> list[str]:
    """Return ``["JAX", "layers 2"]``: the values of a cell on some axes; of the default variant nothing."""
    values = [(axis, cell.value(axis)) for axis in axes]
    return [
        cell.traits.title if axis == "task" else request.titles.get(str(value), str(value))
        if axis in PLAIN_AXES else f"{axis} {value}"
        for axis, value in values
        if value is not None and (axis, value) != ("variant", DEFAULT_VARIANT)
    ]  # fmt: skip


def _in_lines(rows: list[PlotRow], request: PlotRequest, x: Collection[str], first: str = "backend") -> list[PlotRow]:
    """Return the rows with a panel for each task and a line for all in which cells differ, but for axes `x`.

    The axis `first` gives a line its color. Where a panel would have too many lines, other axes are panels, too.
    """

    def count(axes: Iterable[str]) -> int:
        return len({(row["label"], *(row["cell"].value(axis) for axis in axes)) for row in rows})

    panels, lines = ["task"], [first]
    for axis in axes_of([row["cell"] for row in rows]):
        if axis not in {*x, "task"} and count([*lines, axis]) > count(lines):
            lines.append(axis)
    for axis in sorted(lines[1:], key=lambda axis: -count([axis])):
        if count(lines) > LINES_MAX:
            panels.append(axis)
            lines.remove(axis)

    def order(row: PlotRow) -> list[Any]:
        """Sort panels by task, then numbers by size and names by letters; cells without a value come first."""
        values = [row["cell"].value(axis) for axis in panels[1:]]
        return [list(TASKS).index(row["task"]), *((value is not None, value or 0) for value in values)]

    rows.sort(key=order)
    for row in rows:
        row["panel"] = " · ".join(_words(row["cell"], panels, request))
        row["line"] = (*_words(row["cell"], lines, request), *filter(None, [row["label"]]))
    return rows


def _cells(request: PlotRequest) -> list[PlotRow]:
    """Return the cells of every profile but its operations, with a panel for each group."""
    within = [compare_within(label, without_operations(profile)) for label, profile in request.profiles]
    return [row for comparison in within for row in _rows(comparison, request)]


def _steps(rows: Iterable[PlotRow]) -> list[PlotRow]:
    return [row for row in rows if row["task"] != "fit" and row["batch"] > 0]


def _swept(request: PlotRequest) -> list[PlotRow]:
    """Return a line over the values of an axis.

    Over devices, scaling is strong in a panel for each batch, and weak in one for each batch of a device.
    """
    axis = request.kind
    rows = sorted((row for row in _steps(_cells(request)) if (row.get(axis) or 0) > 0), key=lambda row: row[axis])
    rows = _in_lines(rows, request, {axis, "batch"} if axis == "devices" else {axis})
    if axis != "devices" or len({row["batch"] for row in rows}) <= 1:
        return rows
    rows = [
        *(row | {"panel": f"{row['panel']} · batch {row['batch']}"} for row in rows),
        *(row | {"panel": f"{row['panel']} · batch {row['batch'] // row['devices']} a device"} for row in rows),
    ]
    points = Counter(panel for panel, _ in {(row["panel"], row["devices"]) for row in rows})
    scaling = {row["what"] for row in rows if points[row["panel"]] > 1}
    return [row for row in rows if points[row["panel"]] > 1 or row["what"] not in scaling]


def _runs(request: PlotRequest) -> list[PlotRow]:
    runs = [read_run(label, without_operations(profile)) for label, profile in request.profiles]
    if request.kind == "platforms" and not are_platforms(runs):
        raise KitError("nothing to draw: all ran on one machine and device; give another profile, or --kind times")
    return _rows(compare(runs, baseline=request.baseline, explain=True), request)


def _platforms(request: PlotRequest) -> list[PlotRow]:
    rows = _runs(request)
    panels = ["task", "batch"] if len({row["batch"] for row in rows}) > 1 else ["task"]
    for row in rows:
        row["panel"] = " · ".join(_words(row["cell"], panels, request))
        row["question"], row["line"] = f"{row['network']}\n{row['member']}", (row["label"],)
    return rows


def _gains(request: PlotRequest) -> list[PlotRow]:
    """Return what is compared with another device or profile."""
    (label, first), *others = request.profiles
    devices = list(dict.fromkeys(result.cell.device for result in first.cells))
    if not others and len(devices) == 1:
        raise KitError("a gain needs two measured profiles, or one profile of two devices; give a second profile")
    if others or "device" not in first.suite.compare:
        every = _runs(request)
    else:
        # The devices took turns. A cell that the baseline's device did not measure has no gain.
        run, base = read_run(label, without_operations(first)), request.baseline or devices[0]
        every = _rows(compare([run], axes=TableAxes(columns=["device"]), baseline=base), request)
        every = [row for row in every if row["baseline"] == base]
    taken_pct = {row["cell"].key_without(("device",)): row["taken_pct"] for row in every if row["is_baseline"]}
    rows = sorted((row for row in _steps(every) if not row["is_baseline"]), key=lambda row: row["batch"])
    sides, has_batches = {row["label"] for row in rows}, len({row["batch"] for row in rows}) > 1
    for row in rows:
        row["setting"] = row["batch"] if has_batches else row["network"]
        row["label"] = row["label"] if len(sides) > 1 else ""
        if (base_pct := taken_pct.get(row["cell"].key_without(("device",)))) is not None:
            row |= {"disturbed": True, "taken_pct": max(base_pct, row["taken_pct"] or 0.0)}
    shown = {"batch"} if has_batches else {"workload", *(name for row in rows for name in row["cell"].parameters)}
    rows = _in_lines(rows, request, {"device", *shown})
    return [row | {"panel": " · ".join([row["panel"], *(sides if len(sides) == 1 else [])])} for row in rows]


def _rounds(request: PlotRequest) -> list[PlotRow]:
    """Return the ratio of each cell to its baseline in every cycle, in every round, and in the whole run."""
    rows, step = list[PlotRow](), METRICS["step_ns"]
    for label, profile in request.profiles:
        networks = without_operations(profile)
        run, with_all_cycles = read_run(label, networks), read_run(label, networks, all_cycles=True)
        cells = _rows(compare([run], axes=OF_CELLS, baseline=request.baseline), request)
        samples = [run.sample_of(cell["group"], cell["row"].cell_key) for cell in cells]
        bases = {cell["group"]: sample for cell, sample in zip(cells, samples, strict=True) if cell["is_baseline"]}
        rows += [cell | {"ratio": None, "order": (0, 0)} for cell in cells if cell["step_ns"] is None]
        for index, cell in enumerate(cells):
            pair = samples[index], bases[cell["group"]]
            whole = [with_all_cycles.sample_of(cell["group"], sample.cell_key) for sample in pair]
            logs, cycles = log_ratios(step, *whole), cycle_log_ratios(step, *whole)
            if cell["row"].versus is None or not logs:
                continue
            counting, clean = log_ratios(step, *pair), cycle_log_ratios(step, *pair)
            logs |= counting
            # Where others disturbed every round, none of them counts.
            together = pair[1].cell_group
            if together is not None and together.is_disturbed(*(sample.cell_key for sample in pair)):
                counting = {}
            cell |= {"taken_pct": None, "disturbed": not counting}
            for number, log in logs.items():
                in_round = cell | {"round": str(number + 1), "order": (number, index), "low": None, "high": None}
                for count, (cycle, cycle_log) in enumerate(cycles.get(number, {}).items(), 1):
                    counts = number in counting and cycle in clean.get(number, {})
                    shift = count / (len(cycles[number]) + 1) - 0.5
                    rows.append(in_round | {"ratio": math.exp(cycle_log), "disturbed": not counts, "faint": shift})
                rows.append(in_round | {"ratio": math.exp(log), "disturbed": number not in counting})
            rows.append(cell | {"round": "all", "order": (sys.maxsize, index)})
    if not any(row["ratio"] for row in rows):
        raise KitError("nothing to draw by rounds: no group has two cells with a number; draw --kind times or gain")
    return sorted(rows, key=lambda row: row["order"])


def _roofline(request: PlotRequest) -> list[PlotRow]:
    """Return FLOP/s, a panel for each framework and device, with the ceilings of its own run.

    Points are networks; of a run of operations alone, the matrix products.
    """
    rows: list[PlotRow] = []
    for label, profile in request.profiles:
        run, are_alone = read_run(label, profile), not networks_among(result.cell for result in profile.cells)
        ceilings = run.ceilings
        for row in _rows(compare([run], axes=OF_CELLS), request):
            here = beside(row["cell"], ceilings)
            best = {roof.cell.precision: best_product(roof.cell, here) for roof in named("matmul", here)}
            row |= {"slopes": named("triad", here), "roofs": list(best.values())}
            if not row["slopes"] or not row["roofs"]:
                row["why"] = "no ceiling was measured"
            elif are_alone and row["cell"].workload == MATMUL.name:
                # A product of n x n matrices moves at least three of them, of 4 bytes each or of 2.
                row["intensity"] = row["n"] / (6 if row["precision"] == "float32" else 3)
            elif row["failure"] is None and not row["intensity"]:
                row["why"] = "its FLOPs are unknown"
            if not row["row"].is_operation or row["intensity"]:
                rows.append(row)
    if not any(row["slopes"] and row["roofs"] for row in rows):
        which = ", ".join(label for label, _ in request.profiles)
        raise KitError(f"nothing to draw: no ceilings in {which}; measure with kit run --ceilings")
    where = ["backend", "device", "threads", "variant"]
    for row in (rows := _in_lines(rows, request, [*where, "compile_mode", "feed"], "workload")):
        row["panel"] = " · ".join([*_words(row["cell"], where, request), *filter(None, [row["label"]])])
        row["line"] = (*row["line"][: len(row["line"]) - bool(row["label"])], row["cell"].traits.title)
    return rows


def _ceilings(rows: Sequence[PlotRow]) -> list[Guide]:
    """Return the lines of what was measured to be possible: level products, and triads that rise to them."""
    panels = {row["panel"]: row for row in rows}
    ridges = [roof.rate / slope.rate for row in panels.values() for roof in row["roofs"] for slope in row["slopes"]]
    low, high = min([min(ridges) / 8, *(row["x"] for row in rows)]), max([*ridges, *(row["x"] for row in rows)]) * 1.5
    guides = []
    for panel, row in panels.items():
        roofs, slopes = (sorted(row[name], key=lambda ceiling: ceiling.rate) for name in ("roofs", "slopes"))
        for roof in roofs:
            words = f"{rate(roof.rate, 'FLOP/s')} {roof.cell.precision}"
            guides.append(Guide(panel, (roof.rate / slopes[-1].rate, high), (roof.rate, roof.rate), words))
        for slope in slopes:
            ridge, words = roofs[-1].rate / slope.rate, f"{rate(slope.rate, 'B/s')} {slope.name}"
            guides.append(Guide(panel, (low, ridge), (slope.rate * low, slope.rate * ridge), words))
    return guides


INTERVALS = "Intervals: 95 % over the rounds of one run, with the machine's drift. kit compare decides what differs."
GAIN = (
    "Gain: time of the baseline ÷ time of the other; above 100 % the other is faster. Intervals: those of kit compare."
)
ROUNDS = "Faint: cycles. Clear: rounds. All: the whole run, with the interval of kit compare. Below 1 is faster."
ROOFLINE = (
    "Lines: the framework's best block in this run: matrix products by precision, triads on small and large arrays. "
    "Points: a network's FLOP/s, against its FLOPs per byte that a step must move."
)
KINDS = {
    "times": Kind(_cells, "member", "time_ns", "Step times", INTERVALS, "bar", "linear"),
    "rounds": Kind(_rounds, "round", "ratio", "Ratio of times in each round", ROUNDS, "point", alike=1, compares=True),
    **{axis: Kind(_swept, axis, "step_ns", f"Step time by {axis}", INTERVALS, "line", shares_y=True) for axis in SWEPT},
    "batch": Kind(_swept, "batch", "sample_ns", "Time per sample by batch", INTERVALS, "line", shares_y=True),
    "devices": Kind(_swept, "devices", "samples_per_s", "Throughput by devices", INTERVALS, "line", shares_y=True),
    "platforms": Kind(_platforms, "question", "time_ns", "Platforms", INTERVALS, "point", compares=True),
    "gain": Kind(_gains, "setting", "gain_pct", "Gain", GAIN, "line", shares_y=True, alike=100, compares=True),
    "roofline": Kind(
        _roofline, "intensity", "reach_rate", "Roofline", ROOFLINE, "point", shares_y=True, guides=_ceilings
    ),
}
