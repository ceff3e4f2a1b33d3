import pytest

from kit.engine.container import explained


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("bind source path does not exist: /sys/devices/virtual/powercap", "leave out --rapl"),
        ('could not select device driver "" with capabilities: [[gpu]]', "NVIDIA Container Toolkit"),
        ("Requested CPUs are not available - requested 99, available: 0-1", "--cpuset"),
    ],
)
def test_a_refusal_of_the_engine_says_what_would_mend_it(said, remedy):
    assert remedy in explained(RuntimeError(said))
