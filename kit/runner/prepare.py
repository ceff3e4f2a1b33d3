"""A plan on this machine: what is refused, frameworks found, data at hand, identity; before the first round."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from msgspec.structs import replace

from kit.backends.backend_catalog import CATALOG, ENVIRONMENT_PREFIXES, WITH_EXTRA
from kit.backends.compile_caches import set_caches
from kit.backends.entry import THREAD_VARIABLES, choice_set
from kit.clock import choose_source
from kit.compare.notes import devices_idle
from kit.devices import DEVICES
from kit.distribution import adding_distributions, install_command
from kit.documentation import page
from kit.engine.connection import local_engine
from kit.engine.container import ContainerOptions, for_kind, with_devices
from kit.engine.image import need_image
from kit.environment import CHOICES, PYTHON_PREFIX, VARIABLES
from kit.errors import KitError
from kit.fingerprint.fingerprint import identity, identity_of_devices, kit_revision
from kit.fingerprint.machine_state import state
from kit.fingerprint.this_machine import container
from kit.nearest import did_you_mean
from kit.printable import printable_line
from kit.profile.cell import Cell, Variant
from kit.profile.facts import Identity
from kit.profile.fields import Reason, reason
from kit.profile.instruments import ClockChoice
from kit.profile.schema import Kit, Skipped
from kit.profile.unfinished import RunPlan
from kit.report.reasons_in_words import sentence
from kit.runner.memory_forecast import check_memory
from kit.runner.round_worker import phase_limit_s
from kit.runner.target import check_hosts, find_backend, interpreter_for
from kit.runner.warm_up_and_blocks import planned_energy_s
from kit.runner.worker_processes import has_ranks
from kit.runner.worker_spec import threads_here, usable_cpus
from kit.sensors.nvml import measured_lags_ns
from kit.sensors.sources import probe_all
from kit.suites.plan import Plan
from kit.version import __version__
from kit.workloads.datasets import data_folder
from kit.workloads.device_operations import networks_among
from kit.workloads.workload_catalog import DATASETS, WORKLOADS, resolve_data

# Interpreters that are asked at once.
PROBES_MOST = 4


def check_settings(clock: ClockChoice) -> None:
    """Refuse a clock that is not here, and settings of the environment that are wrong; before anything else is."""
    choose_source(clock)
    phase_limit_s()
    measured_lags_ns()  # a wrong KIT_GPU_FILE is refused here; later it would cost the GPUs' sensors


def plan_run(plan: Plan, say: Callable[[str], None]) -> RunPlan:
    """Return what of a plan this machine measures, with everything decided; a dry run downloads no data.

    Args:
        plan: what is asked for.
        say: gets each line that its user should know of, such as what is left out.

    Raises:
        KitError: it cannot be measured here.
    """
    _check_variables(plan.suite.variants)
    variants = with_digests(plan.suite.variants)
    _check_devices(plan.cells, variants, plan.suite.hosts)
    check_images(plan.cells, variants)
    # A dry run starts nothing that a suite's file names.
    asked = [variant for variant in variants if not (plan.is_dry and variant.name in plan.code_of_file)]
    cells, skipped = drop_missing_backends(plan.cells, asked, plan.backends)
    for entry in skipped:
        say(f"skipped: {sentence(entry.reason)}")
    if plan.suite.hosts == 1:  # others may have more
        check_memory(cells)
    threads = threads_here()
    ignored = [
        f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if os.environ.get(name, str(threads)) != str(threads)
    ]
    if ignored:
        uses = f"frameworks use {threads} threads, from CPU affinity and quota; use taskset or --threads to change that"
        say(f"{', '.join(ignored)} is ignored: {uses}")
    if not plan.suite.reuse_compiled:
        backends = dict.fromkeys(cell.backend for cell in cells)
        caches = dict.fromkeys(name for backend in backends for name in set_caches(CATALOG[backend], os.environ))
        if caches:
            say(f"{', '.join(caches)} is ignored: every round compiles anew; kit run --reuse-compiled reuses")
    data = ensure_data(cells, plan.data, fetch=not plan.is_dry)
    if data[1] is not None:
        say(f"{sentence(data[1])}; using synthetic data of the same shapes")
    run_plan = prepare(replace(plan, cells=cells), variants, asked=asked, skipped=skipped, data=data)
    for kind, model in devices_idle(run_plan.identity, cells) if not plan.devices else ():
        say(f"this run does not use the {kind} here ({printable_line(model)}); --device {kind} measures it")
    return run_plan


def _check_variables(variants: Sequence[Variant]) -> None:
    """Refuse a variable of Steadykit's that there is none of, which would change nothing, and a value that is none."""
    known = [variable.name for variable in VARIABLES]
    for variant in variants:
        for name in variant.env:
            if name.startswith("KIT_") and not name.startswith(PYTHON_PREFIX) and name not in known:
                line = f"variant {variant.name}: no variable {name}{did_you_mean(name, known)}"
                raise KitError(f"{line}; {page('reference/environment.md')} lists Steadykit's")
        for name in CHOICES:
            choice_set(name, {**os.environ, **variant.env})


