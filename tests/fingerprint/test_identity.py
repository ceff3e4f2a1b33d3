import os
import platform
import re

import msgspec
import psutil
import pytest
from planted_files import plant

from kit.fingerprint import processor as processor_module
from kit.fingerprint.identity import hashed, identity
from kit.fingerprint.processor import cache_sizes, hypervisor, processor


@pytest.fixture(scope="module")
def here():
    return identity()


def test_this_machine_null_exactly_where_there_is_a_reason(here):
    assert (here.cpu.architecture, here.cpu.cores_logical) == (platform.machine(), psutil.cpu_count())
    assert here.memory_b == psutil.virtual_memory().total
    assert (here.software.kernel, here.software.python.split()[-1]) == (platform.release(), platform.python_version())
    for field in ("vendor", "cores_physical", "flags_sha256", "microcode"):
        assert (getattr(here.cpu, field) is None) == (f"cpu.{field}" in here.reasons)
    assert (here.hypervisor is None) == ("hypervisor" in here.reasons)
    assert bool(here.accelerators) or here.reasons["accelerators.gpu"]


def test_host_is_told_apart_and_not_named(here, monkeypatch):
    monkeypatch.setattr(platform, "node", lambda: "a-host-of-that-name")
    there = identity()
    assert "a-host-of-that-name" not in msgspec.json.encode(there).decode()
    assert re.fullmatch("[0-9a-f]{64}", there.hostname_sha256)
    assert there.hostname_sha256 != here.hostname_sha256
    assert there.hardware_sha256 == here.hardware_sha256


def test_hashes_are_stable_and_cover_what_they_say(here):
    replace = msgspec.structs.replace
    cpu = replace(here.cpu, microcode="0xnew", flags_sha256="0" * 64)
    variables = replace(here.software, environment={"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"})
    assert hashed(here) == here == identity()
    assert hashed(replace(here, memory_b=here.memory_b + (1 << 30))).hardware_sha256 != here.hardware_sha256
    for changed in ({"cpu": cpu}, {"software": replace(here.software, kernel="other")}, {"software": variables}):
        other = hashed(replace(here, **changed))
        assert other.hardware_sha256 == here.hardware_sha256
        assert other.sha256 != here.sha256


def test_processor_from_proc_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(processor_module, "asked_cpuinfo", dict)
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(
        "vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: sse fpu\nmicrocode\t: 0x1\n\nprocessor: 1\n"
    )
    reasons = {}
    cpu = processor(reasons, cpuinfo, tmp_path)
    assert (cpu.model, cpu.vendor, cpu.microcode, cpu.caches) == ("Xeon", "GenuineIntel", "0x1", {})
    assert "cpu.caches" in reasons
    cpuinfo.write_text("flags\t\t: fpu sse\n")
    assert processor(reasons, cpuinfo, tmp_path).flags_sha256 == cpu.flags_sha256
    assert "cpu.vendor" in reasons


def test_where_the_kernel_gives_numbers_py_cpuinfo_names_the_processor(tmp_path, monkeypatch):
    monkeypatch.setattr(processor_module, "asked_cpuinfo", lambda: {"brand_raw": "Neoverse-N1"})
    (tmp_path / "cpuinfo").write_text("CPU implementer\t: 0x41\nFeatures\t: fp asimd\n")
    cpu = processor({}, tmp_path / "cpuinfo", tmp_path)
    assert (cpu.model, cpu.vendor) == ("Neoverse-N1", "0x41")


def test_cpus_that_share_a_core_and_those_of_each_node(tmp_path):
    folders = {f"cpu/cpu{cpu}/topology/thread_siblings_list": f"{cpu % 2},{cpu % 2 + 2}\n" for cpu in range(4)}
    nodes = {"node/node0/cpulist": "0-1\n", "node/node1/cpulist": "2-3\n", "node/node2/cpulist": "\n"}
    plant(tmp_path, {"cpuinfo": "model name : X\nvendor_id : Y\n", **folders, **nodes})
    cpu = processor({}, tmp_path / "cpuinfo", tmp_path / "cpu")
    usable = os.sched_getaffinity(0)
    assert cpu.siblings == [core for core in ([0, 2], [1, 3]) if usable & {*core}]
    assert cpu.nodes == [[0, 1], [2, 3]]


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
