"""Rules on environment variables: which settings they are, who obeys them, and what they do to threads.

    variable in the environment ──► read by torch: 1 thread    ╮ the comparison is of settings,
                              └──► not read by jax: 2 threads  ╯ not of frameworks

Every variable with a framework's prefix is recorded. What one sets is told by its name, or by a flag in its value.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from kit.audit.fairness import ALLOCATORS, alike_but_frameworks, is_any, listed
from kit.audit.remedies import again, without_variables
from kit.audit.rule import Found, Outcome, rule, says
from kit.audit.subject import MeasuredCell, NotMeasuredError, not_recorded
from kit.compare.bound_threads import bound_threads
from kit.profile.fields import Reason, Value, reason

# Times as many threads as the other: pools differ by a thread or two that wait and hand over work.
FEWER_THREADS = 2
# This backend runs a user's program, which reads what it likes.
USER_PROGRAM = "program"
THREADS, CPUS, DEVICES, PRECISION, COMPILATION = "threads", "CPUs of threads", "devices", "precision", "compilation"
COMMUNICATION, KERNELS, OTHERS = "communication", "kernels", "settings"
# What a variable sets -> patterns of NAME=VALUE. The first that fits counts, the narrower before the wider.
SETS: dict[str, Sequence[str]] = {
    CPUS: ("*_AFFINITY=*", "OMP_PROC_BIND=*", "OMP_PLACES=*", "KMP_HW_SUBSET=*"),
    DEVICES: ("*NUM_CPU_DEVICES=*", "*host_platform_device_count*", "JAX_PLATFORM*=*"),
    THREADS: ("*NUM*THREADS=*", "NPROC=*", "*multi_thread_eigen*", "OMP_*", "GOMP_*", "KMP_*", "MKL_DYNAMIC=*"),
    PRECISION: ("*FPMATH*", "*TF32*", "*MATMUL_PRECISION=*", "*ENABLE_X64=*", "*FLOATX=*", "*excess_precision*"),
    COMPILATION: (
        "TORCHDYNAMO*", "TORCHINDUCTOR*", "TORCH_COMPILE*", "TRITON_*", "PYTORCH_JIT*", "JAX_DISABLE*", "JAX_*OPTIMIZ*",
        "XLA_FLAGS=*", "TF_XLA_FLAGS=*", "LIBTPU_INIT_ARGS=*",
    ),
    COMMUNICATION: ("NCCL_*", "GLOO_*", "TORCH_NCCL_*"),
    KERNELS: ("*ONEDNN*", "DNNL_*", "MKL_*", "*CUDNN*", "*CUBLAS*", "*DETERMINISTIC*", "ATEN_CPU_CAPABILITY=*"),
}  # fmt: skip
# What a variable sets -> the code of the remedy; that of threads has a remedy of its own.
REMEDIES_OF = {
    CPUS: "usual_cpus_of_threads", DEVICES: "usual_devices", PRECISION: "usual_precision",
    COMPILATION: "usual_compilation", COMMUNICATION: "usual_communication", KERNELS: "usual_kernels",
    OTHERS: "usual_settings",
}  # fmt: skip
# They say where something lies, what is logged, or what an image contains: no step depends on them.
SET_NOTHING = (
    "*_HOME", "*_ROOT", "*_DIR", "*_PATH", "*_CACHE", "*_VERSION", "*_ARCH_LIST", "*_DEVICES", "*_IFNAME", "*_LOGS",
    "TF_CPP_MIN_LOG_LEVEL", "NVIDIA_REQUIRE_*", "NVIDIA_DRIVER_CAPABILITIES", "KERAS_BACKEND",
)  # fmt: skip
# A setting that switches something off changes what is compared.
SWITCHES_OFF = ("*DISABLE*", "*SUPPRESS*")
OFF = frozenset({"", "0", "false", "off", "no", "none", "strict"})


def what_it_sets(name: str, value: str) -> str | None:
    """Return what a variable sets; None: nothing that a step depends on."""
    if is_any(name, SET_NOTHING) and not fnmatchcase(name, "*NUM_CPU_DEVICES"):
        return None
    assigned = f"{name}={value}"
    fits = (known for known, patterns in SETS.items() if any(fnmatchcase(assigned, pattern) for pattern in patterns))
    return next(fits, OTHERS)


@rule("warning", "set_for_all", explains=("threads_differ", "cpus_idle"))
@says("{variable}={value} (set by: {set_by}) sets the {sets} of {obeys}, not of {ignores}; threads used: {threads}.")
def variable_binds_one(group: Sequence[MeasuredCell]) -> Iterator[Outcome]:
    """Find environment variables that one framework of a group obeys and another does not read."""
    for alike in alike_but_frameworks(group, lambda cell: cell.cell.variant):
        environments = [(cell, known) for cell in alike if (known := cell.environment) is not None]
        if any(cell.cell.backend == USER_PROGRAM for cell in alike):
            yield NotMeasuredError(reason("own_programs_read_what_they_like"))
        elif len(environments) < len(alike):
            yield not_recorded("environment")
        else:
            for name in dict.fromkeys(name for _, environment in environments for name in environment):
                values = [environment[name] for _, environment in environments if name in environment]
                bound = [cell for cell, environment in environments if name in environment]
                free = [cell for cell, environment in environments if name not in environment]
                sets = what_it_sets(name, values[0])
                if free and sets is not None and not is_any(name, ALLOCATORS):
                    yield _binds(name, values[0], sets, bound, free)


def _binds(name: str, value: str, sets: str, bound: Sequence[MeasuredCell], free: Sequence[MeasuredCell]) -> Found:
    """Return what is found of a variable that some cells obey and others do not read."""
    threads = [cell.threads for cell in (*bound, *free)]
    # Those that computed, else those that the framework reports; 0: neither is known.
    counts = [0 if known is None else known.used or known.reported or 0 for known in threads]
    bound_count, free_count = max(counts[: len(bound)]), min(counts[len(bound) :])
    held_back = sets in (THREADS, CPUS, DEVICES) and 0 < FEWER_THREADS * bound_count <= free_count
    has_more = sets == DEVICES and 0 < FEWER_THREADS * free_count <= bound_count
    is_on = value.lower() not in OFF and (sets == PRECISION or is_any(name, SWITCHES_OFF))
    values = {
        "variable": name,
        "value": value,
        "set_by": _set_by(name, value, bound[0]),
        "sets": sets,
        "obeys": ", ".join(dict.fromkeys(cell.cell.backend for cell in bound)),
        "ignores": ", ".join(dict.fromkeys(cell.cell.backend for cell in free)),
        "threads": listed([*bound, *free], [count or "not known" for count in counts]),
    }
    return Found(
        values,
        100 * (1 - bound_count / free_count) if held_back else 0.0,
        severity="warning" if held_back or has_more or is_on else "note",
        remedy=_remedy(name, sets, [*bound, *free]),
        explains=None if held_back else (),
        cell_key=bound[0].key,
    )


def _remedy(name: str, sets: str, cells: Sequence[MeasuredCell]) -> Reason:
    """Return the command without the variable, and what all frameworks then have in common."""
    if sets != THREADS:
        return without_variables(REMEDIES_OF[sets], [name], cells, name=shlex.quote(name))
    variant = cells[0].variant
    is_variants = variant is not None and name in variant.env
    return again("leave_out_of_variant" if is_variants else "set_for_all", cells, {}, name=shlex.quote(name))


def _set_by(name: str, value: str, cell: MeasuredCell) -> str:
    """Return who set the variable of a cell."""
    identity, variant = cell.run.profile.identity, cell.variant
    if variant is not None and variant.env.get(name) == value:
        return f"variant {variant.name}"
    if identity.text(f"environment.{name}") == value:
        return identity.text(f"environment_set_by.{name}") or "not recorded"
    return "image" if variant is not None and variant.image is not None else "not recorded"


@rule("warning", on="cpu", explains=("cpus_idle", "cpu_pressure", "threads_differ"))
@says("{who}: {threads} threads have {cpus} of {allowed} CPUs ({variables}).")
@says(
    "{who}: {threads} threads have {cpus} of {allowed} CPUs, and no recorded variable binds them.",
    code="program_binds_threads",
    explains=("cpus_idle", "cpu_pressure", "threads_differ"),
)
def threads_bound(cell: MeasuredCell) -> Found | None:
    """Find cells whose threads were bound to fewer CPUs than they could use."""
    known = [record.threads for record in cell.records if record.threads is not None]
    if known and all(min(threads.requested, len(threads.cpus)) == 1 for threads in known):
        return None
    if not any(threads.placement for threads in known):
        reasons = (threads.used_reason for threads in known if threads.used_reason is not None)
        raise NotMeasuredError(next(reasons, not_recorded("threads.placement").reason))
    held = ((threads, bound) for threads in known if (bound := bound_threads(threads)) is not None)
    threads, bound = next(held, (None, None))
    if threads is None or bound is None:
        return None
    values: dict[str, Value] = {"threads": bound.threads, "cpus": bound.cpus, "allowed": len(threads.cpus)}
    environment = next((record.environment for record in cell.records if record.environment), {})
    variables = {name: value for name, value in environment.items() if what_it_sets(name, value) == CPUS}
    urgency = 100 * (1 - bound.cpus / bound.threads)
    if not variables:
        cpu_list = ",".join(map(str, threads.cpus))
        return Found(
            values,
            urgency,
            code="program_binds_threads",
            remedy=again("let_threads_move", [cell], {}, cpu_list=cpu_list),
        )
    values["variables"] = ", ".join(f"{name}={value}" for name, value in variables.items())
    return Found(values, urgency, remedy=without_variables("unset", variables, [cell]))
