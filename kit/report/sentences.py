"""Every sentence: a template per code, and the look-up. A code without one, as of a newer kit, is shown as it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from kit.profile.reason import Reason, Value
from kit.report.plain import one_line
from kit.report.quantity import by_name

LENGTH_MAX = 2000
# Templates name values; `{needed_b}` is shown in the unit that its name ends in, `{needed_b:,}` as Python formats it.
Templates = dict[str, str]


class _Shown(NamedTuple):
    """A value in a template."""

    name: str
    value: Value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else by_name(self.name, self.value)


def sentence(reason: Reason) -> str:
    """Return the reason in words, without a full stop; an unknown one as its code and values."""
    words = filled(REASONS, reason.code, reason.values)
    if "rank" not in reason.values:
        return words
    host = f" on {reason.values['host']}" if "host" in reason.values else ""
    return f"{words} (rank {reason.values['rank']}{host})"


def filled(templates: Templates, code: str, values: Mapping[str, Value]) -> str:
    """Return a code in the words of its template; without one, or with values of another kit, as it is."""
    if code in templates:
        with suppress(KeyError, ValueError, IndexError, AttributeError):
            shown = {name: _Shown(name, value) for name, value in values.items()}
            return one_line(templates[code].format_map(shown), LENGTH_MAX)
    listed = ", ".join(f"{one_line(name)} {by_name(name, value)}" for name, value in values.items())
    plain = one_line(code.replace("_", " "))
    return f"{plain} ({listed})" if listed else plain


REASONS: Templates = {
    "node_state": "{state} in Slurm; not measured",
    "node_state_why": "{state} in Slurm ({why}); not measured",
    "node_time_limit": "its job was over the time limit; --resume goes on, with a longer --time-limit",
    "node_failed": "{line}",
    "node_not_read": "{line}",
    "node_not_measured": "published, not measured: there is nothing to judge",
    # Why a launch failed.
    "exception": "{type}: {message}",
    "program_raised": "{type}: {message} ({file}, line {line})",
    "refused": "{message}",
    "output_not_finite": "a loss or an output is not finite",
    "out_of_device_memory": "out of the device's memory: {type}: {message}",
    "out_of_memory": "killed for lack of memory ({signal})",
    "signal": "killed by {signal}",
    "rank_exit": "ended with exit code {exit_code}",
    "ranks_differ": "has {what} {there}, and rank 0 {here}",
    "exit_code": "ended with exit code {exit_code}: {message}",
    "closed_its_pipes": "closed its pipes to the runner",
    "protocol": "its answer is not this kit's: {message}",
    "phase_timeout": "no answer within {limit_s}",
    "does_not_stop": "not stopped within {limit_s} of SIGSTOP",
    "shared_process_ended": "its process ended while it measured {cell}",
    # Turns, data, backends.
    "lack_of_memory": "a further member needs {needed_b}, {available_b} are available",
    "lack_of_device_memory": "{cell} ran out of its {share_pct} of the device's memory: alone it has all that members "
    "may take",
    "fit_runs_alone": "a fit runs alone from its first to its last step",
    "board_held": "another process holds GPU {gpu}, which takes one at a time (nvidia-smi -i {gpu} lists it, and "
    "-c DEFAULT lets several in)",
    "several_hosts": "a member on several hosts cannot be stopped while others run",
    "several_hosts_energy": "drawn on several hosts, of which one is sampled",
    "exclusive_device": "only one process at a time may hold the {device}",
    "synthetic_data": "synthetic data has no accuracy",
    "download_failed": "{file} cannot be downloaded ({tried})",
    "no_mirror": "{file} is not there, and no mirror is known that has it",
    "data_not_mounted": "{data} is not in {folder}; on the host: `kit data fetch {data}`, and mount that folder, "
    "-v ~/.cache/steadykit:/data:ro (`kit launch` mounts it)",
    "folder_not_writable": "{folder} cannot be written: {error}",
    "not_installed": "{backend} is not installed",
    "pool_threads_not_listed": "its thread pool does not list its threads",
    "eager": "eager mode compiles nothing",
    "own_program": "a program compiles as it likes",
    "threads_left_to_framework": "a variant sets variables for threads, and the framework tells no number",
    "threads_hardly_ran": "its busiest thread ran for {busiest_ns} in its blocks: {needed_ns} are needed to tell",
    "threads_by_environment": "set by environment variables, which its framework reads",
    "run_interrupted": "the run was interrupted before it",
    "run_resumed": "the run was resumed: counters began anew",
    # Marks.
    "trending": "its ratio to the others moved by {change_pct} from the first to the last third of a round",
    "two_modes": "step time is bimodal: {fast_ns} and {slow_ns}",
    "throttled": "throttled by cgroup quota {share_pct} of the time",
    "stalls": "stalls for {share_pct} of its time",
    "contended": "contended: others took {share_pct} of its CPUs' time",
    "board_throttled": "its board was slowed {share_pct} of the time: {causes}",
    "power_capped": "its board may draw {cap_w} of its usual {default_w}",
    "board_shared": "its board was shared with {processes} other processes",
    "process_ended_early": "its process ended later, while it measured {cell}",
    "step_too_short_for_clock": "a step of {step_ns} is shorter than {shortest_ns}, which the clock may time singly",
    "recompiled": "compiled again {count} times after the first step",
    "graph_breaks": "{count} graph breaks",
    # Why the hardware self-test could not check something.
    "undecided": "undecided after {blocks} blocks in {taken_s}; about {needed_s} would decide it at this noise",
    "not_seen_again": "beyond its limit in some of {looks} looks, not in all: something disturbed them",
    "readings_lost": "{lost} of {readings} readings failed: the board went away",
    "sensor_slower_than_load": "its response takes {period_s}, longer than loads of {load_s} show",
    "no_step": "it did not follow the load: steps explain {explained_pct:.0f} % of its readings",
    "too_few_blocks": "too few blocks",
    "own_programs_read_what_they_like": "which variables a program of one's own reads is not known",
    "no_number": "it gave no number",
    "no_sensor": "no sensor of this board can be read",
    "no_device_events": "the framework times nothing by the device's clock",
    "no_energy_counter": "no board here has an energy counter",
    "one_framework": "only one framework is here",
    "value_did_not_change": "it did not change within {limit_s}",
    "process_ended": "its process ended",
    # What a rule of the audit lacks.
    "not_recorded": "the profile does not have it: {what}",
    "own_programs_unproved": "programs bring their own data and weights",
    "no_parity": "no two cells recorded the losses of the same work",
    "no_fleet": "fewer than {needed} profiles of one kind of machine were given",
    "no_energy_asked_for": "no joules were asked for",
    "one_energy_source": "one source of joules alone answered",
    "too_few_energy_blocks": "{blocks} energy blocks after another member's, {needed} of unlike ones are needed",
    "too_little_cpu_time": "{cpu_ns} of CPU time, {needed_ns} are needed",
    # Notes beside a comparison.
    "too_few_rounds": "preliminary: {rounds} of at least {needed} rounds that a verdict needs",
    "preliminary": "preliminary: {rounds} rounds ({needed} and more settle smaller differences)",
    "parity_agrees": "parity: the first {losses} losses agree within {difference:.0e}",
    "parity_equal": "parity: the first {losses} losses are equal",
    "parity_differs": "PARITY FAILED: {cell} computes other losses than the rest ({difference:.0e} apart)",
    "own_programs": "programs bring their own data and weights: that they compute the same is not proved",
    "cost": "cost/1M: of a million samples, at {hour} an hour and {kwh} a kWh of the joules shown",
    "cost_of_time": "cost/1M: of a million samples, at {hour} an hour",
    "cost_of_energy": "cost/1M: of a million samples, at {kwh} a kWh of the joules shown; of energy alone",
    "energy_device_counter": "energy: by device counter ({sensors}), {block_s} a block, ±{error_pct:.1f} %",
    "energy_integrated_power": "energy: by integrated power ({sensors}), {block_s} a block, ±{error_pct:.1f} %",
    "energy_external_meter": "energy: by external meter ({sensors}), {block_s} a block, ±{error_pct:.1f} %",
    "meter": "meter {file}: {readings} readings, {spacing_s:.3g} s apart, aligned to the run's clock within "
    "{align_s:.3g} s; joules of the whole machine",
    "energy_modelled": "energy: MODELLED, not measured ({sensors}), {block_s} a block",
    "energy_tier_unknown": "energy: by {sensors}, {block_s} a block",
    "energy_not_asked": "energy: not asked for (--no-energy, or a suite with energy_s = 0)",
    "energy_not_reached": "energy: the round that has it was not measured",
    "energy_no_sensor": "energy: no sensor",
    "energy_refused": "energy: refused",
    "cpu_seconds": "CPU s/1k: CPU seconds per 1,000 samples, where there are no joules",
    "float32_on_tpu": "float32 on a TPU is multiplied in several bfloat16 passes, much slower than the frameworks' own "
    "default: --dtype default measures that",
    "data_synthetic": "synthetic data in the shapes of a real set: times are valid, there is no accuracy",
    "images": "images: {listed}",
    "images_same": "two of the images are one and the same: the difference between them is chance",
    "interrupted": "{profile} was interrupted and lacks rounds; `kit run --resume --out FILE` measures them "
    "(or the `kit launch` that began it)",
    "launches_failed": "{failed} of {launches} launches of {cell} failed",
    "sequential": "members ran one after another, not interleaved, in {sequential} of {rounds} rounds: intervals are "
    "wider",
    "cycles_left_out": "{left_out} of {cycles} cycles do not count: others took CPUs in them, or the device",
    "disturbed_cycles_count": "--all-cycles: {disturbed} of {cycles} cycles, in which others took CPUs or the device, "
    "count here as all others",
    "no_clean_round": "c  others took CPUs in {left_out} of the {cycles} cycles of {groups} of {of_groups} groups: "
    "steps are of the least disturbed round; stop other work, or `kit run --wait-for-quiet 300`",
    "no_round_alone": "c  processes of others were on the device in {left_out} of the {cycles} cycles of {groups} of "
    "{of_groups} groups: steps are of the least disturbed round; end those processes (nvidia-smi names them)",
    "skipped": "{backend} was skipped",
    "sustained_differs": "† joules are of a sustained step, samples/s of bursts between other members; --wide has both",
    "process_shared": "* of a process that held several cells",
    "warm_start": "w  built in a process that had run another program: without its start and import",
    "by_latency": "judged by latency: the median of steps that are waited for one by one; fits by their whole time",
    "spread_assumed": "{few} of {rows} intervals assume that sessions of one machine differ by {sd_pct} (SD); "
    "alternate the sides' runs, {needed} of each and more, or measure both sides as variants of one run "
    "(kit run --variant)",
    "spread_assumed_unlike": "{few} of {rows} intervals assume that sessions of one machine differ by {sd_pct} (SD), "
    "and by half as much again against another machine's; runs of each machine in {needed} sessions, an hour and more "
    "apart, measure it",
    "joules_of_the_device": "J/1k: joules per 1,000 samples, of the device alone: a GPU's are its boards' without the "
    "host that feeds them, a CPU's its packages'",
    "joules_of_boards_and_others": "J/1k of several kinds of sensor stand side by side ({sensors}): each has a gain "
    "error of its own, of boards {low_pct:+} to {high_pct:+} %, of others not known; no ± has it, and between kinds it "
    "does not cancel",
    "joules_of_several_sensors": "J/1k of several kinds of sensor stand side by side ({sensors}): each has a gain "
    "error of its own, not known here; no ± has it, and between kinds it does not cancel",
    "contended_times": "contended: others took up to {contention_pct:.0f} % of the CPUs meanwhile: the time is longer "
    "than this network needs, by how much is not known; stop other work, and measure again",
    "contended_side": "contention: in runs of {side} others took up to {contention_pct:.0f} % of the CPUs: their "
    "intervals are wider by that; stop other work",
    "device_idle": "a {kind} is here and was not used: {model}",
    "measured_otherwise": "measured with {axis} {value}",
    "runs_apart": "runs of {base} and {side} do not alternate: what the machine did in between is in the difference, "
    "and runs of a side that follow each other within an hour are one session",
    "runs_in_turn": "runs of {base} and {side} alternate: {pairs} pairs of neighbours in time, of {runs} runs",
    "runs_in_one_order": "runs of {base} and {side} alternate: {pairs} pairs of neighbours in time, of {runs} runs; "
    "one side came first in each, so a steady drift is in the difference: measure A B B A",
    "other_host": "{base} and {side} ran on two machines of like hardware: what tells these apart is in the difference",
    "runs_overlap": "runs of {base} and {side} ran at the same time and disturbed each other: they are not paired; run "
    "them in turn",
    "runs_without_time": "a run of {base} or {side} does not say when it began: its side is taken for one session",
    "clock_set_back": "the clock was set back between {first} and {second}: the order of the runs is not known, and "
    "each side is taken for one session",
    "versions": "{backend}: {listed}",
    "ceilings_measured": "{operations} ceilings were measured, too: --wide has them, and each network's share",
    "ceilings_not_measured": "no ceiling was measured on its device: kit run --ceilings",
    "work_not_known": "what a step computes is not known",
    "scaling": "efficiency: samples/s over the baseline's, per device (on a CPU per thread: devices divide its CPUs)",
    "all_reduce_not_hidden": "JAX on several GPUs: XLA's scheduler that overlaps the all-reduce with computing is off "
    "by default, and PyTorch overlaps it: docs/how-to/scaling.md#efficiency-and-the-all-reduce has the variant",
    "all_reduce": "all-reduce: its share of a step, from the same step without it",
    "per_sample": "batches are compared by time per sample",
    # Blank cells of a suite's own table.
    "not_measured": "not measured",
    "not_published": "not published",
    "part_of_a_fit": "a part of a fit has no score (leave out --quick, or fit_steps)",
    "computed_times": "≈ computed: all updates × the mean step of the part that was measured",
    "one_epoch": "the first epoch is left out, and there was no other",
    "no_classes": "it reconstructs its input and tells no classes apart",
    "not_like_the_cpus": "not comparable with the CPU's: {kind} {value}, there {of_cpu}",
    "gains_are_over_this": "gains are over this",
    "no_cpu_to_gain_over": "no CPU's time to compare with",
    "same_run": "given more than once, counted once: {profiles}",
    # What a machine or a container does to measurements, and the remedy.
    "no_quota": "none below the {cpus} usable; threads of a framework: {threads}",
    "quota": "{limit:g} CPUs on {cpus}; threads of a framework: {threads}, as one more would be throttled; take the "
    "quota away, and pin with taskset",
    "quota_in_container": "{limit:g} CPUs on {cpus}; threads of a framework: {threads}, as one more would be "
    "throttled; give --cpuset-cpus in place of --cpus",
    "no_shared_cores": "each usable CPU is a core of its own, as far as is shown",
    "shared_cores": "the {cpus} usable CPUs are {cores} cores: two threads share one; pin to one CPU of each core: "
    "{first} (taskset -c, docker run --cpuset-cpus)",
    "memory_free": "{memory_b} free",
    "memory_small": "{memory_b} free, and three frameworks together take about {needed_b}: members run "
    "one after another where they do not fit; free some, or raise --memory",
    "shm_enough": "{shm_b}",
    "shm_small": "{shm_b}: programs whose data loaders have worker processes need more: --shm-size 1g",
    "disk_free": "{folder}: {free_b} free",
    "disk_small": "{folder}: {free_b} free; make room",
    "folder_read_only": "{folder} is not writable: in a container mount one, -v $PWD/profiles:/profiles, and give "
    "--user with its owner; else choose another --out",
    "folder_in_container": "{folder} is in the container and goes with it: mount a folder, -v $PWD/profiles:/profiles",
    "governor_fixed": "{governor}",
    "governor_varies": "{governor}: frequencies follow the load; on the host: cpupower frequency-set -g performance",
    "turbo_off": "off",
    "turbo_on": "on: frequencies follow temperature and the number of busy cores; to fix them, on the host write the "
    "other value to {switch}",
    "clocksource_fast": "{source}",
    "clocksource_slow": "{source}: a stamp costs a microsecond and more; boot with a clocksource of tsc or kvm-clock",
    "steal_low": "{steal_pct} of CPU time since boot",
    "steal_high": "{steal_pct} of CPU time since boot: other guests of this host take it; take more rounds, or a "
    "machine of your own",
    "others_quiet": "others use {others_pct:.0f} % of the CPUs",
    "others_now": "others use {others_pct:.0f} % of the CPUs ({who})",
    "others_unseen": "others use {others_pct:.0f} % of the CPUs (none of their processes can be seen here)",
    "others_now_remedy": "others use {others_pct:.0f} % of the CPUs ({who}); stop them, or let a run wait for that: "
    "kit run --wait-for-quiet 300",
    "others_unseen_remedy": "others use {others_pct:.0f} % of the CPUs (none of their processes can be seen here); let "
    "a run wait until they stop: kit run --wait-for-quiet 300",
    "others_unknown": "what others use of the CPUs is not counted here (/proc/stat)",
    "pid_namespace_host": "the host's",
    "pid_namespace_own": "its own: processes of others that use the CPUs or the GPU are not named; --pid host "
    "shows them",
    "compiler": "{name}",
    "no_compiler": "none: torch.compile needs one on a CPU; install g++",
    "tmp_noexec": "{folder} is mounted noexec: torch.compile runs what it builds there; give --tmpfs /tmp:exec",
    "gpu_shared": "several processes may use it",
    "gpu_exclusive": "one process at a time: members run one after another, and intervals are wider; "
    "nvidia-smi -i {gpu:d} -c DEFAULT",
    "mig_off": "off",
    "mig_on": "on: a slice is measured, and joules are the whole board's where there are any; nvidia-smi -i {gpu:d} "
    "-mig 0",
    "persists": "on",
    "persists_not": "off: the driver is loaded anew for each run; nvidia-smi -i {gpu:d} -pm 1",
    "memlock_unlimited": "no limit",
    "memlock_small": "limited: a TPU wants all that it maps locked; give --ulimit memlock=-1",
    # What a machine or its sensors do not show: the obstacle, and what removes it.
    # Identity and state
    "not_shown": "{source} does not show it",
    "interpreter_not_asked": "{python} could not be asked for its packages: {error}",
    "libc_not_named": "the C library does not name itself (musl does not)",
    "no_governor": "no cpufreq driver here (usual in a virtual machine): the host sets the governor",
    "no_throttle_count": "the kernel counts no thermal throttling here (it does on Intel, and not in virtual machines)",
    "no_turbo_switch": "neither intel_pstate/no_turbo nor cpufreq/boost is there (usual in a virtual machine)",
    "no_thermometer": "the kernel shows no CPU thermometer (usual in a virtual machine)",
    "state_not_as_expected": "not readable: {error}",
    # Sensors
    "opening_failed": "opening it failed: {error}",
    "file_not_readable": "{file} is not readable: {error}",
    "file_not_as_expected": "{file} does not hold what was expected",
    # CPU
    "no_frequency": "no cpufreq driver and no aperfmperf counter (usual in a virtual machine): the 'cpu MHz' of "
    "/proc/cpuinfo is then nominal, not measured; measure on the host",
    "no_cpu_controller": "no cpu controller is mounted under {root}: mount cgroup2 there",
    "no_throttling_count": "{file} counts no throttling: no CPU quota can apply to this group",
    "no_pressure": "the kernel keeps no pressure figures (before 4.20, or booted without psi=1)",
    # RAPL
    "no_powercap": "{root} does not exist: no powercap in this kernel (a virtual machine, a processor other than Intel "
    "or AMD, or no CONFIG_POWERCAP); measure on the host",
    "no_rapl_zone": "{root} holds no RAPL package, dram or psys zone (usual in a virtual machine); on Intel or AMD "
    "hardware: modprobe intel_rapl_msr",
    "powercap_masked": "{zone} leads nowhere: the container masks powercap, as Docker and Podman do since "
    "CVE-2020-8694; start it with --security-opt systempaths=unconfined, and as root",
    "root_only": "{file} is readable by root alone, as in every kernel since 2020 (CVE-2020-8694): run as root, or on "
    "the host: chmod a+r {file}",
    # Hardware monitors, Cray
    "no_hwmon": "{root} does not exist: the kernel shows no hardware monitors (usual in a virtual machine)",
    "no_hwmon_power": "{root} holds no monitor of power or energy (power*_average, power*_input, energy*_input); ACPI "
    "meters: modprobe acpi_power_meter",
    "no_cray": "{root} does not exist: this is no Cray node",
    "no_cray_counter": "{root} holds no counter of energy or power",
    # NVML
    "nvml_package_missing": "the Python package nvidia-ml-py is not installed: pip install nvidia-ml-py",
    "nvml_library_missing": "libnvidia-ml.so.1 not found: no NVIDIA driver is installed, or the container was started "
    "without --gpus all",
    "nvml_driver_not_loaded": "the NVIDIA library is there but its kernel driver is not loaded: modprobe nvidia on the "
    "host, and start a container with --gpus all",
    "nvml_no_permission": "no permission to open the NVIDIA devices: give this user read and write access to "
    "/dev/nvidia*",
    "nvml_version_mismatch": "NVIDIA's library and kernel driver differ in version: reload the driver or reboot",
    "nvml_no_gpu": "NVML lists no GPU: start the container with --gpus all, and check `nvidia-smi -L` on the host",
    "nvml_failed": "NVML: {error}",
    "nvml_not_supported": "the board or its driver does not offer it",
    "nvml_no_gpm": "the board or its driver does not offer it (GPM: Hopper and later, not in MIG slices)",
    "nvml_no_energy_counter": "the board or its driver does not offer it (the energy counter: Volta and later; virtual "
    "GPUs and MIG slices often none)",
    # TPU
    "no_tpu": "no TPU: neither /dev/accel* (v4 and earlier) nor a /dev/vfio group (v5 and later) belongs to one; "
    "in a container on a TPU host give --device /dev/vfio (or /dev/accel0 …) and --ulimit memlock=-1",
    "tpu_without_library": "a TPU is here ({devices}) but the kit's own Python has no libtpu: pip install libtpu",
    "tpu_without_counter": "a TPU is here ({devices}), and libtpu gives its user no energy or power counter: joules "
    "can only come from the provider's own monitoring",
    # Sampler and energy
    "sampler_failed": "the sampler ended early (exit code {exit_code}) {error}",
    "gauge_window_too_short": "the block of {window_ns} is too short for this sensor: {needed_ns}, two of its periods, "
    "are needed",
    "board_in_slices": "the member had a slice of the board (MIG), and the joules are the whole board's",
    "too_few_updates": "the sensor gave {updates} fresh values, {needed} are needed",
    "too_few_readings": "the sensor answered {readings} times, {needed} are needed",
    "energy_gap": "the sensor gave nothing for {gap_s:.3g} s, at most {most_s:.3g} s are borne",
    "energy_is_modelled": "a model in the processor says it, nothing measures it ({processor}: {source})",
    "power_moves": "its power moved by {moved_pct} from one half of {block_s} to the other: the sensor is slower than "
    "the block, or the device was not yet at its pace (--energy makes it longer)",
    "sensor_lags": "the sensor shows up to {lag_s} late what ran: the joules may be off by {error_pct}",
    "constant_power": "the sensor is stuck: all {readings} readings were {power_w}",
    "negative_power": "the sensor read {power_w}: no device gives power back",
    "reading_not_finite": "the sensor read what is no number",
    "idle_not_measured": "idle is measured in rounds with a long block for energy alone",
    "meter_misaligned": "the meter's readings may be {error_s:.3g} s off the run's clock, at most {most_s:.3g} s are "
    "borne: a longer block (--energy S), more readings a second, or a clock that is not set during the run",
    "meter_not_given": "no sensor of the device answers; `kit compare --meter FILE` reads an external meter's joules",
    "counter_stuck": "the counter did not move in {block_s:.3g} s: it is stuck, or every read failed",
    "counter_reset": "the counter fell during the block: it was reset, what it held is lost",
    "energy_block_too_short": "the block of {block_s:.3g} s is too short for this sensor: {needed_s:.3g} s are needed",
    "energy_low_coverage": "the sensor answered for {coverage_pct:.0f} % of the block, {needed_pct:.0f} % are needed",
    "zero_power": "{readings} of {of_readings} readings of power were 0 W: a board that runs draws power",
}

# `{who}` is the member's name within its group; of what is the machine's, how many cells.
FINDINGS: Templates = {
    "page_faults": "{who} spends {kernel_share_pct:.0f} % of its CPU time in the kernel: "
    "{faults_per_step:,.0f} page faults a step, on this host.",
    "kernel_share": "{who} spends {kernel_share_pct:.0f} % of its CPU time in the kernel, {kernel_per_step_ns} a step, "
    "and not on page faults.",
    "two_modes": "{who}: bimodal step time, {fast_step_ns} and {slow_step_ns}, "
    "the slow one in {slow_share_pct:.0f} % of its blocks.",
    "two_modes_page_faults": "{who}: bimodal step time, {slow_faults_per_step:,.0f} page faults a step in the slow "
    "mode, {fast_faults_per_step:,.0f} in the fast one.",
    "stalls": "{who} stalls for {stalled_pct:.0f} % of its time: in its step, not in its median step.",
    "above_ceiling": "{who} would compute {reached_gflop_s:,.0f} GFLOP/s, and the fastest product measured here has "
    "{ceiling_gflop_s:,.0f} ({operation}), which it cannot reach by computing.",
    "shorter_than_dispatch": "{who}: a step of {step_ns} is shorter than an empty dispatch of a framework, {empty_ns}.",
    "input_bound": "{who} waits {input_pct:.0f} % of its fit for its input, against steps on resident batches.",
    "cpus_idle": "{who} uses {cpus_used:.1f} CPUs with {threads} threads.",
    "cpus_beyond": "{who} uses {cpus_used:.1f} CPUs although {threads} threads were asked for.",
    "recompiles": "{who} compiled again after its first step: {recompiles} times, in {launches} of {of_launches}.",
    "throttled": "{who} were throttled by cgroup quota, at worst {throttled_pct:.0f} % of the time.",
    "variable_binds_one": "{variable}={value} (set by: {set_by}) binds {obeys} and not {ignores}; "
    "threads used: {threads}.",
    "threads_differ": "other numbers of threads: {threads}.",
    "precision_differs": "float32 is not multiplied alike: {settings}.",
    "allocator_differs": "{who} runs with {settings}, {others} without.",
    "swapped": "beside {who} the machine swapped {in_b} in and {out_b} out, in {blocks_s} of blocks.",
    "memory_pressure": "beside {who} tasks waited for memory {some_pct:.1f} % of the time, all {full_pct:.1f} %.",
    "cpu_pressure": "beside {who} some task waited for a CPU {some_pct:.0f} % of the time.",
    "quota_below_threads": "{threads} threads on a quota of {cpu_limit:g} CPUs.",
    "numa_remote": "on CPUs of {nodes} of {of_nodes} nodes of memory; {pages:,} pages came from another than wanted.",
    "smt_shared": "threads: {threads}, CPUs: {cpus}, cores: {cores}; CPUs of these cores that others may use: "
    "{others_cpus}.",
    "cpu_throttled": "heat held cores back {cores:,} times during the run, packages {packages:,} times.",
    "clock_not_synchronized": "the machine's wall clock is not synchronized.",
    "clock_drift": "the rate of the clock moved by {drift_ppm:.0f} ppm in a launch, in {launches} of {of_launches}.",
    "hardware_slowdown": "the hardware held the board of {who} back in {share_pct:.1f} % of readings: {causes}.",
    "board_throttled": "the board of {who} was slowed {share_pct:.0f} % of the time, at worst: {causes}.",
    "power_capped": "the power cap held the board of {who} back {share_pct:.0f} % of the time: {power_w} of {cap_w}, "
    "at most {power_max_w}, at {clock_mhz} of {rated_mhz}.",
    "cap_below_default": "{board} may draw {cap_w} of its usual {default_w}.",
    "caps_differ": "{board}, a {model}, may draw {cap_w}; most of {boards} may draw {usual_w}.",
    "clocks_differ": "{who} ran at {clock_mhz}, the fastest of its group at {fastest_mhz}, in {rounds} rounds.",
    "clocks_unsettled": "{who}: its first blocks took {apart_pct:+.1f} % beside the rest, in all {launches} launches.",
    "pcie_narrow": "{board} uses {lanes} of {of_lanes} PCIe lanes.",
    "ecc": "{board} had {errors} errors of memory that could not be corrected.",
    "row_remap": "{board}: {rows} rows of its memory were replaced; replacement: {state}.",
    "mig": "{board} is in slices: a part of it was measured.",
    "mps": "{board}: a server (MPS) lets processes share it.",
    "gpu_full_but_not_computing": "the board of {who} was utilized {utilization_pct:.0f} % and hardly computed: "
    "tensor cores {tensor_pct:.1f} %, float32 {fp32_pct:.1f} %, memory {dram_pct:.1f} %.",
    "device_declared_not_used": "the {device} of {who} was utilized {utilization_pct:.1f} %: nothing was seen on it.",
    "board_shared": "the board of {who} was shared with {processes} other processes, in {launches} of {of_launches}.",
    "contention": "contention in {who}: at worst others took {contention_pct:.0f} % of the {cpus} CPUs "
    "(the hypervisor {steal_pct:.0f} %) while none was idle.",
    "cycles_left_out": "{who}: others took {contention_pct:.0f} % of the {cpus} CPUs (the hypervisor "
    "{steal_pct:.0f} %) while none was idle; {left_out} of {cycles} cycles do not count for it.",
    "parity": "{who} computes other losses than the rest: {difference:.0e} apart.",
    "loss_not_finite": "{who}: its loss or output was not finite in {launches} of {of_launches} launches.",
    "missing_cell": "{who} was planned and gave no number: {because}.",
    "empty_input": "nothing was measured: {cells} cells and {launches} launches, none with a number.",
    "identity_contradicts_itself": "its launches contradict its identity: {fact}: {identity} there, {launch} in one.",
    "sampling_gaps": "{who}: readings of sensors are missing in {launches} of {of_launches} launches.",
    "sampler_cost": "beside {who} the sampler took {share_pct:.2f} % of the CPUs, {allowed_pct:g} % are allowed.",
    "no_joules": "{who} has no joules.",
    "few_updates": "the joules of {who} rest on {updates} fresh values of {sensor}, {needed} are needed for 1 %.",
    "sensor_broken": "{sensor} showed no figure beside {who} in {launches} launches: {how}.",
    "counter_reset": "{sensor} fell beside {who} in {launches} launches: it was reset.",
    "beats_with_sensor": "a step of {who} takes {step_ns}: a board that looks for 25 of each 100 ms never sees "
    "{unseen_pct:.0f} % of it.",
    "sustained_differs": "a step of {who} takes {burst_ns} in bursts, which samples/s are of, and {sustained_ns} in "
    "the long block of the same launches, which joules are of: {difference_pct:+.1f} %.",
    "counter_against_integral": "{who}: its board's counter and its integrated power are {difference_pct:.1f} % apart.",
    "part_larger_than_whole": "{who}: the parts drew {parts_w}, all of {whole} {whole_w}.",
    "no_idle": "the joules of {who} have no idle power beside them: {sensor}, in {blocks} of {of_blocks} blocks.",
    "idle_not_idle": "around {who} {sensor} showed {before_w} idle before the round and {after_w} after it; "
    "it drew {gross_w}.",
    "board_still_warming": "{who}: its board's temperature moved by {slope_c_per_s:+.2f} °C a second while its joules "
    "were measured, {moved_c:.1f} °C in {block_s}.",
    "heat_of_predecessor": "power follows what ran before: {effect_pct:.1f} % between the most and the least "
    "power-hungry predecessor, in {blocks} blocks.",
    "scope_larger_than_member": "{who} had {cpus} of {of_cpus} CPUs, others took {contention_pct:.0f} % of them, "
    "and the joules are the whole {scope}'s.",
    "scope_shared": "others took {contention_pct:.0f} % of the CPUs beside {who}: their joules are in its own.",
    "step_too_short": "{who}: a step of {step_ns} is shorter than {shortest_ns}, which the clock may time singly.",
    "modelled_beside_measured": "some joules of {who} were measured and others modelled: {tiers}.",
    "missing_in_fleet": "it has no {cell}, which {have} of {machines} machines of its kind have.",
}

REMEDIES: Templates = {
    "see_what_runs": "See that a step runs the model and returns what it computes, on the device that is measured",
    "resident_batches": "Prepare batches ahead, or hold them on the device: --feed device shows what that is worth",
    "try_variant": "Try --variant {variant} (apt: {package})",
    "count_system_calls": "Count its system calls: strace -c -f -p PID, or perf top",
    "see_latency": "See median, p95 and p99 in --wide, or judge by the median step: --by latency",
    "larger_batch": "Try a larger --batch, or fewer CPUs (taskset)",
    "equal_threads": "See kit show for its threads; equal numbers compare",
    "log_recompiles": "Set {setting} to see why",
    "raise_quota": "Raise the quota (docker run --cpus), or give whole CPUs (--cpuset-cpus)",
    "set_for_all": "Leave {name} out: members then get the same number of threads in all frameworks",
    "same_precision": "Give --dtype float32 or tf32: the kit sets them alike",
    "same_allocator": "Give all the same, as a variant: --variant NAME:env=LD_PRELOAD=LIBRARY",
    "more_memory": "Free memory, or raise the limit (docker run --memory); one framework needs less: --backend",
    "one_node": "Keep to one node: numactl --cpunodebind=0 --membind=0",
    "whole_cores": "Pin to one CPU of each core (taskset -c); kit doctor names them",
    "cool_machine": "See its cooling; a lower fixed clock is steadier: cpupower frequency-set",
    "synchronize_clock": "Steps have another clock; for external meters: timedatectl set-ntp true",
    "kernel_clock": "Give --clock monotonic_raw: the kernel keeps its rate",
    "at_cap": "It draws what it may: its speed is that of this cap",
    "look_at_supply": "It is slow far below its cap: see nvidia-smi -q -d PERFORMANCE, supply and cables",
    "same_caps": "Give all the same cap (nvidia-smi -pl), or compare machines apart",
    "lock_clocks": "Lock the clock below what all keep up: nvidia-smi -lgc",
    "longer_warmup": "Give a longer warm-up in the suite: warmup_s",
    "reseat_board": "See nvidia-smi -q for its link: a riser, the slot or another board may take its lanes",
    "reset_board": "Take its results for suspect; nvidia-smi --gpu-reset, and see nvidia-smi -q -d ECC,ROW_REMAPPER",
    "whole_board": "For the whole board: nvidia-smi -mig 0",
    "stop_mps": "End it where nobody needs it: echo quit | nvidia-cuda-mps-control",
    "see_where_it_ran": "See in kit show where it ran: what waits, spins or stays on the host is not the device's work",
    "raise_power_cap": "It may draw {cap_w} of its usual {default_w}: nvidia-smi -pl raises the cap",
    "cool_board": "See its temperature and power in kit show; a slower clock may be all that it can keep up",
    "free_board": "End what else computes on it (nvidia-smi), or name another by CUDA_VISIBLE_DEVICES",
    "quiet_machine": "Stop other work, or leave it CPUs (--threads, taskset); more rounds do not help unlike cells",
    "same_arithmetic": "Compare no times of it: it does other work (kit show has its losses)",
    "lower_rate": "Lower its learning rate, or see where it diverges: times of nonsense are none",
    "resume_or_fix": "See kit show for the failure, fix it and measure again (kit run --resume)",
    "measure_again": "Measure again; kit run says what failed",
    "free_a_cpu": "Leave a CPU to the sampler, or stop other work",
    "longer_energy_warmup": "Give the board more time at work: kit run --energy S, or a longer warmup_s in the suite",
    "longer_energy": "Give the sensor more time: kit run --energy S",
    "other_sensor": "Take another sensor of the device, or an external meter (--meter)",
    "other_batch": "Take another --batch, whose step is not in time with that",
    "longer_blocks": "Give longer blocks in the suite (block_s): their step comes closer to the sustained one",
    "external_meter": "An external meter decides (--meter)",
    "whole_machine": "Give the run all CPUs of the package, and stop other work",
}
