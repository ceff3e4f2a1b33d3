"""The words for a launch without a steady state."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.stats.unsteady import difference, wandering


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (1.0123, "1.23 %"),
        (1 / 1.0123, "1.23 %"),
        (1.999, "99.9 %"),
        (2.0, "2 times"),
        (20.04, "20 times"),
        (1 / 5210.4, "5,210 times"),
    ],
)
def test_a_difference_is_of_the_larger_over_the_smaller(ratio, words):
    assert difference(math.log(ratio)) == words


@pytest.mark.parametrize(("width", "allowed"), [(1.01003, 1.01), (1.1000001, 1.1), (3.0, 1.1)])
def test_what_decided_is_seen_in_the_digits(width, allowed):
    reason = wandering(math.log(width), math.log(allowed), math.log(width), (5, 5), 31)
    apart, _, rest = reason.removeprefix("its last half has levels ").partition(" apart, and ")
    assert apart != rest.partition(" is allowed")[0]


@given(st.floats(-40, 40))
def test_any_difference_of_levels_has_words(log_ratio):
    words = difference(log_ratio)
    assert words == difference(-log_ratio)
    assert words.endswith((" %", " times"))
    assert "e+" not in words
