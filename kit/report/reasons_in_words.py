"""The words of reasons: a template per code, and the look-up. A code without one, as of a newer kit, is shown as it is.

The audit's sentences stand above its rules, in `kit.audit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from kit.documentation import page
from kit.profile.fields import Reason, Value
from kit.report.values_in_words import by_name, one_line

LENGTH_MAX = 2000
# Templates name values; `{needed_b}` is shown in the unit that its name ends in, `{needed_b:,}` as Python formats it.
Templates = dict[str, str]


class _TemplateValue(NamedTuple):
    """A value in a template."""

    name: str
    value: Value

    def __format__(self, spec: str) -> str:
        if self.name == "message" and not self.value:
            return "no message"
        if self.name == "covers":
            return " and ".join(COVERS.get(name, name) for name in one_line(str(self.value)).split(", "))
        return format(self.value, spec) if spec else by_name(self.name, self.value)


def sentence(reason: Reason) -> str:
    """Return the reason in words, without a full stop; an unknown one as its code and values."""
    code = AT_A_LINE.get(reason.code, reason.code) if "line" in reason.values else reason.code
    words = filled(REASONS, code, reason.values)
    count = reason.values.get("groups")
    if count is not None and count == reason.values.get("of_groups"):
        words = words.replace(f"{count} of {count} groups show", "the table shows" if count == 1 else "all groups show")
    if "rank" not in reason.values:
        return words
    host = f" on {reason.values['host']}" if "host" in reason.values else ""
    return f"{words} (rank {reason.values['rank']}{host})"


def filled(templates: Templates, code: str, values: Mapping[str, Value]) -> str:
    """Return a code in the words of its template; without one, or with values of another kit, as it is."""
    if code in templates:
        with suppress(KeyError, ValueError, IndexError, AttributeError):
            shown = {name: _TemplateValue(name, value) for name, value in values.items()}
            return one_line(templates[code].format_map(shown), LENGTH_MAX)
    listed = ", ".join(f"{one_line(name)} {by_name(name, value)}" for name, value in values.items())
    return f"{name_of(code)} ({listed})" if listed else name_of(code)


def name_of(code: str) -> str:
    """Return a code as a name: ``step too short for clock``."""
    return NAMES.get(code) or one_line(code.replace("_", " "))


# A code is its own name, but for these.
NAMES = {"two_modes": "bimodal"}
# What a log of power covers.
COVERS = {
    "wall": "the whole machine", "gpu": "the GPU's board", "package": "the processor's packages",
    "module": "the whole module",
}  # fmt: skip
# How a process ended, or hung, where the line of the program is known that it was in.
AT_A_LINE = {"exit_code": "exit_code_at", "signal": "signal_at", "phase_timeout": "phase_timeout_at"}
OTHERS: Templates = {
    "node_state": "Slurm says {state}; not measured",
    "node_state_why": "Slurm says {state} ({why}); not measured",
    "node_time_limit": "its job exceeded the time limit; continue with --resume and a longer --time-limit",
    "node_failed": "{line}",
    "node_not_read": "{line}",
    "node_not_measured": "its profile holds published figures, no measurements",
    # Why a launch failed.
    "exception": "{type}: {message}",
    "program_raised": "{type}: {message} ({file}, line {line})",
    "refused": "{message}",
    "output_not_finite": "a loss or an output is not finite",
    "program_output_not_finite": "its step returned {nans} NaN and {infinite} infinities among {numbers} numbers; if "
    'they belong there, as a mask\'s -inf does, return {{"step": step, "finite": False}}',
    "output_not_read": "Steadykit cannot read the numbers of {kinds}",
    "output_need_not_be_finite": "the program says that they belong there",
    "out_of_device_memory": "out of the device's memory: {type}: {message}",
    "out_of_memory": "killed for lack of memory ({signal})",
    "signal": "killed by {signal}",
    "ranks_differ": "{what} is {there} here and {here} on rank 0",
    "exit_code": "ended with exit code {exit_code}: {message}",
    "exit_code_at": "ended with exit code {exit_code} ({file}, line {line})",
    "signal_at": "killed by {signal} ({file}, line {line})",
    "supervisor_ended": "its supervisor was killed by {signal}",
    "closed_its_pipes": "the worker closed its pipes to the runner",
    "protocol": "the worker sent an invalid answer: {message}",
    "phase_timeout": "no answer within {limit_s}",
    "phase_timeout_at": "no answer within {limit_s} ({file}, line {line})",
    "does_not_stop": "it did not stop within {limit_s}",
    "shared_process_ended": "its process ended while it measured {cell}",
    # Who reaches the sockets of ranks.
    "ranks_private": "only this cell's processes reach its ranks, which have a network of their own",
    "ranks_without_network": "only processes of this machine or container reach the ranks: it has no network",
    "ranks_on_loopback": "every user of this machine reaches the ranks: the kernel gives them no network of their own "
    "({call}: {error}); it does where `unshare --user --net true` works",
    "ranks_exposed": "everyone who reaches this machine reaches the ranks, and can run code as you: the kernel gives "
    "them no network of their own ({call}: {error}); it does where `unshare --user --net true` works",
    "ranks_on_hosts_network": "everyone who reaches a network between the hosts reaches the ranks",
    "ranks_exposed_on_hosts": "everyone who reaches one of the hosts reaches the ranks, and can run code as you",
    # Turns, data, backends.
    "lack_of_memory": "another worker needs {needed_b}, and {available_b} are available",
    "lack_of_device_memory": "{cell} ran out of its {share_pct} of the device's memory; it runs alone to get all of it",
    "fit_runs_alone": "a fit runs alone, from its first step to its last",
    "gpu_held": "another process uses GPU {gpu}, which accepts only one (nvidia-smi -i {gpu} lists it; "
    "-c DEFAULT allows several)",
    "several_hosts_energy": "it runs on several hosts, and only one is sampled",
    "exclusive_device": "only one process at a time can use the {device}",
    "synthetic_data": "synthetic data has no accuracy",
    "download_failed": "{file} cannot be downloaded ({tried})",
    "data_is_made": "the samples of {data} are made, as no data of this kind may be passed on freely",
    "no_mirror": "{file} is missing, and no known mirror has it",
    "data_not_mounted": "{data} is not in {folder}; on the host run `kit data fetch {data}`, and mount the folder with "
    "-v ~/.cache/steadykit:/data:ro (`kit launch` mounts it)",
    "folder_not_writable": "{folder} cannot be written: {error}",
    "not_installed": "{backend} is not installed",
    "pool_threads_not_listed": "its thread pool does not list its threads",
    "eager": "eager mode compiles nothing",
    "own_program": "it uses no framework whose compilations Steadykit can count",
    "compilations_not_counted": "its framework does not say what it compiled ({error})",
    "kernels_not_named": "its framework does not name the kernels of its layers ({error})",
    "newer_than_tested": "{title} {version} is newer than the releases that Steadykit was tested with (up to {tested})",
    "compiler_switched_off": "its compiler is switched off by {by}",
    "no_profiler": "its framework has no profiler that shows what runs",
    "profiler_failed": "its framework's profiler failed ({error})",
    "several_frameworks": "several frameworks are imported, and what the step returns is of none or of several",
    "fit_is_over": "a fit has no further step",
    "step_returns_no_loss": "its step does not return a single number, the loss",
    "state_not_found": "no floating-point array was found that its step refers to, of at most {most:,} numbers",
    "threads_left_to_framework": "a variant sets thread variables, and the framework does not report its threads",
    "threads_hardly_ran": "its busiest thread ran for only {busiest_ns} in its blocks; counting needs {needed_ns}",
    "threads_of_several_frameworks": "its steps return results of several frameworks ({frameworks}), which have "
    "threads of their own",
    "threads_by_environment": "environment variables set the number of threads",
    "run_interrupted": "the run was interrupted before this",
    "run_resumed": "the run was resumed, and counters started again",
    # Notes of launches.
    "trending": "its ratio to the other cells changes by {change_pct} from the first to the last third of a round",
    "step_grows": "its step becomes slower within each {stretch}, from {first_ns} to {last_ns}",
    "step_shrinks": "its step becomes faster within each {stretch}, from {first_ns} to {last_ns}",
    "two_modes": "step time is bimodal: {fast_ns} and {slow_ns}",
    "throttled": "throttled by the cgroup's CPU quota for {share_pct} of the time",
    "stalls": "occasional slow steps take {share_pct} of its time",
    "contended": "contended: other programs took {share_pct} of its CPUs' time",
    "device_throttled": "its device was slowed for {share_pct} of the time: {causes}",
    "power_capped": "the power limit of its device is {cap_w}; the default is {default_w}",
    "device_shared": "{processes} other processes used its device",
    "energy_disturbed": "its joules include other programs', which took {share_pct} of the CPUs' time meanwhile",
    "process_ended_early": "its process ended later, while it measured {cell}",
    "step_too_short_for_clock": "a step of {step_ns} is too short to time individually; the minimum is {shortest_ns}",
    "recompiled": "compiled again {count} times after the first step",
    "graph_breaks": "{count} graph breaks",
    "not_compiled": "{by} compiled nothing",
    "compiled_nonetheless": "{by} compiled it nonetheless",
    "compiler_off": "{switch} switches its compiler off",
    "work_left_out": "its compiler left out nearly all of the {flops_asked:,.0f} FLOPs that a step asks for",
    "constant_inputs": "its inputs are constants: a step computes {flops:,.0f} of the {flops_asked:,.0f} FLOPs that it "
    "asks for",
    "products_left_out": "its graph runs {products} of {products_asked} products",
    "keeps_compilations": "its process keeps compilations ({settings}), so that its first step may find those of an "
    "earlier one; to reuse them on purpose: kit run --reuse-compiled",
    # Why the first hour on a device could not check something.
    "nothing_to_check": "the run has nothing that it could check",
    "readings_lost": "{lost} of {readings} readings failed: the device went away",
    "sensor_slower_than_load": "its response takes {period_s}, too long for loads of {load_s}",
    "no_step": "it did not follow the load: the load explains {explained_pct:.0f} % of its readings",
    "own_programs_read_what_they_like": "Steadykit cannot know which variables a user program reads",
    "no_number": "it gave no number",
    "value_did_not_change": "it did not change within {limit_s}",
    # What a rule of the audit lacks.
    "not_recorded": "the profile does not contain it: {what}",
    "own_programs_unproved": "user programs bring their own data and weights",
    "no_parity": "no two cells recorded the losses of the same work",
    "no_energy_asked_for": "the run did not measure energy",
    "one_energy_source": "only one source of joules answered",
    "too_little_cpu_time": "{cpu_ns} of CPU time were measured, and {needed_ns} are needed",
    # Blank cells of a suite's own table.
    "contended_times": "contended: other programs took up to {contention_pct:.0f} % of the CPUs: this time is inflated "
    "by an unknown amount; stop other work and measure again",
    "measured_otherwise": "measured with {axis} {value}",
    "ceilings_not_measured": "no ceiling was measured on its device: kit run --ceilings",
    "ceilings_disturbed": "other programs disturbed every block of {operation}, so its rate is only a lower bound",
    "work_not_known": "the work of a step is unknown",
    "not_measured": "not measured",
    "not_published": "not published",
    "part_of_a_fit": "only part of the fit ran, so it has no score (leave out --quick or fit_steps)",
    "one_epoch": "the first epoch does not count, and there was no other",
    "no_classes": "it reconstructs its input and has no classes",
    "not_like_the_cpus": "not comparable with the CPU: {kind} is {value} here and {of_cpu} there",
    "gains_are_over_this": "gains are relative to this",
    "no_cpu_to_gain_over": "there is no CPU time to compare with",
    # What a machine or a container does to measurements, and the remedy.
    "no_quota": "no quota below the {cpus} usable CPUs; each framework gets threads: {threads}",
    "quota": "{limit:g} CPUs on {cpus}; each framework gets threads: {threads}, as one more would be throttled; remove "
    "the quota, and pin with taskset",
    "quota_in_container": "{limit:g} CPUs on {cpus}; each framework gets threads: {threads}, as one more would be "
    "throttled; give --cpuset-cpus instead of --cpus",
    "no_shared_cores": "no two usable CPUs share a core, as far as the system shows",
    "shared_cores": "the {cpus} usable CPUs are {cores} cores, with two threads on one core; pin to one CPU of each "
    "core: {first} (taskset -c, docker run --cpuset-cpus)",
    "memory_free": "{memory_b} free",
    "memory_small": "{memory_b} free, and three frameworks take about {needed_b}; workers that do not fit together run "
    "one after another; free some, or raise --memory",
    "shm_enough": "{shm_b}",
    "shm_small": "{shm_b}: user programs with data-loader processes need more; give --shm-size 1g",
    "disk_free": "{folder}: {free_b} free",
    "disk_small": "{folder}: {free_b} free; make room",
    "folder_read_only": "{folder} is not writable; choose another --out, or in a container mount a folder with "
    "-v $PWD/profiles:/profiles and give --user with its owner",
    "folder_in_container": "{folder} disappears with the container; mount a folder with -v $PWD/profiles:/profiles",
    "governor_fixed": "{governor}",
    "governor_varies": "{governor}: frequencies follow the load; on the host run cpupower frequency-set -g performance",
    "turbo_off": "off",
    "turbo_on": "on: frequencies follow temperature and the number of busy cores; to keep them constant, change "
    "{switch} on the host",
    "clocksource_fast": "{source}",
    "clocksource_slow": "{source}: reading the clock takes a microsecond or more; boot with clocksource tsc or "
    "kvm-clock",
    "steal_low": "{steal_pct} of CPU time since boot",
    "steal_high": "{steal_pct} of CPU time since boot went to other guests of this host; measure more rounds, or use "
    "a dedicated machine",
    "others_quiet": "other programs use {others_pct:.0f} % of the CPUs",
    "others_now": "other programs use {others_pct:.0f} % of the CPUs ({who})",
    "others_unseen": "other programs use {others_pct:.0f} % of the CPUs (their processes are not visible here)",
    "others_now_remedy": "other programs use {others_pct:.0f} % of the CPUs ({who}); stop them, or wait for them with "
    "kit run --wait-for-quiet 300",
    "others_unseen_remedy": "other programs use {others_pct:.0f} % of the CPUs (their processes are not visible here); "
    "wait for them with kit run --wait-for-quiet 300",
    "others_unknown": "this system does not report how much CPU other programs use (/proc/stat)",
    "pid_namespace_host": "the host's",
    "pid_namespace_own": "its own, so Steadykit cannot name other programs that use the CPUs or the GPU; --pid host "
    "shows them",
    "compiler": "{name}",
    "no_compiler": "none, and torch.compile needs one on a CPU; install g++",
    "tmp_noexec": "{folder} is mounted noexec, and torch.compile runs what it builds there; give --tmpfs /tmp:exec",
    "gpu_shared": "several processes can use it",
    "gpu_exclusive": "one process at a time, so workers run one after another and intervals are wider; "
    "nvidia-smi -i {gpu:d} -c DEFAULT",
    "mig_off": "off",
    "mig_on": "on: steps run on a slice, while joules cover the whole GPU; nvidia-smi -i {gpu:d} -mig 0",
    "persists": "on",
    "persists_not": "off: each run loads the driver again; nvidia-smi -i {gpu:d} -pm 1",
    "memlock_unlimited": "no limit",
    "memlock_small": "limited, and a TPU locks all the memory that it maps; give --ulimit memlock=-1",
    # What a machine or its sensors do not show: the obstacle, and what removes it.
    # Identity and state
    "not_shown": "{source} does not show it",
    "interpreter_not_asked": "{python} did not list its packages: {error}",
    "libc_not_named": "the C library does not name itself (musl does not)",
    "no_governor": "no cpufreq driver here (usual in a virtual machine): the host sets the governor",
    "no_throttle_count": "the kernel has no counter of thermal throttling (Intel has one, outside virtual machines)",
    "no_turbo_switch": "neither intel_pstate/no_turbo nor cpufreq/boost exists (usual in a virtual machine)",
    "no_thermometer": "the kernel shows no CPU thermometer (usual in a virtual machine)",
    "state_not_as_expected": "not readable: {error}",
    # Sensors
    "opening_failed": "it cannot be opened: {error}",
    "file_not_readable": "{file} cannot be read: {error}",
    "file_not_as_expected": "{file} has unexpected content",
    # CPU
    "no_long_block": "no long energy block ran in the rounds that count",
    "no_clock_sensor": "no sensor of the device's clock answered in it",
    "no_frequency": "there is no cpufreq driver and no aperfmperf counter (usual in a virtual machine), and the 'cpu "
    "MHz' of /proc/cpuinfo is nominal; measure on the host",
    "no_cpu_controller": "no cpu controller is mounted under {root}; mount cgroup2 there",
    "no_throttling_count": "{file} has no counter of throttling, because no CPU quota can apply to this group",
    "no_pressure": "the kernel keeps no pressure figures (before 4.20, or booted without psi=1)",
    # RAPL
    "no_powercap": "{root} does not exist: the kernel has no powercap (a virtual machine, a processor other than Intel "
    "or AMD, or no CONFIG_POWERCAP); measure on the host",
    "no_rapl_zone": "{root} has no RAPL package, dram or psys zone (usual in a virtual machine); on Intel or AMD "
    "hardware: modprobe intel_rapl_msr",
    "powercap_masked": "the container masks powercap ({zone} leads nowhere), as Docker and Podman do since "
    "CVE-2020-8694; start it with --security-opt systempaths=unconfined, and as root",
    "root_only": "only root can read {file}, as in every kernel since 2020 (CVE-2020-8694); run as root, or on the "
    "host: chmod a+r {file}",
    # Profiles of schema 3.0 have sensors of hardware monitors and Cray nodes on every machine
    "no_hwmon": "{root} does not exist: the kernel shows no hardware monitors (usual in a virtual machine)",
    "no_hwmon_power": "{root} has no monitor of power or energy (power*_average, power*_input, energy*_input); for "
    "ACPI meters: modprobe acpi_power_meter",
    "no_cray": "{root} does not exist: this is not a Cray node",
    "no_cray_counter": "{root} has no counter of energy or power",
    # NVML
    "nvml_package_missing": "the Python package nvidia-ml-py is not installed; pip install nvidia-ml-py",
    "nvml_library_missing": "libnvidia-ml.so.1 was not found: no NVIDIA driver is installed, or the container was "
    "started without --gpus all",
    "nvml_driver_not_loaded": "the NVIDIA library is installed, but its kernel driver is not loaded; modprobe nvidia "
    "on the host, and start a container with --gpus all",
    "nvml_no_permission": "this user may not open the NVIDIA devices; give read and write access to /dev/nvidia*",
    "nvml_version_mismatch": "NVIDIA's library and kernel driver have different versions; reload the driver or reboot",
    "nvml_no_gpu": "NVML lists no GPU; start the container with --gpus all, and check `nvidia-smi -L` on the host",
    "nvml_failed": "NVML: {error}",
    "nvml_not_supported": "the GPU or its driver does not offer it",
    "nvml_no_gpm": "the GPU or its driver does not offer it (GPM needs Hopper or later, and no MIG slices)",
    "nvml_no_energy_counter": "the GPU or its driver does not offer it (the energy counter needs Volta or later; "
    "virtual GPUs and MIG slices often have none)",
    # TPU
    "no_tpu": "there is no TPU: neither /dev/accel* (v4 and earlier) nor a /dev/vfio group (v5 and later) belongs to "
    "one; in a container on a TPU host give --device /dev/vfio (or /dev/accel0 …) and --ulimit memlock=-1",
    "tpu_without_library": "there is a TPU ({devices}), but Steadykit's Python has no libtpu; pip install libtpu",
    "tpu_without_counter": "there is a TPU ({devices}), but libtpu gives users no energy or power counter; joules can "
    "only come from the provider's own monitoring",
    # Sampler and energy
    "sampler_failed": "the sampler ended early (exit code {exit_code}) {error}",
    "gauge_window_too_short": "the block of {window_ns} is too short for this sensor: two of its periods take "
    "{needed_ns}",
    "gpu_in_slices": "the worker had a slice of the GPU (MIG), and the joules are the whole GPU's",
    "too_few_updates": "the sensor gave {updates} fresh values, and {needed} are needed",
    "too_few_readings": "the sensor answered {readings} times, and {needed} answers are needed",
    "energy_gap": "the sensor gave nothing for {gap_s:.3g} s; the limit is {most_s:.3g} s",
    "energy_is_modelled": "a model in the processor estimates it, and nothing measures it ({processor}: {source})",
    "power_moves": "power changed by {moved_pct} from one half of {block_s} to the other: the sensor is slower than "
    "the block, or the device had not settled; --energy makes the block longer",
    "sensor_lags": "the sensor lags by up to {lag_s}, so the joules may be off by {error_pct}",
    "constant_power": "the sensor is stuck: all {readings} readings were {power_w}",
    "negative_power": "the sensor read {power_w}, and no device gives power back",
    "reading_not_finite": "the sensor read a value that is not a number",
    "idle_not_measured": "idle power is measured only in rounds with a long energy block",
    "meter_misaligned": "the meter's readings may be {error_s:.3g} s off the run's clock; the limit is {most_s:.3g} s: "
    "use a longer block (--energy S), more readings per second, or a clock that is not set during the run",
    "meter_of_other_device": "the log covers {covers}, and this ran on a {device}; give another log, too (--meter)",
    "meter_of_other_count": "the log covers {gpus} GPUs, and this ran on {devices}; choose by --meter-column",
    "meter_read_nothing": "the meter's file has no reading during this run",
    "meter_implausible": "{power_w} is not what a machine like this draws ({least_w} to {most_w}); the file is to have "
    "watts, or joules, of this machine alone",
    "energy_block_without_time": "the profile does not say when this block ran",
    "meter_not_given": "no sensor of the device answers; `kit compare --meter FILE` reads an external meter's joules",
    "counter_stuck": "the counter did not change in {block_s:.3g} s: it is stuck, or every read failed",
    "counter_reset": "the counter fell during the block: it was reset, and its value is lost",
    "energy_block_too_short": "the block of {block_s:.3g} s is too short for this sensor, which needs {needed_s:.3g} s",
    "energy_low_coverage": "the sensor answered for {coverage_pct:.0f} % of the block; {needed_pct:.0f} % are needed",
    "zero_power": "{readings} of {of_readings} power readings were 0 W, but a running GPU draws power",
}
# Notes below a comparison, by what shows them. Each of these says that a number or a verdict means less than it seems
# to, or that something the user asked for is missing: every table has it.
ALWAYS: Templates = {
    "blocks_cut": "{cut} of {blocks} blocks were cut: their steps took four times as long as planned",
    "runs_failed": "{failed} of {runs} runs of {cell} ended with another exit code than 0 (--ignore-failure)",
    "parity_differs": "PARITY FAILED: the losses of {cell} differ from the other cells' by {difference:.0e}; do not "
    "compare its times",
    "mode_differs": "MODE NOT RUN: what {cell} ran is not its compile mode",
    "work_missing": "WORK LEFT OUT: {cell} does not do what its step asks for; do not compare its times",
    "own_programs": "user programs bring their own data and weights: parity is not checked",
    "output_unchecked": "what {program} returns was not checked for infinities and NaN",
    "reuse_compiled": "compile and start are of the first round: later rounds reuse its compilations",
    "energy_modelled": "MODELLED, not measured: J/1k, the joules per 1,000 samples ({sensors}), over {block_s}",
    "energy_not_reached": "energy: the run ended before the round that measures it",
    "energy_refused": "energy of {rows}: no valid reading of {sensor}",
    "float32_on_tpu": "float32 on a TPU takes several bfloat16 passes and is much slower than the frameworks' default; "
    "--dtype default measures the default",
    "data_synthetic": "synthetic data in the shapes of the real set: steps do the same work, accuracy is not measured",
    "images_same": "two of the images are identical: any difference between them is chance",
    "interrupted": "{profile} lacks rounds: the run was interrupted or its budget ended; measure them with "
    "`kit run --resume --out FILE`, which says what else to name",
    "launches_failed": "{failed} of {launches} launches of {cell} failed",
    "sequential": "cells ran one after another instead of in turns in {sequential} of {rounds} rounds: intervals are "
    "wider",
    "disturbed_cycles_count": "--all-cycles: these numbers include {disturbed} of {cycles} cycles that other programs "
    "disturbed",
    "skipped": "{backend} was skipped",
    "same_code": "no verdict, as the baseline loaded the same code: {rows} (was to differ by {by}); "
    "if they differ in other files, such as data: kit compare --force",
    "bound_threads": "no verdict between cells whose threads have a CPU each and others ({bound}): kit audit names the "
    "cause; to compare anyway: kit compare --force",
    "not_together": "{rows} rows have no verdict, as their cells did not take turns with the baseline's; to compare "
    "them, measure them in one group: kit run --compare {axes}",
    "spread_assumed": "{few} of {rows} intervals assume that sessions of one machine differ by {sd_pct} (SD); to "
    "measure this spread, alternate {needed} or more runs of each side, or measure both sides as variants of one run "
    "(kit run --variant)",
    "spread_assumed_unlike": "{few} of {rows} intervals assume that sessions of one machine differ by {sd_pct} (SD), "
    "and by 1.5 times that between two machines; to measure this spread, run each machine in {needed} sessions an hour "
    "or more apart",
    "joules_of_the_device": "J/1k is the device's alone: a GPU without its host, a CPU's packages",
    "joules_of_boards_and_others": "J/1k comes from several kinds of sensor ({sensors}): each has a gain error "
    "({low_pct:+} to {high_pct:+} % for GPUs, unknown for the others) that no ± includes and that differs between "
    "kinds",
    "joules_of_several_sensors": "J/1k comes from several kinds of sensor ({sensors}): each has an unknown gain error "
    "that no ± includes and that differs between kinds",
    "contended_side": "contended: other programs took up to {contention_pct:.0f} % of the CPUs in runs of {side}, "
    "which widens their intervals; stop other work",
    "device_idle": "this machine has a {kind} that was not used: {model}",
    "memory_of_unlike_devices": "peak memory is the process's resident set on a CPU, and the device's own memory on an "
    "accelerator: two different quantities",
    "runs_apart": "runs of {base} and {side} do not alternate: what the machine did in between is part of the "
    "difference, and a side's runs within an hour count as one session",
    "runs_in_turn": "runs of {base} and {side} alternate: {runs} runs make {pairs} pairs of neighbors in time",
    "runs_in_one_order": "runs of {base} and {side} alternate, but one side came first in each of the {pairs} pairs "
    "from {runs} runs: a steady drift is part of the difference; measure A B B A",
    "other_host": "{base} and {side} ran on two machines of the same hardware: what distinguishes these machines is "
    "part of the difference",
    "runs_overlap": "runs of {base} and {side} overlapped in time and disturbed each other: they are not paired; run "
    "them in turn",
    "runs_without_time": "a run of {base} or {side} does not record when it began: its side counts as one session",
    "clock_set_back": "the clock was set back between {first} and {second}: the order of the runs is unknown, and each "
    "side counts as one session",
    "computed_times": "≈ extrapolated: all updates × the mean step of the measured part",
    "meter_zone": "{file}: by the zone that was given, {profile} ran from {begin} to {end} by the clock of this log; "
    "if its power rose at another time, the zone is wrong",
    "meter_clock": "{profile}: nothing kept the machine's clock in time, so its blocks may be elsewhere in {file}",
    "same_run": "given more than once, counted once: {profiles}",
}
# These confirm or describe: only --wide has them.
WIDE: Templates = {
    "too_few_rounds": "preliminary: a verdict needs at least {needed} rounds, and there are {rounds}",
    "preliminary": "preliminary: {rounds} rounds; {needed} or more resolve smaller differences",
    "parity_agrees": "parity: the first {losses} losses agree within {difference:.0e}",
    "parity_equal": "parity: the first {losses} losses are equal",
    "meter": "meter {file}: {readings} readings, one every {spacing_s:.3g} s, aligned to the run's clock within "
    "{align_s:.3g} s; it measures {covers}",
    "meter_repeats": "meter {file}: {readings} readings, one every {spacing_s:.3g} s, with a fresh value every "
    "{period_s:.3g} s, aligned to the run's clock within {align_s:.3g} s; it measures {covers}",
    "energy_not_asked": "energy: not requested (--no-energy, or energy_s = 0 in the suite)",
    "energy_no_sensor": "energy: no sensor",
    "images": "images: {listed}",
    "cycles_left_out": "{left_out} of {cycles} cycles are left out: other programs used the CPUs or the device",
    "by_metric": "verdicts compare {metric}",
    "versions": "versions of {backend}: {listed}",
    "ceilings_measured": "{operations} ceilings were measured: `bound` is the percentage of one that a network reaches",
    "all_reduce_not_hidden": "by default, PyTorch overlaps the all-reduce with computing on several GPUs and JAX does "
    f"not; {page('how-to/scaling.md#efficiency-and-the-all-reduce')} has a variant of JAX that does",
}
# These explain a column, by its name: the legend has them where the column is shown.
OF_COLUMNS: dict[str, Templates] = {
    "cost_per_million": {
        "cost": "a million samples at {hour} an hour plus {kwh} a kWh for the joules shown",
        "cost_of_time": "a million samples at {hour} an hour",
        "cost_of_energy": "energy alone, a million samples at {kwh} a kWh for the joules shown",
    },
    "energy_per_sample_j": {
        "energy_device_counter": "joules per 1,000 samples by device counter ({sensors}), ±{error_pct:.1f} % over "
        "{block_s}",
        "energy_integrated_power": "joules per 1,000 samples by integrated power ({sensors}), ±{error_pct:.1f} % "
        "over {block_s}",
        "energy_external_meter": "joules per 1,000 samples of {covers} by external meter, ±{error_pct:.1f} % over "
        "{block_s}",
        "energy_tier_unknown": "joules per 1,000 samples ({sensors}), over {block_s}",
    },
    "sustained_clock_mhz": {"sustained_refused": "of the device in the long energy block; none of {rows}"},
    "cpu_per_sample_ns": {"cpu_seconds": "CPU seconds per 1,000 samples"},
    "latency_ns": {"by_latency": "latency of single steps; verdicts compare it (for fits: the whole time)"},
    "efficiency": {
        "scaling": "samples/s per device relative to the baseline (on a CPU: per thread, as its devices share "
        "the threads)"
    },
    "all_reduce": {"all_reduce": "fraction of the step time that disappears without gradient averaging"},
    "sample_ns": {"per_sample": "step ÷ batch; verdicts compare it"},
    "figure": {
        "figure": "{unit} that the command gives, {better} is better; verdicts compare it, slower is worse",
        "figure_beside": "{unit} that the command gives, {better} is better; verdicts compare the {by}",
    },
}
# These explain a letter behind a value, by the metric that is true then (`kit.compare.ratios.Metric.mark`).
OF_MARKS: dict[str, Templates] = {
    "is_disturbed": {
        "no_clean_round": "contended: other programs disturbed {left_out} of {cycles} cycles, so {groups} of "
        "{of_groups} groups show the steps of the least disturbed round, without a verdict; stop other "
        "work, wait for it (--wait-for-quiet 300), or leave it CPUs (--threads 1)",
        "no_round_alone": "contended: other processes used the device in {left_out} of {cycles} cycles, so {groups} of "
        "{of_groups} groups show the steps of the least disturbed round; end these processes (nvidia-smi lists them)",
        "no_round_counts": "disturbed: {left_out} of {cycles} cycles do not count ({reasons}), so {groups} of "
        "{of_groups} groups show the steps of the round in which other programs took least",
    },
    "sustained_differs": {
        "sustained_differs": "joules come from the long energy block, samples/s from short blocks: the steps differ"
    },
    "process_shared": {"process_shared": "peak of a process that several cells shared"},
    "warm_start": {"warm_start": "warm process: start-up and import are excluded"},
}
# The letter behind the value.
LETTERS = {"is_disturbed": " c", "sustained_differs": " †", "process_shared": "*", "warm_start": " w"}
# These are bad enough to be printed in bold.
LOUD = ("parity_differs", "energy_modelled", "mode_differs", "work_missing")
# Every code with words.
REASONS: Templates = (
    OTHERS
    | ALWAYS
    | WIDE
    | {code: words for listed in (*OF_COLUMNS.values(), *OF_MARKS.values()) for code, words in listed.items()}
)
NOTHING_DIFFERS = "No recorded fact of machine, software or settings differs."
# What a difference may do to the numbers, by the fact's key in FACTS, where it does not explain itself.
EFFECTS: Templates = {
    "data": "Steps used other samples, so accuracy and losses are not comparable, nor are joules: power depends on "
    "values.",
    "other_losses": "From the same weights and batches they compute different losses, so they are different programs.",
    "threads": "Another number of threads divides the work differently.",
    "bound_threads": "Threads that share a CPU wait for each other.",
    "epochs": "A fit takes as long as its epochs.",
    "memory_b": "A different size usually means different modules or channels, and so a different bandwidth.",
    "hypervisor": "A hypervisor takes time for itself and other guests, and hides clocks and power.",
    "cpu.flags": "Libraries choose kernels by the instructions they find.",
    "cpu.microcode": "Microcode brings mitigations, some of which cost time.",
    "container.engine": "Another engine may mean other limits, file systems and security filters.",
    "container.cpu_limit": "The kernel throttles a process beyond its quota, so steps get longer and vary more.",
    "container.memory_limit_b": "Near its limit a container reclaims page cache, or the kernel kills it.",
    "hosts": "Gradients cross a network between hosts.",
    "kernel": "The kernel decides scheduling, memory management and mitigations.",
    "software.package.*": "It is the measured framework, or a library that it computes with.",
    "python": "A framework's work between kernels runs in Python, which matters most for short steps.",
    "environment.*": "Libraries read it to choose kernels, threads or allocators.",
    "program.*": "The file of the user program differs, so it may compute something else.",
    "plan": "Shorter rounds vary more, and a shorter warm-up may not be enough.",
    "cpu.governor": "It decides how fast clocks rise and how high.",
    "cpu.turbo": "With turbo, clocks follow temperature and load.",
    "device.power_cap_w": "A lower cap lowers the clocks as soon as the load reaches it.",
    "device.mig": "A slice has only a part of the GPU's processors and memory.",
    "load_1min": "Other programs took CPUs, caches and memory bandwidth.",
    "cpu.temperature_c": "A warm processor reaches its thermal limit sooner.",
    "stolen_pct": "The hypervisor gave that time to other guests.",
    "waiting_pct": "Tasks were ready and found no free CPU.",
}
