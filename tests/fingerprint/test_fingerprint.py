"""The identity of this machine and of planted ones, and the software below a workload."""

import math
import os
import platform
import re
import subprocess
import sys
from types import MappingProxyType

import msgspec
import numpy
import profile_builder as b
import psutil
import pytest
from planted_files import plant
from planted_processor import PROCESSORS, planted_name

from kit.fingerprint import this_machine
from kit.fingerprint.fingerprint import BAKED, hashed, identity, kit_revision, relevant_environment, set_by, software
from kit.fingerprint.this_machine import CpuInfo, processor
from kit.profile.facts import UNKNOWN, Identity, fact_of


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

    def look(files, lscpu=None, info=MappingProxyType({})):
        program = plant(tmp_path, {"bin/lscpu": f"#!/bin/sh\necho '{lscpu}'\n" if lscpu else "#!/bin/false\n"}) / "bin"
        (program / "lscpu").chmod(0o755)
        monkeypatch.setenv("PATH", f"{program}:{os.environ['PATH']}")
        plant(tmp_path, files)
        reasons = {}
        return processor(reasons, info, tmp_path), reasons.keys()

    return look


@pytest.mark.parametrize("name", PROCESSORS)
def test_each_planted_processor_is_what_the_kit_finds(run_as, name):
    planted, reasons = run_as(name), {}
    info = CpuInfo().answer()
    assert (info["vendor_id_raw"], info["brand_raw"]) == (planted.vendor, planted.model)
    facts = processor(reasons, info)
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


@pytest.mark.parametrize(
    ("info", "names"),
    [
        ({"brand_raw": "Neoverse-V2", "vendor_id_raw": "ARM", "flags": ["sve"]}, ("Neoverse-V2", "ARM", "asimd fp")),
        ({"brand_raw": "-", "vendor_id_raw": "Apple"}, ("aarch64", "Apple", "asimd fp")),  # hidden from a guest
        ({}, ("aarch64", "0x61", "asimd fp")),
    ],
)
def test_what_the_kernel_does_not_name_py_cpuinfo_does(facts_of, run_as, info, names):
    run_as("aarch64")
    facts, _ = facts_of({"proc/cpuinfo": "CPU implementer\t: 0x61\nFeatures\t: fp asimd\n"}, info=info)
    assert tuple(facts[name] for name in ("cpu.model", "cpu.vendor", "cpu.flags")) == names
    # A sandbox whose /proc and /sys show nothing has CPUID's answers.
    facts, reasons = facts_of({"proc/cpuinfo": ""}, info={"flags": ["sse", "avx"], "l2_cache_size": 1 << 20})
    assert (facts["cpu.flags"], facts["cpu.cache.L2_b"]) == ("avx sse", 1 << 20)
    assert "cpu.cache" not in reasons


@pytest.mark.parametrize("program", ["raise SystemExit(1)", "print('[]')", "print('{')", "import time; time.sleep(60)"])
def test_a_fingerprint_does_not_need_py_cpuinfo(tmp_path, monkeypatch, program):
    plant(tmp_path, {"cpuinfo.py": program})
    monkeypatch.setattr(this_machine, "CPUINFO_TIMEOUT_S", 1.0)
    monkeypatch.setattr(this_machine, "module_command", lambda *_: [sys.executable, tmp_path / "cpuinfo.py"])
    assert CpuInfo().answer() == {}
    assert identity().facts["cpu.model"] == PROCESSORS[planted_name()].model


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


def other_python(tmp_path, versions):
    """An interpreter that has other distributions: this one, with a folder of metadata before its own."""
    for name, version in versions.items():
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        plant(tmp_path / "site", {f"{name}-{version}.dist-info/METADATA": metadata})
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/site" exec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_disagreeing_interpreters_show_both_versions_of_what_was_asked_for(tmp_path):
    python = other_python(tmp_path, {"numpy": "0.0.1", "framework": "9.9.9"})
    facts = software({}, [python], packages=["framework", "no-such-distribution"])
    assert facts["software.package.numpy"] == f"0.0.1 / {numpy.__version__}"
    assert facts["software.package.framework"] == "9.9.9"
    assert "software.package.no-such-distribution" not in facts
    assert "software.package.framework" not in software({}, [python])


