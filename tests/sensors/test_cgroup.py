import pytest
from planted_files import plant

from kit.sensors import cgroup

V2_STAT = "usage_usec 9\nnr_periods 20\nnr_throttled {count}\nthrottled_usec {usec}\n"


def open_edges(root):
    (source,) = cgroup.open_edges([], root / "cg", root / "proc")
    return source


@pytest.fixture
def version2(tmp_path):
    files = {
        "proc/self/cgroup": "0::/box/inner\n",
        "cg/cgroup.controllers": "cpu memory\n",
        "cg/box/cpu.max": "150000 100000\n",
        "cg/box/cpu.stat": V2_STAT.format(count=3, usec=4000),
        "cg/box/memory.max": "2147483648\n",
        "cg/box/inner/cpu.max": "max 100000\n",
        "cg/box/inner/cpu.stat": V2_STAT.format(count=0, usec=0),
        "cg/box/inner/memory.max": "max\n",
    }
    return plant(tmp_path, files)


def test_version2_limits_come_from_the_tightest_parent(version2):
    group = cgroup.locate("cpu", version2 / "cg", version2 / "proc")
    assert (group.version, cgroup.cpu_limit(group), cgroup.memory_limit_b(group)) == (2, 1.5, 2 << 30)


def test_version2_throttling_is_read_where_the_quota_is_and_followed(version2):
    source = open_edges(version2)
    assert [report.name for report in source.reports] == ["cgroup.throttled_ns", "cgroup.throttled_periods"]
    assert source.read() == (4_000_000, 3)
    (version2 / "cg/box/cpu.stat").write_text(V2_STAT.format(count=5, usec=9000))
    assert source.read() == (9_000_000, 5)
    (version2 / "cg/box/cpu.stat").write_text("nr_throttled x\nthrottled_usec y\n")
    with pytest.raises(ValueError):
        source.read()


def test_version1(tmp_path):
    files = {
        "proc/self/cgroup": "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n",
        "cg/cpu,cpuacct/box/cpu.cfs_quota_us": "50000\n",
        "cg/cpu,cpuacct/box/cpu.cfs_period_us": "100000\n",
        "cg/cpu,cpuacct/box/cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_time 12345\n",
        "cg/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "cg/memory/box/memory.limit_in_bytes": "9223372036854771712\n",
    }
    plant(tmp_path, files)
    cpu = cgroup.locate("cpu", tmp_path / "cg", tmp_path / "proc")
    memory = cgroup.locate("memory", tmp_path / "cg", tmp_path / "proc")
    assert (cpu.version, cgroup.cpu_limit(cpu), cgroup.memory_limit_b(memory)) == (1, 0.5, None)
    assert open_edges(tmp_path).read() == (12345, 2)


def test_a_path_above_the_mount_means_the_mount(version2):
    plant(version2, {"proc/self/cgroup": "0::/../../elsewhere\n", "cg/cpu.max": "200000 100000\n"})
    group = cgroup.locate("cpu", version2 / "cg", version2 / "proc")
    assert (group.folders, cgroup.cpu_limit(group)) == ([version2 / "cg"], 2.0)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"cg/cgroup.controllers": "cpu\n", "cg/cpu.stat": "usage_usec 9\n"}, "no_throttling_count"),
        ({"cg/cgroup.controllers": "cpu\n"}, "no_throttling_count"),
        ({}, "no_cpu_controller"),
    ],
)
def test_where_nothing_is_counted_the_reason_says_why(tmp_path, files, code):
    plant(tmp_path, {"proc/self/cgroup": "0::/\n"} | files)
    source = open_edges(tmp_path)
    assert source.read is None
    assert {report.reason.code for report in source.reports} == {code}
