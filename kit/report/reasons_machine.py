"""Sentences for what a machine or its sensors do not show: the obstacle, and what removes it. Code -> template."""

from __future__ import annotations

MACHINE_REASONS: dict[str, str] = {
    # Identity and state
    "not_shown": "{source} does not show it",
    "interpreter_not_asked": "{python} could not be asked for its packages: {error}",
    "libc_not_named": "the C library does not name itself (musl does not)",
    "no_governor": "no cpufreq driver here (usual in a virtual machine): the host sets the governor",
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
    "counter_stuck": "the counter did not move in {block_s:.3g} s: it is stuck, or every read failed",
    "counter_reset": "the counter fell during the block: it was reset, what it held is lost",
    "energy_block_too_short": "the block of {block_s:.3g} s is too short for this sensor: {needed_s:.3g} s (100 "
    "updates, and 10 s) are needed",
    "energy_low_coverage": "the sensor answered for {coverage_pct:.0f} % of the block, {needed_pct:.0f} % are needed",
    "zero_power": "every reading of power was 0 W: a board that runs draws power",
    "no_energy_sensor": "no energy sensor of the {device} answers",
    "energy_of_which_device": "{counters} {device} energy counters for {devices} used: which is whose is not known",
    "energy_refused": "{sensor} gave no energy",
}
