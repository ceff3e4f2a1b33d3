"""What ranks have measured, as one answer: planted parts, of two ranks on one host and a third on another."""

from msgspec.structs import replace

from kit.profile.launch import Blocks, LaunchPart, Parity, Threads
from kit.worker.merged import merged, unlike
from kit.worker.messages import Done


def of_rank(number, duration_ns, **part):
    counters = {"process.cpu_ns": [10 * number], "machine.busy_ns": [100 * number], "pressure.cpu_some_ns": [7]}
    times = {"duration_ns": [duration_ns], "begin_ns": [number], "span_ns": [duration_ns]}
    none = {"lead_in": [0], "median_ns": [None]}
    blocks = Blocks(cycle=[0], steps=[4], counters=counters, **times, **none)
    threads = Threads(requested=1, reported=1, reason=None, cpus=[number], used=None if number == 3 else 2)
    known = {"blocks": blocks, "threads": threads, "peak_memory_b": 5, "python": "3.11.7", "backend_version": "2"}
    parity = Parity(losses=[1.0 * number], weights_sha256="w", batches_sha256="b")
    return Done(part=LaunchPart(**known | {"parity": parity, "device_ids": [f"board {number}"]} | part), resident_b=3)


RANKS = [of_rank(1, 100), of_rank(2, 120), of_rank(3, 110)]


def test_the_slowest_ranks_times_and_the_sum_of_what_all_use():
    done = merged(RANKS, ranks_per_host=2)
    assert (done.part.blocks.duration_ns, done.part.blocks.begin_ns) == ([120], [1]), "by rank 0's clock"
    assert done.part.blocks.counters == {
        "process.cpu_ns": [60],
        "machine.busy_ns": [600],
        "pressure.cpu_some_ns": [7],  # of the whole machine: once
    }
    assert (done.part.peak_memory_b, done.resident_b) == (15, 9)
    assert (done.part.threads.requested, done.part.threads.cpus) == (3, [1, 2, 3])
    assert done.part.threads.used is None, "a part of the sum is not known"
    assert done.part.parity.losses == [2.0], "the mean of equal parts"
    assert done.part.device_ids == ["board 1", "board 2"], "of the host that is sampled"


def test_cpus_of_two_hosts_are_not_the_same_and_those_that_ranks_share_are_counted_once():
    def counted(ranks, ranks_per_host, cpus, **more):
        threads = Threads(requested=1, reported=1, reason=None, cpus=cpus, used=1)
        part = merged([of_rank(number, 100, threads=threads) for number in ranks], ranks_per_host, **more).part
        return part.threads.cpus, part.blocks.counters["machine.busy_ns"], part.blocks.counters["process.cpu_ns"]

    assert counted([1, 2], 1, [0, 1]) == ([0, 1, 0, 1], [300], [30])
    assert counted([1, 2], 2, [0], share_cpus=True) == ([0], [100], [30])
    assert counted([1, 2, 3, 4], 2, [0], share_cpus=True) == ([0, 0], [400], [100])


def test_a_rank_of_another_version_is_named():
    assert unlike(RANKS) is None
    other = of_rank(3, 110, backend_version="3")
    assert unlike([*RANKS[:2], other])[0] == 2
    assert unlike([RANKS[0], replace(RANKS[1], part=of_rank(2, 1, python="3.12").part)])[1].values["there"] == "3.12"
