"""What has to be said beside the tables, each once, and the headline of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import median

from kit.compare.bound_threads import A_CPU_EACH
from kit.compare.clean import CPUS_MEAN, CleanRounds
from kit.compare.comparability import agreements
from kit.compare.contradictions import first_against_mode, left_out
from kit.compare.joules import HOST, refusals
from kit.compare.metrics import short_name, usual_metric
from kit.compare.naming import axis_values
from kit.compare.rows import BOUND_THREADS, SAME_CODE, GroupRows, Headline, Note, Row, UsedDevice
from kit.compare.runs import Run, run_of
from kit.compare.table import BlockTable
from kit.devices import DEVICES
from kit.profile.cell import NOT_RECORDED, Cell
from kit.profile.facts import Identity
from kit.profile.fields import Reason, Value, reason
from kit.profile.schema import FAILED_RUNS, SYNTHETIC, CellResult, Profile
from kit.stats.estimate import ROUNDS_FOR_VERDICT, ROUNDS_PRELIMINARY
from kit.stats.sessions import SESSIONS_FOR_SPREAD, SESSIONS_SD
from kit.workloads.device_operations import networks_among

# How far sensors of GPUs were off external meters (docs/explanation/energy.md). No such range is known for processors.
GAIN_LOW_PCT, GAIN_HIGH_PCT = -8, 13
# Notes on cycles, of which a run has one each, and on runs of a command.
ON_CYCLES = (
    "cycles_left_out", "no_clean_round", "no_round_alone", "no_round_counts", "disturbed_cycles_count", "blocks_cut",
    "runs_failed",
)  # fmt: skip
# What disturbs a block by taking CPUs.
OF_CPUS = {"cpus", CPUS_MEAN}
# "sha256:" and what tells images apart, as `docker images` shows it.
DIGEST_SHOWN = len("sha256:") + 12

# XLA's debug_options_flags.cc: off by default; NVIDIA's images of JAX set it.
XLA_OVERLAPS = "--xla_gpu_enable_latency_hiding_scheduler=true"


def note(code: str, because: Reason | None = None, /, **values: Value) -> Note:
    """Return a note by its code and values; `because`: why it is so."""
    return Note(what=Reason(code=code, values=values), because=because)


def read_run(label: str, profile: Profile, by: str = "", *, all_cycles: bool = False) -> Run:
    """Return a profile as samples, with its headline and what must be said of it; arguments as of `run_of`.

    Where no metric is named, its cells are compared by `usual_metric`.
    """
    run = run_of(label, profile, by or usual_metric(profile.suite), all_cycles=all_cycles)
    run.headline = headline_of(label, profile, run.table)
    run.notes = [
        *_figure_notes(run),
        *run_notes(label, profile),
        *left_out_notes(label, run.rounds),
        *cut_notes(label, run.table),
        *_failed_run_notes(label, run.table),
        *_refusal_notes(run, f" · {label}"),
    ]
    return run


def headline_of(label: str, profile: Profile, table: BlockTable) -> Headline:
    """Return what ran, where and when."""
    every = [result.cell for result in profile.cells]
    # Beside networks, operations are what they are held against.
    cells = networks_among(every) or every
    identity = profile.identity
    every_launches = table.by_cell.values()
    rounds = [len({launch.record.round for launch in launches if launch.counting.steps}) for launches in every_launches]
    readable = {sensor.quantity for sensor in profile.sensors if sensor.status != "unavailable"}
    return Headline(
        label=label,
        given_label=profile.label,
        suite=profile.suite.name,
        axes=axis_values(cells),
        data=list(dict.fromkeys(profile.suite.data.values())),
        rounds=max(rounds, default=0),
        rounds_max=max(rounds, default=0),
        cycles=profile.suite.plan.cycles,
        cpu=identity.cpu_model,
        cpus=identity.integer("cpu.cores_logical"),
        devices=devices_used(profile),
        hypervisor=identity.text("hypervisor"),
        power_sensor=bool(readable & {"energy", "power"}),
        created=profile.created,
        kit=profile.kit.version,
    )


def notes_within(run: Run, groups: Sequence[GroupRows]) -> list[Note]:
    """Return what must be said of one profile's table."""
    profile, by = run.profile, run.by
    rows = [row for group in groups for row in group.rows]
    networks = [row for row in rows if not row.is_operation]
    shown = networks or rows
    # Fits are repeated in fewer rounds than steps, and say so in their rows.
    repeated = [row for row in shown if row.value("fit_total_ns") is None] or shown
    # Those of a disturbed group are of one round, and say so.
    counted = [row.value("launches") for row in repeated if row.value("launches") and not row.value("is_disturbed")]
    rounds = min(counted, default=ROUNDS_PRELIMINARY)
    averaging = {row.cell.key: row.scaling for row in rows if row.scaling is not None}
    on_gpus = [
        launch
        for result in profile.cells
        if (result.cell.backend, result.cell.device) == ("jax", "gpu")
        and (scaling := averaging.get(result.key)) is not None
        and scaling.efficiency is not None
        for launch in result.launches
    ]
    notes = [*by_notes(by), *_figure_notes(run), *run_notes(run.label, profile)]
    if rounds < ROUNDS_PRELIMINARY:
        code, needed = "preliminary", ROUNDS_PRELIMINARY
        if rounds < ROUNDS_FOR_VERDICT:
            code, needed = "too_few_rounds", ROUNDS_FOR_VERDICT
        notes.append(note(code, rounds=rounds, needed=needed))
    applies = {
        "computed_times": any(row.value("fit_is_computed") for row in shown),
        "per_sample": by == "step_ns" and any(len({row.cell.batch for row in group.rows}) > 1 for group in groups),
        "scaling": bool(averaging),
        "all_reduce": any(known.all_reduce is not None for known in averaging.values()),
        "all_reduce_not_hidden": any(
            not (flags := (launch.environment or {}).get("XLA_FLAGS", "")).startswith(NOT_RECORDED)
            and XLA_OVERLAPS not in flags
            for launch in on_gpus
        ),
    }
    notes += [note(code) for code, is_so in applies.items() if is_so]
    notes += [*_software_notes(profile), *parity_notes(profile.cells)]
    if networks and len(networks) < len(rows):
        measured = {group.key for group in groups if group.rows[0].is_operation}
        notes.append(note("ceilings_measured", operations=len(measured)))
    notes += [*_energy_notes(run, rows), *joules_notes(groups)]
    same = [(row.name, mismatch.name) for row in rows if row.kept_apart == SAME_CODE for mismatch in row.blocked]
    for what in dict.fromkeys(name for _, name in same):
        notes.append(
            note("same_code", rows=", ".join(dict.fromkeys(row for row, name in same if name == what)), by=what)
        )
    apart = [known for row in rows if row.kept_apart == BOUND_THREADS for each in row.blocked for known in each.values]
    bound = {f"{name} {value}": None for value, names in apart if value != A_CPU_EACH for name in names}
    if bound:
        notes.append(note(BOUND_THREADS, bound=", ".join(bound)))
    if profile.suite.reuse_compiled:
        notes.append(note("reuse_compiled"))
    refused: dict[str, list[str]] = {}
    for row in shown:
        if (code := row.value("sustained_refusal")) is not None:
            refused.setdefault(code, []).append(row.name)
    notes += [note("sustained_refused", reason(code), rows=", ".join(names)) for code, names in refused.items()]
    in_letters = ("sustained_differs", "process_shared", "warm_start")
    return [*notes, *(note(code) for code in in_letters if any(row.value(code) for row in shown))]


