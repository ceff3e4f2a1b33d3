import signal

import pytest


@pytest.fixture(autouse=True)
def signals_of_the_tests():
    """`main` in this process leaves it to end as its signals say."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