def _check_devices(cells: Sequence[Cell], variants: Sequence[Variant], hosts: int) -> None:
    """Look for the devices and CPUs of the cells, where their absence can be told without a framework.

    Raises:
        KitError: one of them is not here, or fewer than a cell has; what may be here is left to the framework.
    """
    for kind in dict.fromkeys(cell.device for cell in cells):
        why = DEVICES[kind].why_missing()
        if why is not None:
            others = (other for other, device in DEVICES.items() if other != kind and device.why_missing() is None)
            here = " and ".join(others)
            raise KitError(
                f"--device {kind}: this machine has only {here}: {sentence(why)}; "
                "use another machine, or --device cpu (`kit doctor` lists what can be measured here)"
            )
    check_hosts(cells, variants, hosts)
    environments = {variant.name: {**os.environ, **variant.env} for variant in variants}
    cpus = len(usable_cpus())
    threads = max((cell.threads or 0 for cell in cells), default=0)
    if threads > cpus:
        are = f"{cpus} CPU{'s are' if cpus > 1 else ' is'} usable here"
        raise KitError(f"--threads {threads}: {are}, and more threads wait for each other; give at most {cpus}")
    for cell in cells:
        devices_per_host = cell.devices // min(cell.devices, hosts)
        DEVICES[cell.device].check_count(devices_per_host, environments[cell.variant])
        if cell.device == "cpu" and devices_per_host > cpus:
            raise KitError(
                f"--devices {cell.devices}: with --device cpu each takes one CPU, and {cpus} are usable; give fewer"
            )


def check_images(cells: Sequence[Cell], variants: Sequence[Variant]) -> None:
    """Refuse what containers of a variant cannot measure.

    Raises:
        EngineError: the engine cannot give them the devices of their cells.
        KitError: a cell has ranks. Each would be in a container of its own, and these have no network.
    """
    named = {variant.name: variant for variant in variants if variant.image is not None}
    for cell in cells:
        if cell.variant in named and has_ranks(cell, named[cell.variant], hosts=1):
            title = CATALOG[cell.backend].title
            raise KitError(
                f"variant {cell.variant}: {title} has a process for each of --devices {cell.devices}, and containers "
                "have no network; leave out --devices or the image"
            )
    digests = {variant.name: variant.image_digest for variant in variants if variant.image_digest is not None}
    engine = local_engine() if digests else None
    for name, device in dict.fromkeys((cell.variant, cell.device) for cell in cells if cell.variant in digests):
        assert engine is not None
        with_devices(engine, device, for_kind(engine, ContainerOptions(digests[name], [])))