def _software_notes(profile: Profile) -> list[Note]:
    """Return which image each variant ran in, where any did, and which version, of a backend that ran in several."""
    images = {variant.name: variant for variant in profile.suite.variants if variant.image is not None}
    listed = [f"{name} {used.image} ({str(used.image_digest)[:DIGEST_SHOWN]})" for name, used in images.items()]
    notes = [note("images", listed=", ".join(listed))] if images else []
    if len({variant.image_digest for variant in images.values()}) < len(images):
        notes.append(note("images_same"))
    versions: dict[str, dict[str, str]] = {}
    for result in profile.cells:
        for version in (launch.backend_version for launch in result.launches if launch.backend_version):
            versions.setdefault(result.cell.backend, {})[result.cell.variant] = version
    for backend, by_variant in versions.items():
        if len(set(by_variant.values())) > 1:
            listed = [" ".join(pair) for pair in by_variant.items()]
            notes.append(note("versions", backend=backend, listed=", ".join(listed)))
    return notes


def _energy_notes(run: Run, rows: Sequence[Row]) -> list[Note]:
    """Return by what the joules of each tier were measured; where there are none, why this run has none."""
    tiers: dict[str | None, list[Row]] = {}
    for row in rows:
        if row.value("energy_launches"):
            tiers.setdefault(row.value("energy_tier"), []).append(row)
    notes = []
    for tier, measured in tiers.items():
        sensors = ", ".join(dict.fromkeys(name for row in measured for name in row.value("energy_sensors").split()))
        values: dict[str, Value] = {
            "sensors": sensors, "block_s": median(row.value("energy_block_ns") for row in measured) / 1e9
        }  # fmt: skip
        if tier == "external_meter":
            values["covers"] = sensors.replace("meter.", "")
        errors = [error for row in measured if (error := row.value("energy_error_share")) is not None]
        if errors:
            values["error_pct"] = 100 * max(errors)
        notes.append(note(f"energy_{tier}" if errors else "energy_tier_unknown", **values))
    refused = _refusal_notes(run)
    if notes:
        return [*notes, *refused]
    on_cpu = (row for row in rows if row.cell.device == "cpu" and not row.is_operation)
    has_cpu_time = any(row.value("cpu_per_sample_ns") is not None for row in on_cpu)
    return [*(refused or [_why_no_joules(run)]), *([note("cpu_seconds")] if has_cpu_time else [])]


