"""A container: hardened, the same in the SDK's arguments and on the printed line, and what an engine cannot give."""

import csv
import os
import shlex
from itertools import pairwise
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from engine_server import DOCKER, ROOTLESS_PODMAN
from kit_process import invoke
from msgspec.structs import replace
from refusals import refused

from kit.cli import app
from kit.engine import container_run as launch_module
from kit.engine import image as image_module
from kit.engine.connection import EngineError, connect
from kit.engine.container import Bind, ContainerEnd, ContainerOptions, explained, for_kind, with_devices
from kit.engine.container_run import ContainerRun, as_line, container_options
from kit.engine.image import Image
from kit.environment import PROCESS_EACH
from kit.profile.cell import Cell, Variant
from kit.runner.prepare import check_images
from kit.version import __version__

SUITE = 'name = "mine"\ntitle = "Mine"\n[cells]\nworkloads = ["mlp"]\nbackends = ["torch"]\n'
OURS = ContainerOptions(image="x", command=["run"], entrypoint=("kit",), user="12:34", cpuset="0,1", gpus="0,2")
FULL = ContainerOptions(
    image="steadykit:cpu",
    command=["run", "quick", "--out", "a b.json"],
    user="12:34",
    binds=(Bind("/home/me/data", "/data"), Bind("results", "/profiles", writable=True)),
    environment={"KIT_COMMAND": "kit launch cpu"},
    workdir="/profiles",
    cpuset="0,1",
    memory="8g",
    gpus="all",
    devices=("/dev/vfio/0",),
    unlimited_memlock=True,
)
HARDENED = {
    "--read-only": ("read_only", True),
    "--network none": ("network_mode", "none"),
    "--cap-drop ALL": ("cap_drop", ["ALL"]),
    "--security-opt no-new-privileges": ("security_opt", ["no-new-privileges"]),
}


@pytest.mark.parametrize("flag", HARDENED)
def test_every_container_is_hardened_in_the_line_and_in_the_api(flag):
    least = ContainerOptions(image="x", command=[])
    name, value = HARDENED[flag]
    assert flag in least.as_line()
    assert least.for_engine()[name] == value


def test_nothing_is_writable_but_what_says_so_and_tmp():
    mounts = {mount["Target"]: mount["ReadOnly"] for mount in FULL.for_engine()["mounts"]}
    assert mounts == {"/data": True, "/profiles": False}
    assert list(FULL.for_engine()["tmpfs"]) == ["/tmp"]


def test_the_line_says_all_that_the_api_is_told():
    words = shlex.split(FULL.as_line())
    pairs = set(pairwise(words))
    assert {
        ("--user", "12:34"), ("--cpuset-cpus", "0,1"), ("--memory", "8g"), ("--gpus", "all"),
        ("--workdir", "/profiles"), ("--device", "/dev/vfio/0"), ("--ulimit", "memlock=-1"),
        ("--env", "KIT_COMMAND=kit launch cpu"),
        ("--mount", "type=bind,source=/home/me/data,target=/data,readonly"),
        ("--mount", "type=volume,source=results,target=/profiles"),
    } <= pairs  # fmt: skip
    assert words[-5:] == ["steadykit:cpu", *FULL.command]
    (request,) = OURS.for_engine()["device_requests"]
    assert request["DeviceIDs"] == ["0", "2"] and '"device=0,2"' in shlex.split(OURS.as_line())


def client_at(url):
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("DOCKER_HOST", url)
        return connect()


def test_a_rootless_engine_gets_what_it_can_give(served, tmp_path):
    client = client_at(served(tmp_path / "podman.sock", ROOTLESS_PODMAN))
    given = for_kind(client, OURS).for_engine()
    assert (given["user"], given["cpuset_cpus"]) == ("0:0", None)
    assert given["entrypoint"] == ["taskset", "-c", "0,1", "kit"]
    assert for_kind(client, OURS._replace(user=None)).for_engine()["user"] is None, "the image's stays"
    assert "no memory controller" in refused(for_kind, client, OURS._replace(memory="1g"))


def test_a_delegated_controller_limits_memory_and_docker_is_asked_as_ever(served, tmp_path):
    delegated = ROOTLESS_PODMAN | {"host": {"cgroupControllers": ["memory"]}}
    client = client_at(served(tmp_path / "podman.sock", delegated))
    assert for_kind(client, OURS._replace(memory="1g")).for_engine()["mem_limit"] == "1g"
    client = client_at(served(tmp_path / "engine.sock", DOCKER))
    given = for_kind(client, OURS).for_engine()
    assert (given["user"], given["cpuset_cpus"], given["entrypoint"]) == ("12:34", "0,1", ["kit"])
    rootless = client_at(
        served(tmp_path / "own.sock", DOCKER | {"SecurityOptions": ["name=rootless"], "MemoryLimit": False})
    )
    assert for_kind(rootless, OURS).for_engine()["user"] == "0:0"
    assert "no memory controller" in refused(for_kind, rootless, OURS._replace(memory="1g"))


