import pytest

from kit.compare.counted import counted, percent


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


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0 %"), (0.0721, "0.072 %"), (9.72, "9.7 %"), (97.4, "97 %"), (99.7, "100 %"), (1234.0, "1234 %")],
)
def test_percents_have_two_digits_and_no_exponent(value, words):
    assert percent(value) == words