def _refusal_notes(run: Run, whose: str = "") -> list[Note]:
    """Return why cells of a run have no joules although a sensor was read: a note for each sensor and kind of reason.

    `whose`: behind the name of each row.
    """
    seen: dict[tuple[str, str], tuple[Reason, dict[str, None]]] = {}
    for sample in run.samples_of_groups:
        for sensor, why in refusals(sample):
            rows = seen.setdefault((sensor, why.code), (why, {}))[1]
            rows[f"{sample.name}{whose}"] = None
    return [
        note("energy_refused", why, sensor=sensor, rows=", ".join(rows)) for (sensor, _), (why, rows) in seen.items()
    ]


def _why_no_joules(run: Run) -> Note:
    """Return why no cell of a run has joules, and none was refused: no sensor, not asked for, or not reached."""
    profile = run.profile
    sources = {device.energy_source for result in profile.cells if (device := DEVICES.get(result.cell.device))}
    meters = [
        sensor
        for sensor in profile.sensors
        if sensor.quantity in ("energy", "power") and sensor.name.partition(".")[0] in sources
    ]
    if meters and all(sensor.status == "unavailable" and sensor.reason is not None for sensor in meters):
        return note("energy_no_sensor", meters[0].reason)
    return note("energy_not_asked" if profile.suite.plan.energy_s == 0 else "energy_not_reached")


def by_notes(by: str) -> list[Note]:
    """Return what must be said where the step time is not what is judged; of a figure its run says what it is."""
    if by in ("step_ns", "figure"):
        return []
    return [note("by_latency") if by == "latency_ns" else note("by_metric", metric=by)]


def _figure_notes(run: Run) -> list[Note]:
    """Return what the figure is that commands of a run give."""
    known = [source.command for source in run.profile.suite.programs.values() if source.command is not None]
    code, by = ("figure", {}) if run.by == "figure" else ("figure_beside", {"by": short_name(run.by)})
    return [note(code, unit=each.unit or "number", better=each.better, **by) for each in known[:1] if each.has_figure]


def run_notes(label: str, profile: Profile) -> list[Note]:
    """Return what must be said of a run in whichever comparison."""
    notes = [note("interrupted", profile=label)] if profile.interrupted else []
    for result in profile.cells:
        failures = [launch.failure.reason for launch in result.launches if launch.failure is not None]
        # A cell that failed in every round says so in its row.
        if failures and len(failures) < len(result.launches):
            counts = {"failed": len(failures), "launches": len(result.launches)}
            notes.append(note("launches_failed", failures[0], **counts, cell=result.key))
    cells = [result.cell for result in profile.cells]
    # A device may compute a precision in several passes of another.
    if any(cell.device in DEVICES and cell.precision in DEVICES[cell.device].in_passes for cell in cells):
        notes.append(note("float32_on_tpu"))
    in_blocks = [result.launches for result in profile.cells if result.cell.in_blocks]
    turned = [launch for launches in in_blocks for launch in launches if launch.turns == "sequential"]
    if turned:
        sequential, rounds = (len({launch.round for launch in known}) for known in (turned, chain(*in_blocks)))
        notes.append(note("sequential", turned[0].turns_reason, sequential=sequential, rounds=rounds))
    notes += [note("skipped", skipped.reason, backend=skipped.backend) for skipped in profile.suite.skipped]
    notes += [note("device_idle", kind=kind, model=model) for kind, model in devices_idle(profile.identity, cells)]
    for result in profile.cells:
        if (against := first_against_mode(result.cell, result.launches)) is not None:
            notes.append(note("mode_differs", against, cell=result.key))
        if (missing := next((known for launch in result.launches if (known := left_out(launch))), None)) is not None:
            notes.append(note("work_missing", missing, cell=result.key))
    if any(source.command is None for source in profile.suite.programs.values()):
        notes.append(note("own_programs"))
    unchecked = {
        result.cell.workload: launch.output_unchecked
        for result in profile.cells
        for launch in result.launches
        if launch.output_unchecked is not None
    }
    notes += [note("output_unchecked", why, program=name) for name, why in unchecked.items()]
    if SYNTHETIC in profile.suite.data.values():
        notes.append(note("data_synthetic", profile.suite.data_reason))
    return notes


