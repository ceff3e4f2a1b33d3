"""Interrupts that arrive where they have to wait, and where they would be lost."""

import signal

import pytest

from kit.engines import interrupts
from kit.engines.interrupts import heed_interrupts, interrupts_held_back

INTERRUPTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def raise_of_their_own(number, frame):
    raise InterruptedError(number)


@pytest.fixture(autouse=True)
def handlers():
    """Raising ones before the tests, and what the tests found afterwards."""
    before = {number: signal.signal(number, raise_of_their_own) for number in INTERRUPTS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", INTERRUPTS)
def test_an_interrupt_waits_for_the_end_of_what_must_not_be_cut(number):
    done = False
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        signal.raise_signal(number)
        done = True
    assert done


@pytest.mark.parametrize("number", INTERRUPTS)
def test_or_for_the_place_where_it_is_heeded(number):
    with interrupts_held_back():
        heed_interrupts()
        signal.raise_signal(number)
        signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            heed_interrupts()
        # Both.
        heed_interrupts()


def test_within_another_it_waits_for_the_end_of_that():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_held_back():
        with interrupts_held_back():
            signal.raise_signal(signal.SIGTERM)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]


def test_what_was_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interrupts_held_back():
        signal.raise_signal(signal.SIGHUP)
        heed_interrupts()


def test_an_error_is_told_rather_than_the_interrupt_that_came_with_it():
    with pytest.raises(ValueError, match="told"), interrupts_held_back():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("told")
    heed_interrupts()


def test_the_third_in_a_row_is_let_through():
    with interrupts_held_back():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(InterruptedError):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            heed_interrupts()
        # Counted anew.
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            heed_interrupts()


@pytest.mark.parametrize("number", INTERRUPTS)
def test_afterwards_they_do_what_they_did(number):
    with interrupts_held_back():
        pass
    with pytest.raises(InterruptedError):
        signal.raise_signal(number)


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
    with pytest.raises(InterruptedError):
        before_call(monkeypatch, count)
        with interrupts_held_back():
            pass
    monkeypatch.undo()
    all_end_it()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_that_arrives_as_that_ends_swallows_no_other(monkeypatch, count):
    with pytest.raises(InterruptedError), interrupts_held_back():
        before_call(monkeypatch, count)
    monkeypatch.undo()
    all_end_it()


def all_end_it():
    for number in INTERRUPTS:
        with pytest.raises(InterruptedError):
            signal.raise_signal(number)
    # Nor is one left to be heeded.
    heed_interrupts()
