"""What a stamp costs, beside what one would write without the kit. Run: python tests/bench/bench_stamp.py

In a round all candidates run one after another, so that the host's noise meets them alike. A ratio is of one round;
every figure is the median over rounds. Below 1 is cheaper than the one it stands over.

    cost     (a loop of N calls, less the same loop of N passes) / N, in ns
    p99.9    99.9th percentile of the N - 1 differences of N successive stamps, in ns: the tail a step would meet
    mean     mean of these differences

    stamp   the kit's
    list    stamps[i] = time.perf_counter_ns() into a list made beforehand
    cffi    CLOCK_MONOTONIC_RAW through a cffi call, stored like `list`

Back to back is measured twice. *Kept*: all lists live to the end, as a launch keeps its stamps, so the list's integers
need memory fresh from the kernel now and then. *Recycled*: each list is dropped at once and the integers of the next
take its place: the list's best case, which no launch has.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from kit import clock
from kit.profile.instruments import Calibration

lib = clock.lib

ROUNDS = 31
CALLS = 20_000
# With a busy thread a candidate waits for the GIL, up to 5 ms at a time: fewer, so that the whole stays short.
BUSY_ROUNDS = 7
BUSY_CALLS = 20_000

COST_TARGET = 1.0  # stamp over perf_counter_ns
TAIL_TARGET = 0.25  # p99.9 of stamps over p99.9 of the list

# name -> the differences of that many back to back stamps, ns
Tails = dict[str, Callable[[int], np.ndarray]]


def loop_ns(call: Callable[[], object], calls: int) -> int:
    begin = time.perf_counter_ns()
    for _ in range(calls):
        call()
    return time.perf_counter_ns() - begin


def empty_loop_ns(calls: int) -> int:
    begin = time.perf_counter_ns()
    for _ in range(calls):
        pass
    return time.perf_counter_ns() - begin


def loop_of_its_own(name: str) -> Callable[[Callable[[], object], int], int]:
    """CPython specializes a call where it stands in the code: candidates that share a loop would spoil each other's."""
    return type(loop_ns)(loop_ns.__code__.replace(co_name=name), globals())


def stamps_tail(source: clock.ClockSource, calibration: Calibration | None) -> Callable[[int], np.ndarray]:
    def tail(calls: int) -> np.ndarray:
        stamps = clock.Stamps(calls, source)
        stamp = stamps.stamp
        for _ in range(calls):
            stamp()
        return stamps.intervals_ns(calibration)

    return tail


def list_stamps(calls: int) -> list[int]:
    stamps = [0] * calls
    now = time.perf_counter_ns
    for i in range(calls):
        stamps[i] = now()
    return stamps


def cffi_stamps(calls: int) -> list[int]:
    stamps = [0] * calls
    read, raw = lib.kit_clock_read, lib.KIT_MONOTONIC_RAW
    for i in range(calls):
        stamps[i] = read(raw)
    return stamps


def list_tail(stamped: Callable[[int], list[int]], kept: list[list[int]] | None) -> Callable[[int], np.ndarray]:
    def tail(calls: int) -> np.ndarray:
        stamps = stamped(calls)
        if kept is not None:
            kept.append(stamps)
        return np.diff(stamps)

    return tail


@contextmanager
def busy_thread() -> Iterator[None]:
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure_costs(sources: list[clock.ClockSource]) -> dict[str, list[float]]:
    buffers = {f"stamp {source}": clock.Stamps(CALLS, source) for source in sources}
    read, raw = lib.kit_clock_read, lib.KIT_MONOTONIC_RAW
    calls: dict[str, Callable[[], object]] = {name: buffer.stamp for name, buffer in buffers.items()}
    calls["perf_counter_ns"] = time.perf_counter_ns
    loops = {name: loop_of_its_own(name) for name in calls}
    costs: dict[str, list[float]] = {name: [] for name in [*calls, "cffi read"]}
    for _ in range(ROUNDS):
        nothing_ns = empty_loop_ns(CALLS)
        for name, call in calls.items():
            if name in buffers:
                buffers[name].clear()
            costs[name].append((loops[name](call, CALLS) - nothing_ns) / CALLS)
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            read(raw)
        costs["cffi read"].append((time.perf_counter_ns() - begin - nothing_ns) / CALLS)
    return costs


def measure_tails(tails: Tails, rounds: int, calls: int) -> dict[str, list[tuple[float, float]]]:
    """name -> per round (p99.9, mean), ns."""
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in tails}
    for _ in range(rounds):
        for name, tail in tails.items():
            differences = tail(calls)
            measured[name].append((float(np.percentile(differences, 99.9)), float(differences.mean())))
    return measured


def median_ratio(these: list[float], those: list[float]) -> float:
    return statistics.median(this / that for this, that in zip(these, those, strict=True))


def verdict(ratio: float, target: float) -> str:
    return f"target {target:.2f}: {'met' if ratio <= target else 'MISSED'}"


def print_costs(costs: dict[str, list[float]]) -> None:
    print(f"cost of one call, {ROUNDS} rounds of {CALLS}: over perf_counter_ns, ns")
    for name, values in costs.items():
        ratio = median_ratio(values, costs["perf_counter_ns"])
        against = verdict(ratio, COST_TARGET) if name.startswith("stamp") else ""
        print(f"  {name:22} {ratio:6.2f} {statistics.median(values):9.1f}  {against}".rstrip())


def print_tails(title: str, measured: dict[str, list[tuple[float, float]]], *, target: float | None = None) -> None:
    print(f"back to back, {title}: p99.9 over list's, mean over list's; p99.9 ns, mean ns")
    p999 = {name: [value[0] for value in values] for name, values in measured.items()}
    mean = {name: [value[1] for value in values] for name, values in measured.items()}
    for name in measured:
        p999_ratio, mean_ratio = median_ratio(p999[name], p999["list"]), median_ratio(mean[name], mean["list"])
        against = verdict(p999_ratio, target) if target is not None and name.startswith("stamp") else ""
        absolute = f"{statistics.median(p999[name]):12.0f} {statistics.median(mean[name]):9.0f}"
        print(f"  {name:22} {p999_ratio:10.3f} {mean_ratio:9.3f} {absolute}  {against}".rstrip())


def main() -> None:
    sources: list[clock.ClockSource] = ["monotonic_raw"]
    finest, _ = clock.choose_source("auto")
    if finest not in sources:
        sources.append(finest)
    print_costs(measure_costs(sources))
    stamp_tails: Tails = {f"stamp {source}": stamps_tail(source, clock.calibrate(source)) for source in sources}

    recycled = stamp_tails | {"list": list_tail(list_stamps, None), "cffi": list_tail(cffi_stamps, None)}
    print_tails(f"recycled, {ROUNDS} rounds of {CALLS}", measure_tails(recycled, ROUNDS, CALLS))

    lists: list[list[int]] = []
    kept = stamp_tails | {"list": list_tail(list_stamps, lists), "cffi": list_tail(cffi_stamps, lists)}
    print_tails(f"kept, {ROUNDS} rounds of {CALLS}", measure_tails(kept, ROUNDS, CALLS), target=TAIL_TARGET)

    with busy_thread():
        busy = measure_tails(kept, BUSY_ROUNDS, BUSY_CALLS)
    print_tails(f"kept, a busy Python thread beside, {BUSY_ROUNDS} rounds of {BUSY_CALLS}", busy)


if __name__ == "__main__":
    main()
