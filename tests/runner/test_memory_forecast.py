"""A network that cannot fit is refused before anything starts, with the batch that would fit."""

import re

import pytest

from kit.errors import KitError
from kit.profile.cell import Cell
from kit.runner import memory_forecast
from kit.runner.memory_forecast import check_memory, forecast_b, largest_batch

GIB = 1 << 30


def cell(workload="gpt2", task="train", batch=64, **changes):
    fields = {"backend": "torch", "device": "cpu", "precision": "bfloat16", "compile_mode": "eager", "feed": "device"}
    return Cell(workload=workload, task=task, batch=batch, **fields | changes)


@pytest.fixture
def memory(monkeypatch):
    """Sets the bytes that are free, of the host and of a GPU."""

    def free(host_b, gpu_b=None):
        monkeypatch.setattr(memory_forecast, "available_memory_b", lambda: host_b)
        monkeypatch.setattr(memory_forecast, "memory_b", lambda _: gpu_b)

    return free


def test_what_does_not_fit_is_refused_with_the_batch_that_does(memory):
    memory(12 * GIB)
    with pytest.raises(KitError) as refused:
        check_memory([cell(batch=1), cell(batch=512)])
    (fits,) = map(int, re.findall(r"at most (\d+)", str(refused.value)))
    assert "b512" in str(refused.value) and 1 < fits < 512
    check_memory([cell(batch=fits)])
    with pytest.raises(KitError):
        check_memory([cell(batch=fits + 1)])


def test_of_what_never_fits_no_batch_is_named(memory):
    memory(GIB)
    with pytest.raises(KitError, match="give a smaller network"):
        check_memory([cell(batch=1)])


def test_a_gpu_is_asked_for_its_own_memory_and_one_that_does_not_say_refuses_nothing(memory):
    memory(GIB, 140 * GIB)
    check_memory([cell(device="gpu")])
    memory(1000 * GIB, 4 * GIB)
    with pytest.raises(KitError, match=r"of the gpu's 3\.6"):
        check_memory([cell(device="gpu")])
    memory(GIB, None)
    check_memory([cell(device="gpu")])


def test_devices_that_share_a_batch_share_what_it_takes():
    alone, shared = (forecast_b(cell(batch=64, devices=devices)) for devices in (1, 2))
    assert shared < alone
    assert largest_batch(cell(batch=64), forecast_b(cell(batch=17))) == 17


def test_what_a_small_network_takes_is_far_below_a_machine():
    assert forecast_b(cell("mlp", batch=128, precision="float32")) < GIB // 8
    assert 5 * GIB < forecast_b(cell("resnet50", batch=256)) < 20 * GIB
