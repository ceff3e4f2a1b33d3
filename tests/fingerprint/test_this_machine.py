import pytest
from planted_files import plant

from kit.fingerprint.this_machine import container


@pytest.mark.parametrize(
    ("files", "environment", "engine"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": ""}, {}, "podman"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({}, {"container": "lxc"}, "lxc"),
        ({}, {}, None),
    ],
)
def test_engine(tmp_path, files, environment, engine):
    assert container(plant(tmp_path, files), environment).text("container.engine") == engine


def test_image_and_limits_which_are_never_the_hosts_memory(tmp_path):
    """`tests/sensors/test_linux.py` has the limits of other control groups."""
    files = {
        "proc/self/cgroup": "0::/\n",
        "proc/meminfo": "MemTotal: 1073741824 kB\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cpu.max": "250000 100000\n",
        "sys/fs/cgroup/memory.max": "max\n",
    }
    inside = container(plant(tmp_path, files), {"KIT_IMAGE": "steadykit:cpu"})
    assert (inside.number("container.cpu_limit"), inside.number("container.memory_limit_b")) == (2.5, None)
    assert inside.text("container.image") == "steadykit:cpu"