def test_an_interpreter_that_cannot_be_asked_is_a_reason():
    reasons = {}
    here = software(reasons, ["/nowhere/python"])
    assert "software.package.numpy" in here
    assert reasons["software.package /nowhere/python"].code == "interpreter_not_asked"


@pytest.mark.parametrize(
    "name",
    ["OMP_NUM_THREADS", "KMP_AFFINITY", "MKL_CBWR", "OPENBLAS_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "MALLOC_ARENA_MAX",
     "LD_PRELOAD", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "PYTHONOPTIMIZE", "TF_ENABLE_ONEDNN_OPTS"],
)  # fmt: skip
def test_what_changes_numbers_is_recorded(name, monkeypatch):
    monkeypatch.setenv(name, "planted")
    assert software({}, prefixes=["TF_"])[f"environment.{name}"] == "planted"


@pytest.mark.parametrize(
    "name", ["HOME", "PATH", "TF_TOKEN_app", "TF_VAR_db", "TF_HTTP_PASSWORD", "TORCH_HUB_TOKEN", "TORCH_INDEX"]
)
def test_nothing_else_is_and_no_credential(name):
    assert relevant_environment({name: "x"}, ["TF_", "TORCH"]) == {}


IMAGE = "PATH=/bin\0OMP_NUM_THREADS=1\0"
STARTED = f"{IMAGE}KMP_AFFINITY=none\0"


@pytest.mark.parametrize(
    ("variables", "engine", "who"),
    [
        ({"OMP_NUM_THREADS": "1"}, "docker", "image"),
        ({"OMP_NUM_THREADS": "4"}, "docker", "user"),  # changed by a shell in the container
        ({"KMP_AFFINITY": "none"}, "docker", "container"),
        ({"OMP_NUM_THREADS": "1"}, None, "user"),  # a host's first process does not count
        ({"OMP_NUM_THREADS": "1", "TORCHELASTIC_RUN_ID": "none"}, None, "torchrun"),
        ({"OMP_NUM_THREADS": "2", "RAY_RAYLET_PID": "9"}, None, "Ray"),
        ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "9"}, None, "Slurm"),
        ({"OMP_NUM_THREADS": "2", "SLURM_JOB_ID": "9"}, None, "user"),
    ],
)
def test_who_set_it(tmp_path, variables, engine, who):
    plant(tmp_path, {BAKED: IMAGE, "proc/1/environ": STARTED})
    name = next(iter(variables))
    assert set_by([name], variables, engine, tmp_path) == {name: who}
    nothing_readable = set_by(["OMP_NUM_THREADS"], {"OMP_NUM_THREADS": "1"}, "docker", tmp_path / "nowhere")
    assert nothing_readable == {"OMP_NUM_THREADS": "user"}


def git(tree, *words):
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=tree, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_revision_of_the_source_tree(tmp_path, monkeypatch):
    monkeypatch.delenv("KIT_REVISION", raising=False)
    assert kit_revision(tmp_path) is None
    git(tmp_path, "init")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--no-verify", "-m", "one")
    assert kit_revision(tmp_path) == git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "file").write_text("two")
    assert kit_revision(tmp_path) == git(tmp_path, "rev-parse", "HEAD") + "-dirty"
    (tmp_path / "site-packages").mkdir()  # a kit installed within another project's tree is not of its revision
    assert kit_revision(tmp_path / "site-packages") is None
    monkeypatch.setenv("KIT_REVISION", "of the image")
    assert kit_revision(tmp_path) == "of the image"
