"""What slowed a GPU, from samples of known content."""

from test_sampler_summaries import SECOND, report, samples

from kit.worker.steady_gpu_throttling import NO_GPU, gpu_throttled_by
from kit.worker.steady_utilization import utilization

IDLE, CAP, HOT = 0x1, 0x4, 0x20


def board(value, number=0, **about):
    return report(f"nvml.{number}.clock_events", "throttling", **about), value


def of(*columns, begin=1.0, end=3.0):
    return gpu_throttled_by(samples(columns, 4), int(begin * SECOND), int(end * SECOND))


def test_reasons_of_all_samples_of_the_window_and_of_all_gpus():
    first = board(lambda t: CAP if 1.4 < t < 1.6 else HOT if 2.4 < t < 2.6 else IDLE)
    second = board(lambda t: CAP, 1)
    assert of(first, second) == (
        ["software power cap of GPU 0", "software power cap of GPU 1", "software thermal slowdown of GPU 0"],
        None,
    )


def test_what_happened_outside_of_the_window_does_not_count():
    assert of(board(lambda t: CAP if t < 0.95 or t > 3.05 else 0)) == ([], None)


def test_a_read_that_failed_is_passed_over():
    assert of(board(lambda t: None if t < 2 else CAP)) == (["software power cap of GPU 0"], None)


def test_a_board_that_never_answered_is_not_known():
    assert of(board(lambda t: None)) == (
        None,
        "no reading of nvml.0.clock_events lies in the steady phase, or every one failed",
    )


def test_of_two_boards_one_without_an_answer():
    silent = board(lambda t: None, 1, status="unavailable", reason="not offered")
    assert of(board(lambda t: 0), silent) == (None, "not offered")
    assert of(board(lambda t: CAP), silent) == (["software power cap of GPU 0"], None)


def test_a_machine_without_a_gpu():
    assert of((report("nvml.energy", "energy", "unavailable", "no driver"), lambda t: None)) == (None, NO_GPU)


def test_a_window_without_samples_says_nothing_of_the_gpu():
    found = utilization(samples([board(lambda t: CAP)], 4), int(1.01 * SECOND), int(1.05 * SECOND))
    assert found.gpu_throttled_by is None
    assert found.reasons["gpu_throttled_by"].startswith("0 samples lie")