def left_out_notes(label: str, rounds: CleanRounds) -> list[Note]:
    """Return how many cycles of a run do not count, and of how many of its groups none does.

    Where all cycles count, return how many would not.
    """
    is_all, groups, disturbed = rounds.is_all, rounds.by_group, rounds.disturbed
    rounds_of = {group: groups[group].values() for group in disturbed}
    lacked = {group for group, seen in rounds_of.items() if all(OF_CPUS & {*cycles.reasons} for cycles in seen)}
    shared = {group for group, seen in rounds_of.items() if any("device" in cycles.reasons for cycles in seen)} - lacked
    kinds = {
        "disturbed_cycles_count" if is_all else "cycles_left_out": groups.keys() - disturbed,
        "no_clean_round": lacked,
        "no_round_alone": shared,
        "no_round_counts": disturbed - lacked - shared,
    }
    notes = []
    for code, named in kinds.items():
        counts_rounds = code in ("disturbed_cycles_count", "cycles_left_out")
        seen = [cycles for group in named for cycles in groups[group].values()]
        ran = sum(cycles.ran for cycles in seen)
        left_out = ran - sum(cycles.clean for cycles in seen if cycles.counts or not counts_rounds)
        if left_out if counts_rounds else named:
            values: dict[str, Value] = {"disturbed" if is_all else "left_out": left_out, "cycles": ran}
            values |= {} if counts_rounds else {"groups": len(named), "of_groups": len(groups)}
            if code == "no_round_counts":
                values["reasons"] = ", ".join(sorted({why for cycles in seen for why in cycles.reasons}))
            notes.append(note(code, **values, profile=label))
    return notes


def cut_notes(label: str, table: BlockTable) -> list[Note]:
    """Return how many blocks of a run were cut, whether they count or not."""
    cut, blocks = sum(launch.blocks.cut() for launch in table), sum(len(launch.blocks.steps) for launch in table)
    return [note("blocks_cut", cut=cut, blocks=blocks, profile=label)] if cut else []


def _failed_run_notes(label: str, table: BlockTable) -> list[Note]:
    """Return how many runs of each command ended with another exit code than 0, which was accepted."""
    runs, failed = Counter[str](), Counter[str]()
    for launch in table:
        failed[launch.cell.workload] += sum(count or 0 for count in launch.blocks.counters.get(FAILED_RUNS, ()))
        runs[launch.cell.workload] += sum(launch.blocks.lead_in) + sum(launch.blocks.steps)
    counts = [(name, count) for name, count in failed.items() if count]
    return [note("runs_failed", cell=name, failed=count, runs=runs[name], profile=label) for name, count in counts]


def notes_between(groups: Sequence[GroupRows], *, is_like: bool = True) -> list[Note]:
    """Return what must be said of rows of several runs; `is_like`: all ran on the same hardware.

    The notes say how many intervals assume a spread of sessions, which sensors' joules are in one table, and how much
    CPU time other programs took from each side at worst.
    """
    judged = [row.versus for group in groups for row in group.rows if row.versus is not None]
    assumed, notes = [versus for versus in judged if versus.is_spread_assumed], list[Note]()
    if assumed:
        values = {"few": len(assumed), "rows": len(judged), "needed": SESSIONS_FOR_SPREAD, "sd_pct": 100 * SESSIONS_SD}
        notes.append(note("spread_assumed" if is_like else "spread_assumed_unlike", **values))
    worst: dict[str, float] = {}
    for row in (row for group in groups for row in group.rows if row.side):
        worst[row.side] = max(worst.get(row.side, 0.0), row.value("contention_pct") or 0.0)
    contended = [note("contended_side", side=side, contention_pct=pct) for side, pct in worst.items() if pct]
    return [*notes, *joules_notes(groups), *contended]


