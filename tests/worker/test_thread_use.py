"""Threads that computed between two looks: of planted files, and of this process."""

import threading
import time

import pytest
from planted_files import plant

from kit.profile.fields import Reason
from kit.worker.thread_use import ThreadUse


def planted(folder, **ticks):
    """Tasks with so much user time; a tenth as much of the kernel's."""
    stat = "7 (a b) c) S 1 1 1 0 -1 64 0 0 0 0 {user} {system} 0 0 20 0"
    return plant(folder, {f"{name}/stat": stat.format(user=user, system=user // 10) for name, user in ticks.items()})


@pytest.mark.parametrize(
    ("before", "after", "used"),
    [
        ({"1": 50}, {"1": 150, "2": 90, "3": 4}, 2),  # 3 waits; 2 was not there before
        ({"1": 500, "2": 0}, {"1": 510, "2": 200}, 2),  # the first was busy before the blocks alone
        ({"1": 500, "2": 0}, {"1": 505, "2": 200}, 1),
        ({}, {"1": 5}, "threads_hardly_ran"),
        ({}, {}, "not_shown"),
    ],
)
def test_threads_with_a_share_of_the_busiest_ones_time(tmp_path, before, after, used):
    use = ThreadUse(planted(tmp_path, **before))
    planted(tmp_path, **after)
    answer = use.used()
    assert (answer.code if isinstance(answer, Reason) else answer) == used


def test_only_threads_that_ran_in_the_blocks_are_counted():
    def burn():
        end = time.thread_time() + 0.25
        while time.thread_time() < end:
            pass

    waiting = threading.Event()
    idle = threading.Thread(target=waiting.wait)
    idle.start()
    use = ThreadUse()
    second = threading.Thread(target=lambda: (burn(), waiting.wait()))
    second.start()
    burn()
    used = use.used()
    waiting.set()
    assert used == 2
    idle.join()
    second.join()