def with_digests(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants, those of images with what the engine has under that name now.

    Raises:
        EngineError: no engine answers on this machine, or it has no such image.
    """
    if all(variant.image is None for variant in variants):
        return list(variants)
    engine = local_engine()
    return [
        variant if variant.image is None else replace(variant, image_digest=need_image(engine, variant.image).digest)
        for variant in variants
    ]


def drop_missing_backends(
    cells: Sequence[Cell], variants: Sequence[Variant], asked_for: Sequence[str]
) -> tuple[list[Cell], list[Skipped]]:
    """Leave out the cells of frameworks that are not installed for these variants.

    Raises:
        KitError: one was asked for by name or by a variant, none is installed, or an interpreter cannot be used.
    """
    by_name = {variant.name: variant for variant in variants}
    for variant in variants:
        overridden = sorted({*variant.env} & {*THREAD_VARIABLES})
        if overridden and any(cell.threads is not None for cell in cells if cell.variant == variant.name):
            raise KitError(f"variant {variant.name}: {overridden[0]} and --threads both set the threads; leave one out")
    missing: dict[str, Skipped] = {}
    pairs = [*dict.fromkeys((cell.backend, cell.variant) for cell in cells if cell.variant in by_name)]
    # Each starts an interpreter, which takes a tenth of a second.
    with ThreadPoolExecutor(PROBES_MOST) as pool:
        probes = [pool.submit(find_backend, backend, by_name[name]) for backend, name in pairs]
    for (backend, name), probe in zip(pairs, probes, strict=True):
        variant = by_name[name]
        if probe.result().version is not None:
            continue
        if (where := variant.python or variant.image) is not None:
            raise KitError(f"variant {name}: {backend} is not installed for {where}; install it there")
        if backend in asked_for:
            raise KitError(f"{backend} is not installed; {_remedy([backend])}, or leave out --backend {backend}")
        missing[backend] = Skipped(backend=backend, reason=reason("not_installed", backend=backend))
    kept = [cell for cell in cells if cell.backend not in missing]
    if not kept:
        raise KitError(f"none of {', '.join(sorted(missing))} is installed; {_remedy(sorted(missing))}")
    return kept, list(missing.values())


def _remedy(backends: Sequence[str]) -> str:
    extras = [name for name in backends if name in WITH_EXTRA]
    return f"install {'it' if len(backends) == 1 else 'them'}" + (f" with {install_command(*extras)}" if extras else "")


def ensure_data(cells: Sequence[Cell], choice: str, *, fetch: bool = True) -> tuple[dict[str, str], Reason | None]:
    """Fetch and prove the data of every workload that has any; without `fetch` what is here is proved.

    Return data set -> what is used, and why synthetic where it is.

    Raises:
        DataError: a file that is there is wrong; or data that was asked for by name cannot be had.
    """
    built = [cell.workload for cell in networks_among(cells) if CATALOG[cell.backend].builds_workloads]
    if not built and choice != "auto":
        raise KitError(f"user programs and operations have their own data; leave out --data {choice}")
    names = dict.fromkeys(WORKLOADS[workload].data for workload in built)
    # Data that is missing is resolved by its download, unless the choice is another.
    resolved = {
        name: resolve_data(choice, name)
        for name in names
        if fetch or choice not in ("auto", name) or not DATASETS[name].missing()
    }
    synthetic = [(name, data.reason) for name, data in resolved.items() if data.reason is not None]
    name, why = synthetic[0] if synthetic else ("", None)
    if why is not None and DATASETS[name].missing() and container().text("container.image"):
        # The images have no network, and nothing in /data: what failed there is the mount.
        why = reason("data_not_mounted", data=name, folder=str(data_folder()))
    return {name: data.name for name, data in resolved.items()}, why


def identify(backends: Sequence[str], variants: Sequence[Variant], *, names_only: bool = False) -> Identity:
    """Return the machine and the software of every interpreter that workers run in. Takes about a second."""
    here = [variant for variant in variants if variant.image is None]
    pythons = dict.fromkeys(interpreter_for(backend, variant) for variant in here for backend in backends)
    return identity(
        tuple(pythons),
        packages=[*adding_distributions(), *(name for entry in CATALOG.values() for name in entry.packages)],
        prefixes=ENVIRONMENT_PREFIXES,
        names_only=names_only,
    )


def prepare(
    plan: Plan,
    variants: Sequence[Variant],
    *,
    asked: Sequence[Variant] | None = None,
    skipped: Sequence[Skipped] = (),
    data: tuple[dict[str, str], Reason | None],
) -> RunPlan:
    """Return the plan of a new run on the CPUs that are usable here.

    Args:
        plan: of cells that can be measured here.
        variants: as workers are started with them, their images' digests known.
        asked: those whose interpreters may be asked for their packages; null: all.
        skipped: backends without cells.
        data: as `ensure_data` returns it.
    """
    sensors = probe_all()
    # What identifies the machine and the kit takes seconds, and a dry run records nothing.
    if plan.is_dry:
        revision, known = None, identity_of_devices()
    else:
        backends = list(dict.fromkeys(cell.backend for cell in plan.cells))
        revision = kit_revision()
        known = identify(backends, variants if asked is None else asked, names_only=plan.names_only)
    steps = replace(plan.suite.plan, energy_s=planned_energy_s(plan.energy_s, sensors, plan.cells))
    return RunPlan(
        id=str(uuid.uuid4()),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        kit=Kit(version=__version__, revision=revision),
        identity=known,
        state_before=state(),
        sensors=sensors,
        suite=replace(
            plan.suite, plan=steps, variants=list(variants), data=data[0], data_reason=data[1], skipped=list(skipped)
        ),
        cells=plan.cells,
        groups=plan.groups,
        cpus=usable_cpus(),
        clock=plan.clock,
        label=plan.label,
        options=plan.options,
        names_only=plan.names_only,
    )
