import time

import pytest

from kit.sensors.update_period import measured_update_period_ns


def test_period_of_a_counter_that_steps():
    assert measured_update_period_ns(lambda: time.monotonic_ns() // 50_000_000) == pytest.approx(50_000_000, rel=0.3)


def test_failed_reads_are_passed_over():
    calls = iter(range(10**9))

    def value():
        return None if next(calls) % 3 == 2 else time.monotonic_ns() // 50_000_000

    assert measured_update_period_ns(value) == pytest.approx(50_000_000, rel=0.3)


def test_a_counter_that_stands_still_has_no_period():
    assert measured_update_period_ns(lambda: 7, limit_s=0.05) is None
