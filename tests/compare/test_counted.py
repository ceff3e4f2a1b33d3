import pytest

from kit.compare.counted import counted


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "launch", "1 launch"),
        (0, "launch", "0 launches"),
        (2, "launch", "2 launches"),
        (1200, "update", "1,200 updates"),
        (1.0, "CPU", "1 CPU"),
        (1.5, "CPU", "1.5 CPUs"),
    ],
)
def test_one_is_singular(number, noun, words):
    assert counted(number, noun) == words
