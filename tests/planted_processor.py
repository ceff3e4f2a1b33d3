"""Processors that tests run as, whichever this machine has: what the kernel and lscpu show of each.

    KIT_TEST_PROCESSOR ─► conftest.py ─► a folder ─► standins/processor ─► what the kit reads, in every process

Their counters of energy are planted by `planted_powercap`.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from planted_files import plant

STANDIN = Path(__file__).parent / "standins/processor"
CPU = "sys/devices/system/cpu"
# py-cpuinfo reads the kernel's file by `cat`, and leaves CPUID alone where SELinux forbids to run what was written.
CAT = """\
#!/bin/sh
[ "$*" = /proc/cpuinfo ] && set -- "$PLANTED_PROCESSOR/proc/cpuinfo"
exec /bin/cat "$@"
"""


class Processor(NamedTuple):
    """What distinguishes a processor for the kit."""

    vendor: str
    model: str
    rapl: str | None  # how the kit takes a package's counter: "measured" or "modelled"
    cpuinfo: str  # of each CPU, without the line "processor"
    lscpu: str
    machine: str = "x86_64"
    hypervisor: str | None = "none"
    threads_a_core: int = 1
    files: Mapping[str, str] = MappingProxyType({})  # below the folder of the CPUs
    of_each_cpu: Mapping[str, str] = MappingProxyType({})  # below the folder of each CPU


PROCESSORS = {
    # A server of one's own: two threads a core, a governor that varies, turbo.
    "amd": Processor(
        vendor="AuthenticAMD",
        model="AMD EPYC 9354P 32-Core Processor",
        rapl="modelled",
        cpuinfo="""\
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC 9354P 32-Core Processor
stepping	: 1
microcode	: 0xa101148
cpu MHz		: 3249.998
flags		: fpu tsc sse sse2 ht rdtscp constant_tsc nonstop_tsc aperfmperf avx avx2 svm
""",
        lscpu="Vendor ID: AuthenticAMD",
        threads_a_core=2,
        files={"cpufreq/boost": "1"},
        of_each_cpu={
            "cpufreq/scaling_governor": "schedutil",
            "cpufreq/scaling_cur_freq": "3249998",
            "cache/index0/level": "1",
            "cache/index0/type": "Data",
            "cache/index0/size": "32K",
        },
    ),
    # A virtual machine, which shows no frequencies and no powercap of its own.
    "intel": Processor(
        vendor="GenuineIntel",
        model="Intel(R) Xeon(R) Platinum 8480+",
        rapl="measured",
        cpuinfo="""\
vendor_id	: GenuineIntel
cpu family	: 6
model		: 143
model name	: Intel(R) Xeon(R) Platinum 8480+
stepping	: 8
microcode	: 0x2b0004d0
cpu MHz		: 2000.000
flags		: fpu tsc sse sse2 rdtscp constant_tsc nonstop_tsc hypervisor avx avx2 avx512f avx512_bf16 amx_tile
""",
        lscpu="Vendor ID: GenuineIntel\nHypervisor vendor: KVM",
        hypervisor="kvm",
        of_each_cpu={"cache/index0/level": "2", "cache/index0/type": "Unified", "cache/index0/size": "2048K"},
    ),
    # Sandy Bridge, whose registers hold the output of a model.
    "intel-modelled": Processor(
        vendor="GenuineIntel",
        model="Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz",
        rapl="modelled",
        cpuinfo="""\
vendor_id	: GenuineIntel
cpu family	: 6
model		: 45
model name	: Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz
stepping	: 7
microcode	: 0x71a
cpu MHz		: 2600.000
flags		: fpu tsc sse sse2 ht rdtscp constant_tsc nonstop_tsc aperfmperf avx
""",
        lscpu="Vendor ID: GenuineIntel",
        threads_a_core=2,
        files={"intel_pstate/no_turbo": "0"},
        of_each_cpu={
            "cpufreq/scaling_governor": "powersave",
            "cpufreq/scaling_cur_freq": "2600000",
            "thermal_throttle/core_throttle_count": "3",
            "thermal_throttle/package_throttle_count": "5",
        },
    ),
    # It has numbers for names, no flags, no microcode and no counter of energy.
    "aarch64": Processor(
        vendor="ARM",
        model="Neoverse-N1",
        rapl=None,
        cpuinfo="""\
BogoMIPS	: 50.00
Features	: fp asimd evtstrm aes crc32 atomics asimddp
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1
""",
        lscpu="Vendor ID: ARM\nModel name: Neoverse-N1",
        machine="aarch64",
        hypervisor=None,
    ),
}
DEFAULT = "intel"


def planted_name() -> str:
    """Return which processor this session of tests has."""
    return os.environ.get("KIT_TEST_PROCESSOR") or DEFAULT


def plant_processor(folder: Path, name: str) -> dict[str, str]:
    """Write a processor into a folder; the environment in which the kit takes it for this machine's."""
    processor, usable = PROCESSORS[name], sorted(os.sched_getaffinity(0))
    files = {
        "proc/cpuinfo": "".join(f"processor\t: {cpu}\n{processor.cpuinfo}\n" for cpu in usable),
        "machine": processor.machine,
        "bin/lscpu": f"#!/bin/sh\necho '{processor.lscpu}'\n",
        "bin/cat": CAT,
        "bin/sestatus": "#!/bin/sh\necho 'Current mode: enforcing'\n",
        "sys/devices/system/node/node0/cpulist": f"{usable[0]}-{usable[-1]}\n",
    }
    files |= {f"{CPU}/{path}": f"{text}\n" for path, text in processor.files.items()}
    for index, cpu in enumerate(usable):
        first = index - index % processor.threads_a_core
        core = usable[first : first + processor.threads_a_core]
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = ",".join(map(str, core)) + "\n"
        files |= {f"{CPU}/cpu{cpu}/{path}": f"{text}\n" for path, text in processor.of_each_cpu.items()}
    for program in (plant(folder, files) / "bin").iterdir():
        program.chmod(0o755)
    path = [os.fspath(folder / "bin"), *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    return {"PLANTED_PROCESSOR": os.fspath(folder), "PATH": os.pathsep.join(path)}


def reach_every_process(patch: pytest.MonkeyPatch) -> None:
    """Plant in this process and in each Python that it starts, whatever PYTHONPATH a test gives it."""
    spec = importlib.util.spec_from_file_location("planted_in_tests", STANDIN / "sitecustomize.py")
    standin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(standin)
    standin.plant()
    patch.setenv("PYTHONPATH", _with_standin(os.environ.get("PYTHONPATH")))
    start = subprocess.Popen.__init__

    def planted_start(process, *arguments, env=None, **options):
        if env is not None and "PYTHONPATH" in env:
            env = {**env, "PYTHONPATH": _with_standin(env["PYTHONPATH"])}
        start(process, *arguments, env=env, **options)

    patch.setattr(subprocess.Popen, "__init__", planted_start)


def _with_standin(path: str | None) -> str:
    here = os.fspath(STANDIN)
    return f"{here}{os.pathsep}{path}" if path and not path.startswith(here) else path or here