def joules_notes(groups: Sequence[GroupRows]) -> list[Note]:
    """Return whose joules stand beside each other, where devices or sensors of several kinds have some."""
    rows = [row for group in groups for row in group.rows if row.value("energy_per_sample_j") is not None]
    notes = [note("joules_of_the_device")] if len({row.cell.device for row in rows}) > 1 else []
    seen: dict[tuple[str, str], None] = {}  # source and tier of sensors
    for row in rows:
        if row.value("energy_launches"):
            names, tier = row.value("energy_sensors").split(), row.value("energy_tier") or ""
            kinds_of = [name if tier == "external_meter" else name.partition(".")[0] for name in names]
            seen |= dict.fromkeys((name, tier) for name in kinds_of)
        elif (device := DEVICES.get(row.cell.device)) is not None and device.energy_source:
            seen[device.energy_source, ""] = None  # of several runs the tier is not known
    with_tier = [source for source, tier in seen if tier]
    kinds = [(source, tier) for source, tier in seen if tier or source not in with_tier]
    if len(kinds) < 2:  # noqa: PLR2004 - one beside another
        return notes
    listed = ", ".join(" ".join(kind).replace("_", " ").rstrip() for kind in kinds)
    if any(source == DEVICES["gpu"].energy_source for source, _ in kinds):
        limits = {"low_pct": GAIN_LOW_PCT, "high_pct": GAIN_HIGH_PCT}
        return [*notes, note("joules_of_boards_and_others", sensors=listed, **limits)]
    return [*notes, note("joules_of_several_sensors", sensors=listed)]


def deduplicated(notes: Sequence[Note]) -> list[Note]:
    """Return each note once, those of one kind together; of runs' cycles one with the sums over the runs."""
    kept: dict[str, list[Note]] = {}
    for new in notes:
        alike = kept.setdefault(new.what.code, [])
        if new.what.code in ON_CYCLES and alike:
            pairs = {name: (value, new.what.values[name]) for name, value in alike[0].what.values.items()}
            sums = {
                name: a + b if isinstance(a, int) and isinstance(b, int) else f"{a}, {b}"
                for name, (a, b) in pairs.items()
            }
            alike[0] = note(new.what.code, **sums)
        elif new not in alike:
            alike.append(new)
    return [known for alike in kept.values() for known in alike]


def parity_notes(cells: Sequence[CellResult]) -> list[Note]:
    """Return whether cells that should compute the same do: one line if so, one for each odd cell otherwise."""
    judged = agreements(cells)
    odd = [
        note("parity_differs", cell=key, difference=agreement.max_relative_difference or float("inf"))
        for key, agreement in judged.items()
        if agreement.agrees is False
    ]
    known = [agreement.max_relative_difference or 0.0 for agreement in judged.values() if agreement.agrees]
    if odd or not known:
        return odd
    launches = (launch for result in cells if result.key in judged for launch in result.launches)
    losses = next(len(launch.parity.losses) for launch in launches if launch.parity is not None)
    code = "parity_agrees" if max(known) else "parity_equal"
    return [note(code, losses=losses, difference=max(known))]


def devices_idle(identity: Identity, cells: Iterable[Cell]) -> list[tuple[str, str]]:
    """Return kind and model of each accelerator that is here and that none of the cells is for, each once."""
    used = {cell.device for cell in cells}
    return list(dict.fromkeys((board.kind, board.model) for board in identity.accelerators() if board.kind not in used))


def devices_used(profile: Profile) -> list[UsedDevice]:
    """Return a device for each kind that cells ran on, in their order."""
    devices = []
    for kind in dict.fromkeys(result.cell.device for result in profile.cells):
        if kind == HOST:
            devices.append(UsedDevice(kind=kind, model=profile.identity.cpu_model, device_ids=[], used=1, present=1))
            continue
        results = [result for result in profile.cells if result.cell.device == kind]
        ids = list(
            dict.fromkeys(name for result in results for launch in result.launches for name in launch.device_ids)
        )
        boards = [board for board in profile.identity.accelerators() if board.kind == kind]
        used = max(result.cell.devices for result in results)
        here = [board for board in boards if board.device_id in ids] or boards[:used]
        model = " and ".join(dict.fromkeys(board.model for board in here)) or kind
        devices.append(UsedDevice(kind=kind, model=model, device_ids=ids, used=used, present=len(boards)))
    return devices
