"""What the rules recommend: the words of each remedy, by its code; templates of the values that come with it.

A remedy that has a command has a whole one: `run` measures the cells of the finding again, `file` is the profile.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from kit.audit.subject import MeasuredCell
from kit.compare.comparability import OPTIONS
from kit.profile.cell import OWN, Cell
from kit.profile.facts import Accelerator
from kit.profile.fields import Reason, Value, reason
from kit.profile.program_source import ProgramSource
from kit.workloads.device_operations import is_operation

REMEDIES = {
    "quiet_machine": "Stop other programs, or wait for them: `{run:s} --wait-for-quiet 300` (to leave them CPUs, add "
    "--threads 1)",
    "quiet_machine_alone": "Stop other programs, or wait for them: `{run:s} --wait-for-quiet 300`",
    "more_memory": "Free memory, raise the limit (`kit launch cpu --memory 16g`), or measure a cell alone: `{run:s}`",
    "raise_quota": "Raise the quota (docker run --cpus), give whole CPUs (`kit launch cpu --cpuset 0,1`), or use fewer "
    "threads: `{run:s} --threads {threads}`",
    "equal_threads": "Give all cells the same number of threads: `{run:s}`",
    "fewer_threads": "Check which threads run: `kit show {file:s}`",
    "larger_batch": "Try a larger batch: `{run:s}`",
    "measure_again": "Measure again: `{run:s}`",
    "see_what_runs": "Check that a step runs the model on the measured device and returns what it computes",
    "what_grows": "Look for what each step adds to: a list or cache, results that keep their graph, traces of new "
    'functions; or give the program a "reset"',
    "longer_warm_up": "Warm up for longer (warmup_least_s and warmup_s in the suite), or see what changes: `kit show "
    "{file:s} --steps --format csv`",
    "reset_state": 'Give the program a "reset" that puts weights and optimizer state back',
    "flush_denormals": "Flush them (torch.set_flush_denormal(True) before PyTorch's first operation), or give the "
    'program a "reset"',
    "see_where_it_ran": "Check where the work ran, as it may wait, spin or stay on the host: `kit show {file:s}`",
    "cool_board": "Check temperature and power; this clock may be all that the device can hold: `nvidia-smi -q -d "
    "TEMPERATURE,POWER`",
    "raise_power_cap": "Raise the power cap, now {cap_w} of {default_w}: `sudo nvidia-smi{select:s} -pl "
    "{default_w:.0f}`",
    "other_sensor": "Use another sensor of the device, or an external meter: `kit compare {file:s} --meter FILE.csv`",
    "try_variant": "Try another allocator (`apt install {package}`): `{run:s} --variant {variant:s}`",
    "count_system_calls": "While it runs, count its system calls: `sudo strace -c -f -p $(pgrep -n -f kit.worker)`",
    "synchronize_clock": "Synchronize it before you use an external meter: `sudo timedatectl set-ntp true`",
    "cool_machine": "Check the cooling, or fix a lower clock: `sudo cpupower frequency-set --max 2GHz`",
    "whole_cores": "Pin to one CPU of each core: `taskset -c {cpu_list:s} {run:s}`",
    "one_node": "Keep the run on one node: `numactl --cpunodebind=0 --membind=0 {run:s}`",
    "log_recompiles": "Log the reason: `{setting:s} {run:s} --rounds 1`",
    "check_compiler": "Unset what switches the compiler on or off, or install what it lacks, then measure again: "
    "`{run:s}`",
    "unset_switch": "Measure without the switch: `env -u {switch} {run:s}`",
    "pass_as_arguments": "Pass weights and batch to the compiled function as arguments, and return what it computes",
    "keep_float32": "Unset the switch, or measure the precision that it sets (--dtype)",
    "resident_batches": "Prepare batches ahead of time, or keep them on the device; to see the gain: `{run:s}`",
    "see_latency": "Compare median, p95 and p99 (`kit compare {file:s} --wide`), or judge by the median step: "
    "`kit compare {file:s} --by latency`",
    "resume": "Measure the rest: `kit run --resume --out {file:s}`",
    "fix_failure": "Fix the failure (`kit show {file:s}`), then measure the cell again: `{run:s}`",
    "lower_rate": "Lower the learning rate, or find out where the loss diverges",
    "same_arithmetic": "Do not compare its times; its losses: `kit show {file:s}`",
    "free_a_cpu": "Stop other programs, or leave a CPU to the sampler: `{run:s} --threads {threads}`",
    "tested_release": "Compare it with a release that was tested, as two variants of one run",
    "other_code": "Check which copy is imported: the program's folder comes first, then PYTHONPATH, then the "
    "environment",
    "set_for_all": "Leave {name} out, so that all frameworks get the same number of threads: `env -u {name} {run:s}`",
    "leave_out_of_variant": "Leave {name} out of the variant, so that all frameworks get the same number of threads: "
    "`{run:s}`",
    "usual_cpus_of_threads": "Leave {name} out, so that the threads of all frameworks may use the same CPUs: "
    "`{unset:s}{run:s}`",
    "usual_devices": "Leave {name} out, so that all frameworks divide the CPUs alike: `{unset:s}{run:s}`",
    "usual_precision": "Leave {name} out, so that all frameworks compute at the precision of --dtype: "
    "`{unset:s}{run:s}`",
    "usual_compilation": "Leave {name} out, so that each framework compiles as it does by default: `{unset:s}{run:s}`",
    "usual_communication": "Leave {name} out, so that each framework communicates as it does by default: "
    "`{unset:s}{run:s}`",
    "usual_kernels": "Leave {name} out, so that each framework chooses its kernels by itself: `{unset:s}{run:s}`",
    "usual_settings": "Leave {name} out, or give the other frameworks what has the same effect: `{unset:s}{run:s}`",
    "unset": "Measure without it: `{unset:s}{run:s}`",
    "let_threads_move": "Do not bind the program's threads: os.sched_setaffinity and psutil's cpu_affinity do, and "
    "libraries may; to choose CPUs: `taskset -c {cpu_list:s} {run:s}`",
    "same_allocator": "Use one allocator for all, as a variant: `{run:s} --variant {variant:s} --compare backend`",
    "same_graphs": "Measure without XLA's graphs: `XLA_FLAGS=--xla_gpu_enable_command_buffer= {run:s}`; or let PyTorch "
    "capture some with its compile mode reduce-overhead",
    "same_precision": "Use a precision that all frameworks multiply alike: `{run:s}`",
    "look_at_supply": "Check power supply and cables, as the GPU is slow and far below its cap: `nvidia-smi -q -d "
    "PERFORMANCE`",
    "at_cap": "Raise the cap for more speed, as far as it goes: `nvidia-smi -q -d POWER` shows the limits",
    "one_at_a_time": "Free the device's memory, choose a smaller batch, or measure one framework at a time: `{run:s}`",
    "measure_alone": "Measure each framework in a run of its own, and compare the runs: `{run:s} --out alone.json`",
    "use_measured_lag": "Let joules allow for the measured lag: `KIT_GPU_FILE={file:s} {run:s}`",
    "free_board": "End the other processes (`nvidia-smi` lists them), or choose a device: `CUDA_VISIBLE_DEVICES=0 "
    "{run:s}`",
    "whole_board": "Turn MIG off to measure the whole GPU: `sudo nvidia-smi{select:s} -mig 0`",
    "reset_board": "Distrust its results, see `nvidia-smi -q -d ECC,ROW_REMAPPER`, and reset it: `sudo nvidia-smi "
    "--gpu-reset{select:s}`",
    "reseat_board": "Check slot, riser and other cards on these lanes: `nvidia-smi --format=csv "
    "--query-gpu=pcie.link.gen.current,pcie.link.width.current`",
    "lock_clocks": "Lock the clock to one that all cells can hold: `sudo nvidia-smi -lgc {clock_mhz:.0f}`",
    "same_caps": "Compare these machines separately, or set the same cap on all GPUs: `sudo nvidia-smi -pl "
    "{usual_w:.0f}`",
    "whole_machine": "Give the run all CPUs of the package, and stop other programs",
    "longer_energy_warmup": "Load the device for longer: `{run:s} --energy {seconds:.0f}`",
    "external_meter": "Decide with an external meter: `{run:s} --energy 60 --out metered.json`, then `kit compare "
    "metered.json --meter FILE.csv`",
    "longer_blocks": "Use longer blocks (block_s in the suite), so that the step is nearer to that of the energy block",
    "longer_energy": "Measure energy for longer: `{run:s} --energy {seconds:.0f}`",
}
# The name of a variant that nothing else is called, and what it loads.
TCMALLOC = {"variant": "tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4", "package": "libtcmalloc-minimal4"}
# A larger batch is so many times as large, and each data set has at least so many samples to train and to infer on.
BATCH_TIMES, BATCH_MOST = 4, 2_900
# Names of variables that choose an allocator, or how it keeps memory.
OF_ALLOCATORS = re.compile(r"LD_PRELOAD|.*MALLOC.*|GLIBC_TUNABLES")
# What an axis is without its option of `kit run`.
USUAL = {"device": "cpu", "precision": "float32", "feed": "device", "threads": None, "devices": 1}


def run_command(cells: Iterable[Cell], programs: Mapping[str, ProgramSource], **instead: Sequence[Value]) -> str:
    """Return the command that measures these cells again, without their variants.

    Args:
        cells: one or more. Where they are no product of their axes, others come with them.
        programs: the user programs of their run.
        instead: values of axes in place of those of the cells; none: the option is left out.
    """
    every = [*cells]
    known = [cell for cell in every if not is_operation(cell)] or every
    words = ["kit", "run"]
    for name in dict.fromkeys(cell.workload for cell in known):
        words += programs[name].words(name) if name in programs else ["--workload", shlex.quote(name)]
    for name in dict.fromkeys(name for cell in known for name in cell.parameters):
        sizes = dict.fromkeys(cell.parameters[name] for cell in known if name in cell.parameters)
        words += ["--parameter", f"{name}={','.join(map(str, sizes))}"]
    backends, modes = {cell.backend for cell in known}, {(cell.backend, cell.compile_mode) for cell in known}
    # A mode of several frameworks is each one's own default, as far as a profile shows.
    unsaid = {"compile_mode"} if len(backends) > 1 and len(modes) == len(backends) else set()
    if all(cell.precision == OWN for cell in known):
        unsaid |= {"backend", "precision", "compile_mode", "feed"}
    commands = [programs[cell.workload].command for cell in known if cell.workload in programs]
    if (command := next(filter(None, commands), None)) is not None:
        words += command.options
        unsaid |= {"task", "batch"}
    for axis in (axis for axis in OPTIONS if axis != "workload" and axis not in unsaid):
        given = dict.fromkeys(instead[axis] if axis in instead else [cell.value(axis) for cell in known])
        if axis not in USUAL or axis in instead or {*given} != {USUAL[axis]}:
            values = ",".join(str(value) for value in given if value is not None)
            words += [OPTIONS[axis], shlex.quote(values)] if values else []
    return " ".join(words)


def with_command(what: Reason, cells: Iterable[Cell], programs: Mapping[str, ProgramSource]) -> Reason:
    """Return a remedy with the command that measures these cells again, where its words have one."""
    if "{run:s}" not in REMEDIES.get(what.code, "") or "run" in what.values:
        return what
    known = [*cells]
    # One thread leaves others what it can.
    is_alone = what.code == "quiet_machine" and {cell.threads for cell in known} == {1}
    code = "quiet_machine_alone" if is_alone else what.code
    return Reason(code=code, values=what.values | {"run": run_command(known, programs)})


def again(code: str, cells: Sequence[MeasuredCell], instead: Mapping[str, Sequence[Value]], **values: Value) -> Reason:
    """Return the remedy to measure cells with other values on some axes."""
    command = run_command([cell.cell for cell in cells], cells[0].run.profile.suite.programs, **instead)
    return reason(code, run=command, **values)


def on_gpu(code: str, gpu: Accelerator, **values: Value) -> Reason:
    """Return a remedy with which `nvidia-smi` changes one GPU."""
    return reason(code, select="" if gpu.device_id is None else f" -i {shlex.quote(gpu.device_id)}", **values)


def larger_batch(cell: MeasuredCell) -> Reason | None:
    """Return the remedy to compare the cell's batch with a larger one; None where a data set may not have so many."""
    larger = BATCH_TIMES * cell.cell.batch
    if cell.cell.precision != OWN and larger > BATCH_MOST:
        return None
    return again("larger_batch", [cell], {"batch": [cell.cell.batch, larger]})


def other_allocator(cell: MeasuredCell) -> Reason | None:
    """Return the remedy, unless the cell or a variant of its run has an allocator of its own already."""
    settings = [variant.env for variant in cell.run.profile.suite.variants]
    settings += [record.environment for record in cell.records if record.environment is not None]
    if any(OF_ALLOCATORS.fullmatch(name) for environment in settings for name in environment):
        return None
    return reason("try_variant", **TCMALLOC)


def without_variables(code: str, names: Iterable[str], cells: Sequence[MeasuredCell], **values: Value) -> Reason:
    """Return the remedy to measure cells without some variables; the command has no variant, nor what one sets."""
    variant = cells[0].variant
    given = [name for name in names if variant is None or name not in variant.env]
    unset = " ".join(["env", *(f"-u {shlex.quote(name)}" for name in given), ""]) if given else ""
    return again(code, cells, {}, unset=unset, **values)