def test_gpus_are_devices_of_podman_and_refused_where_it_would_leave_them_out(served, tmp_path):
    old = client_at(served(tmp_path / "old.sock", ROOTLESS_PODMAN))
    assert "install Podman 5.4" in refused(with_devices, old, "gpu", OURS)
    new = client_at(served(tmp_path / "new.sock", ROOTLESS_PODMAN | {"Version": "5.4.0-rc1"}))
    (request,) = with_devices(new, "gpu", for_kind(new, OURS)).for_engine()["device_requests"]
    assert (request["Driver"], request["DeviceIDs"]) == ("cdi", ["nvidia.com/gpu=0", "nvidia.com/gpu=2"])
    assert "nvidia-ctk cdi generate" in explained(RuntimeError("unresolvable CDI devices nvidia.com/gpu=all"))


def test_an_image_that_the_engine_can_give_no_gpu_is_refused_before_the_run(served, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", served(tmp_path / "engine.sock", DOCKER | {"Runtimes": {"runc": {}}}))
    variants = [Variant(name="old", image="x", image_digest="sha256:1"), Variant(name="default")]
    base = {"workload": "mlp", "backend": "torch", "task": "train", "batch": 1, "compile_mode": "eager"}
    cell = Cell(**base, device="gpu", precision="float32", feed="device", variant="old")
    assert "install the NVIDIA Container Toolkit" in refused(check_images, [cell], variants)
    check_images([replace(cell, variant="default"), replace(cell, device="cpu")], variants)


def test_ranks_that_would_each_have_a_container_are_refused_before_the_run(served, tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", served(tmp_path / "engine.sock", DOCKER))
    variants = [
        Variant(name="image", image="x", image_digest="sha256:1"),
        Variant(name="each", image="x", image_digest="sha256:1", env={PROCESS_EACH: "1"}),
    ]
    base = {
        "workload": "mlp",
        "backend": "torch",
        "task": "train",
        "batch": 2,
        "compile_mode": "eager",
        "device": "cpu",
    }
    cell = Cell(**base, precision="float32", feed="device", devices=2, variant="image")
    in_one_process = replace(cell, backend="jax")
    for ranks in (cell, replace(in_one_process, variant="each")):
        assert "containers have no network" in refused(check_images, [ranks], variants)
    check_images([replace(cell, devices=1), in_one_process], variants)


def test_podmans_line_says_all_that_its_api_is_told():
    words = shlex.split(OURS._replace(engine="podman", is_rootless=True).as_line())
    assert words[:3] == ["podman", "run", "--rm"]
    assert {("--user", "0:0"), ("--entrypoint", "taskset"), ("--device", "nvidia.com/gpu=2")} <= set(pairwise(words))
    assert words[-5:] == ["x", "-c", "0,1", "kit-entrypoint", "run"]
    assert not {"--gpus", "--cpuset-cpus", "--init"} & {*words}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def mounts(line):
    values = [value for option, value in pairwise(shlex.split(line)) if option == "--mount"]
    # Docker and Podman read it as CSV.
    return [dict(part.partition("=")[::2] for part in next(csv.reader([value]))) for value in values]


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a,readonly", "a,source=x", "a b", "-a"])
def test_the_printed_line_mounts_the_folder_that_a_launch_mounts(folder, name):
    (folder / name).mkdir()
    run = ContainerRun("cpu", out=f"{folder / name}/run.json")
    (mount,), (bind,) = mounts(as_line(run)), container_options(run).binds
    assert (mount["source"], mount["target"], "readonly" in mount) == (bind.source, bind.inside, False)
    assert mount["source"] == str(folder / name)


def test_a_folder_that_no_line_can_name_is_refused(folder):
    (folder / "a\nb").mkdir()
    with pytest.raises(EngineError, match="line break"):
        as_line(ContainerRun("cpu", out="a\nb/run.json"))


def test_a_links_own_name_is_found_inside(folder):
    (folder / "real").mkdir()
    (folder / "link").symlink_to("real")
    (mount,) = mounts(as_line(ContainerRun("cpu", out="link/run.json")))
    assert (mount["source"], mount["target"]) == (str(folder / "real"), str(folder / "link"))


@pytest.mark.parametrize(
    "words",
    [
        ["theirs/mine"],
        ["theirs/mine.toml"],
        *(["--program", f"theirs/{name}"] for name in ("net", "net:f", "net.py:f")),
    ],
    ids=" ".join,
)
def test_a_file_that_is_named_is_mounted_by_whatever_name(folder, words):
    for name in ("theirs", "out"):
        (folder / name).mkdir()
    for name in ("mine", "mine.toml"):
        (folder / "theirs" / name).write_text(SUITE)
    printed = CliRunner().invoke(app, ["launch", "cpu", *words, "--out", "out/", "--print"])
    targets = {mount["target"]: "readonly" in mount for mount in mounts(printed.stdout)}
    assert targets == {str(folder / "theirs"): True, str(folder / "out"): False}, printed


def test_data_are_mounted_read_only_where_they_lie_unless_profiles_go_there(folder, monkeypatch):
    (folder / "data").mkdir()
    monkeypatch.setenv("KIT_DATA", str(folder / "data"))
    monkeypatch.setenv("KIT_PHASE_LIMIT_S", "3600")
    line = as_line(ContainerRun("cpu"))
    assert "KIT_PHASE_LIMIT_S=3600" in shlex.split(line)
    writable = {mount["target"]: "readonly" not in mount for mount in mounts(line)}
    assert writable == {str(folder / "data"): False, str(folder): True}
    assert f"KIT_DATA={folder / 'data'}" in shlex.split(line)
    assert ["readonly" in mount for mount in mounts(as_line(ContainerRun("cpu", out="data/run.json")))] == [False]


def cpuset(**limits):
    words = shlex.split(as_line(ContainerRun("cpu", **limits)))
    return words[words.index("--cpuset-cpus") + 1]


def test_cpus_are_a_number_of_whole_ones_and_a_cpuset_says_which():
    usable = sorted(os.sched_getaffinity(0))
    assert cpuset() == ",".join(map(str, usable))
    assert cpuset(cpus=1) == str(usable[0])
    assert cpuset(cpus=len(usable)) == cpuset()
    assert cpuset(cpuset="5,7") == "5,7"
    with pytest.raises(EngineError, match=f"only {len(usable)} are usable"):
        cpuset(cpus=len(usable) + 1)


def test_a_resumed_launch_is_given_the_same_of_the_machine():
    assert ContainerRun("cpu", cpus=2, rapl=True).command() == "kit launch cpu --cpus 2 --rapl"


def test_a_printed_line_for_a_tpu_has_its_devices():
    words = shlex.split(as_line(ContainerRun("tpu")))
    assert "--device" in words
    assert ("--ulimit", "memlock=-1") in set(pairwise(words))


@pytest.mark.parametrize(
    ("info", "gives"),
    [
        ({"Runtimes": {"runc": {}, "nvidia": {}}}, True),
        ({"Runtimes": {"runc": {}}, "DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}, True),
        ({"Runtimes": {"runc": {}}}, False),
    ],
)
def test_an_engine_that_cannot_give_gpus_is_told_what_it_lacks(info, gives):
    client, least = SimpleNamespace(info=lambda: info, version=lambda: {}), ContainerOptions(image="x", command=[])
    assert with_devices(client, "cpu", least) == least
    if gives:
        assert with_devices(client, "gpu", least).gpus == "all"
        assert with_devices(client, "gpu", least._replace(gpus="0,1")).gpus == "0,1"
    else:
        with pytest.raises(EngineError, match="NVIDIA Container Toolkit"):
            with_devices(client, "gpu", least)


@pytest.mark.parametrize(
    ("of_image", "here", "same"),
    [
        ("1" * 40, "1" * 40, True),
        ("1" * 40, "2" * 40, False),
        ("1" * 40 + "-dirty", "1" * 40 + "-dirty", False),  # two changes of one revision look alike
        ("", "1" * 40, True),
        ("1" * 40, None, True),
    ],
)
def test_an_image_of_another_revision_is_not_this_kit(monkeypatch, of_image, here, same):
    labels = {image_module.VERSION_LABEL: __version__, image_module.REVISION_LABEL: of_image}
    monkeypatch.setattr(image_module, "kit_revision", lambda: here)
    assert image_module._is_this_kit(Image("steadykit:cpu", "sha256:1", {}, labels, ())) is same


def test_the_hardware_self_test_runs_in_the_targets_image():
    printed = CliRunner().invoke(app, ["launch", "gpu", "selftest", "--backend", "jax", "--print"]).stdout
    assert printed.split("steadykit:gpu")[-1].split() == ["selftest", "--backend", "jax", "--device", "gpu"]
    # On a CPU it is the suite of that name.
    assert "run selftest" in CliRunner().invoke(app, ["launch", "cpu", "selftest", "--print"]).stdout


@pytest.mark.parametrize("status", [0, 3])
def test_what_others_write_beside_a_profile_does_not_change_how_a_launch_ends(folder, monkeypatch, status):
    def run_here(run, is_stopping):
        (folder / "notes.json").write_text('{"a": 1}')
        return ContainerEnd(status=status, out_of_memory=False)

    monkeypatch.setattr(launch_module, "run_here", run_here)
    assert invoke("launch", "cpu", "quick").return_value == status


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        ("bind source path does not exist: /sys/devices/virtual/powercap", "leave out --rapl"),
        ('could not select device driver "" with capabilities: [[gpu]]', "NVIDIA Container Toolkit"),
        ("Requested CPUs are not available - requested 99, available: 0-1", "--cpuset"),
    ],
)
def test_a_refusal_of_the_engine_says_what_would_mend_it(refusal, remedy):
    assert remedy in explained(RuntimeError(refusal))
