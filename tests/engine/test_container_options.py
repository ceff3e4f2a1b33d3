import shlex
from itertools import pairwise

import pytest

from kit.engine.container_options import Bind, ContainerOptions

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


def test_gpus_by_number_are_those():
    (request,) = FULL._replace(gpus="0,2").for_engine()["device_requests"]
    assert request["DeviceIDs"] == ["0", "2"]
