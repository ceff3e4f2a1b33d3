"""Sentences for what a machine or a container does to measurements, with what would mend it. Code -> template."""

from __future__ import annotations

CONDITION_REASONS: dict[str, str] = {
    "no_quota": "none below the {cpus} usable; threads of a framework: {threads}",
    "quota": "{limit:g} CPUs on {cpus}; threads of a framework: {threads}, as one more would be throttled; take the "
    "quota away, and pin with taskset",
    "quota_in_container": "{limit:g} CPUs on {cpus}; threads of a framework: {threads}, as one more would be "
    "throttled; give --cpuset-cpus in place of --cpus",
    "no_shared_cores": "each usable CPU is a core of its own, as far as is shown",
    "shared_cores": "the {cpus} usable CPUs are {cores} cores: two threads share one; pin to one CPU of each core: "
    "{first} (taskset -c, docker run --cpuset-cpus)",
    "memory_free": "{memory_b} free",
    "memory_small": "{memory_b} free, and three frameworks together take about {needed_b}: members take whole turns "
    "where they do not fit; free some, or raise --memory",
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
    "load_low": "{load_1min:g} in the last minute, {cpus} CPUs",
    "load_high": "{load_1min:g} in the last minute on {cpus} CPUs: something else runs; wait for it, or end it",
    "pid_namespace_host": "the host's",
    "pid_namespace_own": "its own: processes of others that use the CPUs or the GPU are not named; --pid host "
    "shows them",
    "compiler": "{name}",
    "no_compiler": "none: torch.compile needs one on a CPU; install g++",
    "tmp_noexec": "{folder} is mounted noexec: torch.compile runs what it builds there; give --tmpfs /tmp:exec",
    "gpu_shared": "several processes may use it",
    "gpu_exclusive": "one process at a time: members take whole turns, and intervals are wider; nvidia-smi -i {gpu:d} "
    "-c DEFAULT",
    "mig_off": "off",
    "mig_on": "on: a slice is measured, and joules are the whole board's where there are any; nvidia-smi -i {gpu:d} "
    "-mig 0",
    "persists": "on",
    "persists_not": "off: the driver is loaded anew for each run; nvidia-smi -i {gpu:d} -pm 1",
    "memlock_unlimited": "no limit",
    "memlock_small": "limited: a TPU wants all that it maps locked; give --ulimit memlock=-1",
    "clash": "{distribution} {version} wants {requirement}, and {found} is installed: install what it wants",
}
