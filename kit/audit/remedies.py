"""What the rules recommend: the words of each remedy, by its code; templates of the values that come with it."""

from __future__ import annotations

from collections.abc import Collection

from kit.profile.cell import Variant
from kit.profile.fields import Reason, reason

REMEDIES = {
    "quiet_machine": "Stop other programs, wait for them (kit run --wait-for-quiet 300), or leave them CPUs "
    "(--threads, taskset)",
    "more_memory": "Free memory, raise the limit (docker run --memory), or measure one framework at a time (--backend)",
    "raise_quota": "Raise the quota (docker run --cpus), or give whole CPUs (--cpuset-cpus)",
    "equal_threads": "Give all cells the same number of threads; kit show lists them",
    "larger_batch": "Try a larger --batch, or fewer CPUs (taskset)",
    "measure_again": "Measure again; kit run reports what fails",
    "see_what_runs": "Check that a step runs the model on the measured device and returns what it computes",
    "see_where_it_ran": "Check with kit show where the work ran: it may wait, spin or stay on the host",
    "cool_board": "Check temperature and power with kit show; this clock may be all that the device can hold",
    "raise_power_cap": "Raise the power cap, now {cap_w} of {default_w}: nvidia-smi -pl",
    "other_sensor": "Use another sensor of the device, or an external meter (--meter)",
    "try_variant": "Try another allocator: --variant {variant} (apt: {package})",
    "count_system_calls": "Count the system calls: strace -c -f -p PID, or perf top",
    "synchronize_clock": "Synchronize it before you use an external meter: timedatectl set-ntp true",
    "cool_machine": "Check the cooling, or fix a lower clock: cpupower frequency-set",
    "whole_cores": "Pin to one CPU of each core (taskset -c); kit doctor names them",
    "one_node": "Keep the run on one node: numactl --cpunodebind=0 --membind=0",
    "log_recompiles": "Set {setting} to log the reason",
    "resident_batches": "Prepare batches ahead of time, or keep them on the device (--feed device shows the gain)",
    "see_latency": "Compare median, p95 and p99 (--wide), or judge by the median step (--by latency)",
    "resume_or_fix": "Fix the failure that kit show reports, then measure again (kit run --resume)",
    "lower_rate": "Lower the learning rate, or find out where the loss diverges",
    "same_arithmetic": "Do not compare its times; kit show has its losses",
    "free_a_cpu": "Leave a CPU to the sampler, or stop other programs",
    "other_code": "Check which copy is imported: the program's folder comes first, then PYTHONPATH, then the "
    "environment",
    "set_for_all": "Leave {name} out, so that all frameworks get the same number of threads",
    "usual_cpus_of_threads": "Leave {name} out, so that the threads of all frameworks may use the same CPUs",
    "usual_devices": "Leave {name} out, so that all frameworks divide the CPUs alike (kit run --devices gives several)",
    "usual_precision": "Leave {name} out, so that all frameworks compute at the precision of --dtype",
    "usual_compilation": "Leave {name} out, so that each framework compiles as it does by default",
    "usual_communication": "Leave {name} out, so that each framework communicates as it does by default",
    "usual_kernels": "Leave {name} out, so that each framework chooses its kernels by itself",
    "usual_settings": "Leave {name} out, or give the other frameworks what has the same effect",
    "unset": "Run without it: {command}",
    "leave_out_of_variant": "Leave {names} out of the variant {variant}",
    "let_threads_move": "Do not bind the program's threads: os.sched_setaffinity and psutil's cpu_affinity do, and "
    "imports of libraries may; to choose CPUs: taskset -c 0-1 kit run",
    "same_allocator": "Use one allocator for all, as a variant: --variant NAME:env=LD_PRELOAD=LIBRARY",
    "same_precision": "Use --dtype float32 or tf32, which all frameworks multiply alike",
    "look_at_supply": "Check power supply and cables, as the GPU is slow and far below its cap: nvidia-smi -q -d "
    "PERFORMANCE",
    "at_cap": "Raise the cap for more speed: nvidia-smi -pl",
    "one_at_a_time": "Free the device's memory, choose a smaller --batch, or measure one framework at a time",
    "measure_alone": "Measure each framework in a run of its own (--backend), and compare the runs",
    "use_measured_lag": "Set KIT_GPU_FILE to this profile: joules then allow for the measured lag",
    "free_board": "End the other processes (nvidia-smi lists them), or choose a device with CUDA_VISIBLE_DEVICES",
    "whole_board": "Turn MIG off to measure the whole GPU: nvidia-smi -mig 0",
    "reset_board": "Distrust its results; reset it (nvidia-smi --gpu-reset), and see nvidia-smi -q -d ECC,ROW_REMAPPER",
    "reseat_board": "Check slot, riser and other cards on these lanes: nvidia-smi -q shows the link",
    "lock_clocks": "Lock the clock to one that all cells can hold: nvidia-smi -lgc",
    "same_caps": "Set the same cap on all GPUs (nvidia-smi -pl), or compare these machines separately",
    "whole_machine": "Give the run all CPUs of the package, and stop other programs",
    "longer_energy_warmup": "Load the device for longer: kit run --energy S, or warmup_s in the suite",
    "external_meter": "Decide with an external meter (--meter)",
    "longer_blocks": "Use longer blocks (block_s in the suite), so that the step is nearer to that of the energy block",
    "longer_energy": "Measure energy for longer: kit run --energy S",
}
TCMALLOC = {"variant": "tcmalloc:env=LD_PRELOAD=libtcmalloc_minimal.so.4", "package": "libtcmalloc-minimal4"}


def without_variables(names: Collection[str], variant: Variant | None) -> Reason:
    """Return the remedy for variables that a run should not have."""
    if variant is not None and set(names) & set(variant.env):
        return reason("leave_out_of_variant", names=", ".join(names), variant=variant.name)
    return reason("unset", command=f"env {' '.join(f'-u {name}' for name in names)} kit run")


def other_allocator(variant: Variant | None) -> Reason | None:
    """Return the remedy, unless the cell already runs with an allocator of its own."""
    return None if variant is not None and "LD_PRELOAD" in variant.env else reason("try_variant", **TCMALLOC)
