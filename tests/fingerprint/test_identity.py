import math
import os
import platform
import re

import msgspec
import profile_builder as b
import psutil
import pytest
from planted_files import plant
from planted_processor import PROCESSORS

from kit.fingerprint.identity import hashed, identity
from kit.fingerprint.processor import processor
from kit.profile.facts import UNKNOWN, fact_of
from kit.profile.identity import Identity


@pytest.fixture(scope="module")
def here():
    return identity()


def test_this_machine_null_exactly_where_there_is_a_reason(here):
    facts = here.facts
    assert facts["cpu.cores_logical"] == psutil.cpu_count()
    assert facts["memory_b"] == psutil.virtual_memory().total
    assert (facts["kernel"], facts["python"].split()[-1]) == (platform.release(), platform.python_version())
    unknown = {name for name, value in facts.items() if value is None and not name.startswith("container.")}
    assert unknown == here.reasons.keys() & facts.keys()
    assert here.accelerators() or here.reasons["gpu"]
    assert all(fact_of(name) is not UNKNOWN for name in facts)


def test_hosts_are_distinguished_and_not_named(here, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "a-host-of-that-name")
    there = identity()
    assert "a-host-of-that-name" not in msgspec.json.encode(there).decode()
    assert re.fullmatch("[0-9a-f]{64}", there.facts["hostname_sha256"])
    assert there.facts["hostname_sha256"] != here.facts["hostname_sha256"]
    assert there.hardware_sha256 == here.hardware_sha256


def test_hashes_are_stable_and_an_update_of_software_leaves_the_hardware_alone(here):
    assert hashed(here) == here == identity()
    more = b.changed(here, {"memory_b": here.facts["memory_b"] + (1 << 30)})
    assert hashed(more).hardware_sha256 != here.hardware_sha256
    here = hashed(b.changed(here, {"gpu.0.model": "H100", "gpu.0.driver": "1"}))
    updates = {
        "cpu.microcode": "0xnew", "cpu.flags": "avx2", "kernel": "other", "libc": "other", "os": "other",
        "python": "other", "software.package.torch": "99", "gpu.0.driver": "other", "container.engine": "other",
        "environment.XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
    }  # fmt: skip
    for name, value in updates.items():
        other = hashed(b.changed(here, {name: value}))
        assert other.hardware_sha256 == here.hardware_sha256, name
        assert other.sha256 != here.sha256


CPUINFO = "vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: sse fpu\nmicrocode\t: 0x1\n\nprocessor: 1\n"
CPU = "sys/devices/system/cpu"


@pytest.fixture
def facts_of(tmp_path, monkeypatch):
    """The facts of a planted processor, and which have a reason; `lscpu`: what the program of that name prints."""

    def look(files, lscpu=None):
        program = plant(tmp_path, {"bin/lscpu": f"#!/bin/sh\necho '{lscpu}'\n" if lscpu else "#!/bin/false\n"}) / "bin"
        (program / "lscpu").chmod(0o755)
        monkeypatch.setenv("PATH", f"{program}:{os.environ['PATH']}")
        plant(tmp_path, files)
        reasons = {}
        return processor(reasons, tmp_path), reasons.keys()

    return look


@pytest.mark.parametrize("name", PROCESSORS)
def test_each_planted_processor_is_what_the_kit_finds(run_as, name):
    planted, reasons = run_as(name), {}
    facts = processor(reasons)
    known = (planted.vendor, planted.model, planted.machine, planted.hypervisor)
    assert tuple(facts[fact] for fact in ("cpu.vendor", "cpu.model", "cpu.architecture", "hypervisor")) == known
    assert {*facts["cpu.flags"].split()} >= {"asimd" if planted.machine == "aarch64" else "avx"}
    cores = math.ceil(len(os.sched_getaffinity(0)) / planted.threads_a_core)
    assert len(Identity(facts=facts).cpu_sets("cpu.core.")) == cores
    assert ("cpu.microcode" in reasons) == ("hypervisor" in reasons) == (planted.machine == "aarch64")


@pytest.mark.parametrize(
    ("lscpu", "names"),
    [("Vendor ID: ARM\nModel name: Neoverse-N1", ("Neoverse-N1", "ARM")), (None, ("aarch64", "0x41"))],
)
def test_where_the_kernel_gives_numbers_lscpu_names_the_processor(facts_of, run_as, lscpu, names):
    run_as("aarch64")
    facts, _ = facts_of({"proc/cpuinfo": "CPU implementer\t: 0x41\nFeatures\t: fp asimd\n"}, lscpu)
    assert (facts["cpu.model"], facts["cpu.vendor"], facts["cpu.flags"]) == (*names, "asimd fp")


def test_cpus_that_share_a_core_those_of_each_node_and_caches(facts_of):
    files = {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}\n" for cpu in range(4)}
    files |= {f"{CPU}/../node/node{node}/cpulist": cpus for node, cpus in enumerate(("0-1\n", "2-3\n", "\n"))}
    caches = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("3", "Unified", "32768K"), ("2", "Unified", "")]
    for index, texts in enumerate([*caches, ("", "", "")]):
        names = zip(("level", "type", "size"), texts, strict=True)
        files |= {f"{CPU}/cpu0/cache/index{index}/{name}": text for name, text in names}
    facts, _ = facts_of({"proc/cpuinfo": CPUINFO, **files})
    machine, usable = Identity(facts=facts), os.sched_getaffinity(0)
    assert machine.cpu_sets("cpu.core.") == [core for core in ([0, 2], [1, 3]) if usable & {*core}]
    assert machine.cpu_sets("cpu.node.") == [[0, 1], [2, 3]]
    sizes = {name.removeprefix("cpu.cache."): size for name, size in facts.items() if "cache" in name}
    assert sizes == {"L1d_b": 48 << 10, "L1i_b": 32 << 10, "L3_b": 32 << 20}


@pytest.mark.parametrize(
    ("cpuinfo", "lscpu", "name"),
    [
        ("flags : fpu hypervisor\n", "KVM", "kvm"),
        ("flags : fpu hypervisor\n", None, "unnamed"),
        ("flags : fpu\n", "KVM", "none"),
        ("Features : neon\n", "kvm", "kvm"),
        ("Features : neon\n", None, None),
    ],
)
def test_hypervisor(facts_of, cpuinfo, lscpu, name):
    facts, reasons = facts_of({"proc/cpuinfo": cpuinfo}, lscpu and f"Hypervisor vendor: {lscpu}")
    assert facts["hypervisor"] == name
    assert ("hypervisor" in reasons) == (name is None)
