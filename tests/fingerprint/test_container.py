import pytest

from kit.fingerprint.container import container


def plant(root, files):
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


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
    assert container(plant(tmp_path, files), environment).engine == engine


def test_limits_are_the_containers_own(tmp_path):
    """A container of 2 GiB on a host of 1 TB is one of 2 GiB."""
    files = {
        "proc/self/cgroup": "0::/\n",
        "proc/meminfo": "MemTotal: 1073741824 kB\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cpu.max": "250000 100000\n",
        "sys/fs/cgroup/memory.max": "2147483648\n",
    }
    found = container(plant(tmp_path, files), {})
    assert (found.cpu_limit, found.memory_limit_b) == (2.5, 2 << 30)


def test_no_limit_is_null_and_never_the_hosts_memory(tmp_path):
    files = {
        "proc/self/cgroup": "0::/\n",
        "proc/meminfo": "MemTotal: 1073741824 kB\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
        "sys/fs/cgroup/cpu.max": "max 100000\n",
        "sys/fs/cgroup/memory.max": "max\n",
    }
    found = container(plant(tmp_path, files), {})
    assert (found.cpu_limit, found.memory_limit_b) == (None, None)


def test_image_by_our_own_variable(tmp_path):
    assert container(tmp_path, {"KIT_IMAGE": "steadykit:cpu"}).image == "steadykit:cpu"
