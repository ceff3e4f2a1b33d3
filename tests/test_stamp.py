"""The stamp buffer: the kernel's own clock read around it, its views, and what a stamp must not do."""

import gc
import io
import sys
import threading
import time
import tracemalloc
from itertools import repeat

import numpy as np
import pytest

from kit import clock
from kit._stamp import StampBuffer

lib = clock.lib
NUMBERS = {"monotonic_raw": lib.KIT_MONOTONIC_RAW, "tsc": lib.KIT_TSC, "cntvct": lib.KIT_CNTVCT}
HERE = [source for source, number in NUMBERS.items() if lib.kit_clock_has_source(number)]
ELSEWHERE = [source for source in NUMBERS if source not in HERE]


def kernel_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


@pytest.mark.parametrize("source", HERE)
def test_stamps_lie_between_reads_of_their_source(source):
    buffer, number = StampBuffer(1000, source), NUMBERS[source]
    around = [lib.kit_clock_read(number)]
    for _ in range(1000):
        buffer.stamp()
        around.append(lib.kit_clock_read(number))
    stamps = np.asarray(buffer)
    assert np.all(np.asarray(around[:-1]) <= stamps) and np.all(stamps <= np.asarray(around[1:]))
    assert source != "monotonic_raw" or stamps[-1] <= kernel_ns()


def test_full_buffer_raises_and_keeps_what_it_has():
    buffer = StampBuffer(2, "monotonic_raw")
    buffer.stamp()
    buffer.stamp()
    kept = np.asarray(buffer).tolist()
    with pytest.raises(IndexError, match=r"^the stamp buffer is full: it was made for 2 stamps$"):
        buffer.stamp()
    assert buffer.count == buffer.capacity == 2
    assert np.asarray(buffer).tolist() == kept


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, "monotonic_raw"), ValueError, "capacity must be at least 1 stamp, not 0"),
        ((-3, "monotonic_raw"), ValueError, "capacity must be at least 1 stamp, not -3"),
        ((sys.maxsize, "monotonic_raw"), MemoryError, f"no memory for a buffer of {sys.maxsize} stamps"),
        ((1, "sundial"), ValueError, "source must be monotonic_raw, tsc or cntvct, not 'sundial'"),
        ((1, ELSEWHERE[0]), ValueError, f"this processor has no {ELSEWHERE[0]}: use monotonic_raw"),
    ],
)
def test_a_buffer_that_cannot_be_is_refused(arguments, error, message):
    with pytest.raises(error) as raised:
        StampBuffer(*arguments)
    assert str(raised.value) == message


# --- views


def test_views_share_memory_are_read_only_and_end_where_they_were_made():
    buffer = StampBuffer(10, "monotonic_raw")
    assert np.asarray(buffer).shape == (0,)
    for _ in range(3):
        buffer.stamp()
    three = np.asarray(buffer)
    buffer.stamp()
    four = np.asarray(buffer)
    assert (three.shape, four.shape, three.dtype) == ((3,), (4,), np.int64)
    assert three.ctypes.data == four.ctypes.data == np.frombuffer(buffer, np.int64).ctypes.data
    assert not three.flags.writeable
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(bytes(8)).readinto(buffer)


def test_a_view_keeps_the_stamps_alive():
    stamps = clock.Stamps(100_000)
    for _ in range(100_000):
        stamps.stamp()
    copy = stamps.view().copy()
    view = stamps.view()
    del stamps
    gc.collect()
    overwrite = [StampBuffer(100_000, "monotonic_raw") for _ in range(4)]
    assert np.array_equal(view, copy)
    del overwrite


def test_clear_refuses_while_viewed_then_starts_over():
    buffer = StampBuffer(2, "monotonic_raw")
    buffer.stamp()
    view = np.asarray(buffer)
    with pytest.raises(BufferError, match="still viewed"):
        buffer.clear()
    assert buffer.count == 1
    del view
    buffer.clear()
    assert buffer.count == 0


# --- what a stamp must not do


def test_a_stamp_makes_no_object():
    """Traced memory peaks in a loop of stamps where it does in a loop of calls that make nothing."""
    stamps = clock.Stamps(10_000)

    def peak_b(call) -> int:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        for _ in repeat(None, 1000):
            call()
        return tracemalloc.get_traced_memory()[1] - before

    tracemalloc.start()
    try:
        for call in (gc.isenabled, stamps.stamp, time.perf_counter_ns):
            peak_b(call)
        nothing_b, stamp_b, integer_b = peak_b(gc.isenabled), peak_b(stamps.stamp), peak_b(time.perf_counter_ns)
    finally:
        tracemalloc.stop()
    assert stamp_b == nothing_b < integer_b


def test_references_and_memory_are_given_back():
    def use() -> None:
        buffer = StampBuffer(100_000, "monotonic_raw")
        buffer.stamp()
        view = np.asarray(buffer)
        memoryview(buffer).release()
        with pytest.raises(BufferError):
            buffer.clear()
        del view

    use()
    references = sys.getrefcount(StampBuffer)
    tracemalloc.start()
    try:
        for _ in range(50):
            use()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    one_buffer_b = 100_000 * 8
    assert after < one_buffer_b < peak  # the memory is traced, so a leak would show
    assert sys.getrefcount(StampBuffer) == references


def test_a_stamp_keeps_the_gil_and_a_cffi_call_does_not():
    """A thread that waits for the GIL gets it only from who gives it up: the switch interval is made endless."""
    stamps = clock.Stamps(100_000)
    stamp, read = stamps.stamp, lib.kit_clock_read
    waiting, ran = threading.Event(), threading.Event()

    def wait_for_gil() -> None:
        waiting.wait()
        ran.set()

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=wait_for_gil)
    thread.start()
    try:
        sys.setswitchinterval(1000)
        waiting.set()
        for _ in range(100_000):
            stamp()
        ran_beside_stamps = ran.is_set()
        deadline = kernel_ns() + 60_000_000_000
        while not ran.is_set() and kernel_ns() < deadline:
            read(0)
        ran_beside_cffi = ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()
    assert not ran_beside_stamps
    assert ran_beside_cffi


# --- its limit


@pytest.mark.parametrize("source", HERE)
def test_a_stamp_says_whether_it_is_past_the_limit_which_begins_with_the_last_stamp(source):
    buffer = StampBuffer(1000, source)
    assert buffer.stamp() is False, "there is no limit"
    buffer.limit(2**62)
    assert buffer.stamp() is False
    buffer.limit(2**63 - 1)  # beyond the end of what the clock counts: never
    assert buffer.stamp() is False
    buffer.limit(1)
    late = [buffer.stamp() for _ in range(100)]
    begin, stamps = np.asarray(buffer)[2], np.asarray(buffer)[3:]
    assert late == [bool(stamp > begin + 1) for stamp in stamps] and late[-1]
    buffer.limit(0)
    assert buffer.stamp() is False


def test_a_limit_that_cannot_be_is_refused():
    buffer = StampBuffer(2, "monotonic_raw")
    with pytest.raises(ValueError, match=r"^a limit begins with a stamp: make one$"):
        buffer.limit(5)
    buffer.stamp()
    with pytest.raises(ValueError, match=r"^a limit is 0 or more$"):
        buffer.limit(-1)
    with pytest.raises(OverflowError):
        buffer.limit(2**63)
    with pytest.raises(TypeError):
        buffer.limit(1.5)
    buffer.limit(1)
    buffer.clear()
    assert buffer.stamp() is False, "the limit went with the stamps"
