import os
import platform
import re

import msgspec
import profile_builder as b
import psutil
import pytest
from planted_files import plant

from kit.fingerprint import processor as processor_module
from kit.fingerprint.identity import hashed, identity
from kit.fingerprint.processor import cache_sizes, hypervisor, processor
from kit.profile.facts import UNKNOWN, fact_of
from kit.profile.identity import Identity


@pytest.fixture(scope="module")
def here():
    return identity()


def test_this_machine_null_exactly_where_there_is_a_reason(here):
    facts = here.facts
    assert (facts["cpu.architecture"], facts["cpu.cores_logical"]) == (platform.machine(), psutil.cpu_count())
    assert facts["memory_b"] == psutil.virtual_memory().total
    assert (facts["kernel"], facts["python"].split()[-1]) == (platform.release(), platform.python_version())
    unknown = {name for name, value in facts.items() if value is None and not name.startswith("container.")}
    assert unknown == here.reasons.keys() & facts.keys()
    assert here.accelerators() or here.reasons["gpu"]
    assert all(fact_of(name) is not UNKNOWN for name in facts)


def test_host_is_told_apart_and_not_named(here, monkeypatch):
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


def test_processor_from_proc_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(processor_module, "asked_cpuinfo", dict)
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: sse fpu\nmicrocode\t: 0x1\n\nprocessor: 1\n"
    )
    reasons = {}
    facts = processor(reasons, cpuinfo, tmp_path)
    assert [facts[f"cpu.{name}"] for name in ("model", "vendor", "microcode", "flags")] == [
        "Xeon", "GenuineIntel", "0x1", "fpu sse",
    ]  # fmt: skip
    assert reasons.keys() == {"cpu.cache", "cpu.core", "cpu.node"}
    cpuinfo.write_text("flags\t\t: fpu sse\n")
    assert processor(reasons, cpuinfo, tmp_path)["cpu.flags"] == facts["cpu.flags"]
    assert "cpu.vendor" in reasons


def test_where_the_kernel_gives_numbers_py_cpuinfo_names_the_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(processor_module, "asked_cpuinfo", lambda: {"brand_raw": "Neoverse-N1"})
    (tmp_path / "cpuinfo").write_text("CPU implementer\t: 0x41\nFeatures\t: fp asimd\n")
    facts = processor({}, tmp_path / "cpuinfo", tmp_path)
    assert (facts["cpu.model"], facts["cpu.vendor"]) == ("Neoverse-N1", "0x41")


def test_cpus_that_share_a_core_and_those_of_each_node(tmp_path):
    folders = {f"cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}\n" for cpu in range(4)}
    nodes = {"node/node0/cpulist": "0-1\n", "node/node1/cpulist": "2-3\n", "node/node2/cpulist": "\n"}
    plant(tmp_path, {"cpuinfo": "model name : X\nvendor_id : Y\n", **folders, **nodes})
    machine = Identity(facts=processor({}, tmp_path / "cpuinfo", tmp_path / "cpu"))
    usable = os.sched_getaffinity(0)
    assert machine.cpu_sets("cpu.core.") == [core for core in ([0, 2], [1, 3]) if usable & {*core}]
    assert machine.cpu_sets("cpu.node.") == [[0, 1], [2, 3]]


def test_cache_sizes(tmp_path):
    caches = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("3", "Unified", "32768K")]
    for index, (level, kind, size) in enumerate(caches):
        folder = f"cpu0/cache/index{index}"
        plant(tmp_path, {f"{folder}/level": level, f"{folder}/type": kind, f"{folder}/size": size})
    plant(tmp_path, {"cpu0/cache/index3/level": "2", "cpu0/cache/index3/type": "Unified"})
    plant(tmp_path, {f"cpu0/cache/index4/{name}": "" for name in ("level", "type", "size")})
    assert cache_sizes(tmp_path) == {"L1d": 48 << 10, "L1i": 32 << 10, "L3": 32 << 20}


@pytest.mark.parametrize(
    ("cpuinfo", "lscpu", "name"),
    [
        ("flags : fpu hypervisor\n", "KVM", "kvm"),
        ("flags : fpu hypervisor\n", None, "unnamed"),
        ("flags : fpu\n", None, "none"),
        ("Features : neon\n", "kvm", "kvm"),
        ("Features : neon\n", None, None),
    ],
)
def test_hypervisor(tmp_path, monkeypatch, cpuinfo, lscpu, name):
    monkeypatch.setattr(processor_module, "lscpu", lambda: {"Hypervisor vendor": lscpu} if lscpu else {})
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    reasons = {}
    assert hypervisor(reasons, tmp_path / "cpuinfo") == name
    assert ("hypervisor" in reasons) == (name is None)
