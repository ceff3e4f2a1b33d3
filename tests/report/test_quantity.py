import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.profile.schema import Estimate
from kit.report import quantity

UNIT_NS = {"s": 1e9, "ms": 1e6, "µs": 1e3, "ns": 1.0}


@pytest.mark.parametrize(
    ("value_ns", "words"),
    [
        (1, "1.00 ns"),
        (999.4, "999 ns"),
        (999.7, "1.00 µs"),
        (1234, "1.23 µs"),
        (15_600_000, "15.6 ms"),
        (999_999_999, "1.00 s"),
        (61.2e9, "61.2 s"),
        (3600e9, "3600 s"),
        (0, "0 ns"),
    ],
)
def test_durations(value_ns, words):
    assert quantity.duration(value_ns) == words


@given(st.floats(min_value=1, max_value=1e13))
def test_a_duration_reads_back_to_its_digits(value_ns):
    number, unit = quantity.duration(value_ns).split()
    assert float(number) * UNIT_NS[unit] == pytest.approx(value_ns, rel=0.006)
    assert 1 <= float(number) < 1000 or unit == "s"
    assert len(re.sub(r"\D", "", number)) == 3 or unit == "s"


@given(st.floats(min_value=1e-3, max_value=1e12))
def test_a_rate_reads_back_to_four_digits(per_s):
    assert float(quantity.rate(per_s).replace(",", "")) == pytest.approx(per_s, rel=0.0006)


@given(st.floats(min_value=10, max_value=1e11), st.floats(min_value=0, max_value=0.5))
def test_an_interval_has_the_unit_and_the_decimals_of_its_value(value, half):
    words = quantity.duration_estimate(
        Estimate(value=value, low=value * (1 - half), high=value * (1 + half), launches=9)
    )
    number, low, high = re.fullmatch(r"([\d.]+) \S+ \[([\d.]+), ([\d.]+)\]", words).groups()
    assert float(low) <= float(number) <= float(high)
    assert len({len(part.partition(".")[2]) for part in (number, low, high)}) == 1


def test_one_launch_shows_no_interval():
    assert quantity.duration_estimate(Estimate(value=4e6, low=None, high=None, launches=1)) == "4.000 ms"


@pytest.mark.parametrize(
    ("joules", "words"), [(2.5, "2.50 J"), (0.00123, "1.23 mJ"), (4e-7, "400 nJ"), (4e-11, "0.0400 nJ")]
)
def test_energy(joules, words):
    assert quantity.energy(joules) == words


def test_small_words():
    assert quantity.mebibytes(1536 << 20) == "1,536"
    assert quantity.percent(0.9712) == "97.1 %"
    assert quantity.times(9.996) == "10.0"
    assert quantity.signed_percent(0.996) == "−0.4"
    assert quantity.rate(0) == "0"
