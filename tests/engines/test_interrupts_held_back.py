"""Interrupts that arrive where they have to wait, and where they would be lost."""

import signal

import pytest

from kit.engines import interrupts
from kit.engines.interrupts import interrupts_held_back, interrupts_let_through, terminate_as_interrupt

INTERRUPTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture(autouse=True)
def handlers():
    """Python's own, and what the tests found afterwards."""
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", INTERRUPTS)
def test_an_interrupt_waits_for_the_end_of_what_must_not_be_cut(number):
    done = False
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupts_held_back():
        signal.raise_signal(number)
        done = True
    assert done


def test_within_another_it_waits_for_the_end_of_that():
    done = []
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupts_held_back():
        with interrupts_held_back():
            signal.raise_signal(signal.SIGTERM)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


def test_what_was_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with terminate_as_interrupt(), interrupts_held_back():
        signal.raise_signal(signal.SIGHUP)


def test_where_they_are_let_through_they_come_at_once_and_wait_again_afterwards():
    done = []
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupts_held_back():
        with pytest.raises(KeyboardInterrupt), interrupts_let_through():
            signal.raise_signal(signal.SIGTERM)
            done.append("not cut")
        signal.raise_signal(signal.SIGTERM)
        done.append("held back")
    assert done == ["held back"]


def test_what_had_arrived_comes_where_it_is_let_through():
    with terminate_as_interrupt(), interrupts_held_back():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), interrupts_let_through():
            pytest.fail("it still waits")


def test_it_waits_where_the_answer_is_that_it_has_to():
    over, done = False, []
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), interrupts_held_back():
        with interrupts_let_through(unless=lambda: over):
            over = True
            signal.raise_signal(signal.SIGTERM)
            done.append("through")
        done.append("held back")
    assert done == ["through", "held back"]


def before_call(monkeypatch, count):
    """SIGINT right before the n-th change of a handler from now on, as if it came from outside."""
    change, calls = signal.signal, []

    def planted(number, handler):
        calls.append(number)
        if len(calls) == count:
            signal.raise_signal(signal.SIGINT)
        return change(number, handler)

    monkeypatch.setattr(interrupts.signal, "signal", planted)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_that_arrives_as_they_begin_to_be_held_back_swallows_no_other(monkeypatch, count):
    with terminate_as_interrupt():
        with pytest.raises(KeyboardInterrupt):
            before_call(monkeypatch, count)
            with interrupts_held_back():
                pass
        monkeypatch.undo()
        all_end_it()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_that_arrives_as_that_ends_swallows_no_other(monkeypatch, count):
    with terminate_as_interrupt():
        with pytest.raises(KeyboardInterrupt), interrupts_held_back():
            before_call(monkeypatch, count)
        monkeypatch.undo()
        all_end_it()


def all_end_it():
    for number in INTERRUPTS:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    # Nor does one come back that has been heeded.
    with interrupts_held_back():
        pass
