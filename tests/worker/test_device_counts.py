"""A member asks its backend for the cell's own kind of device, and for no other: to look at a TPU is to take it."""

import pytest

from kit.backends.catalog import load
from kit.errors import KitError
from kit.worker.member import _check_device


class Framework:
    name = "plain"

    def __init__(self, **devices):
        self.devices = devices
        self.asked = []

    def count(self, kind):
        self.asked.append(kind)
        return self.devices.get(kind, 0)


def test_only_the_kind_of_the_cell_is_counted():
    framework = Framework(cpu=1, tpu=4)
    _check_device(framework, "cpu", 1)
    assert framework.asked == ["cpu"]
    with pytest.raises(KitError, match="sees 4 tpu, and --devices needs 8"):
        _check_device(framework, "tpu", 8)


def test_a_program_of_ones_own_has_whatever_it_asks_for():
    assert {load("program").count(kind) for kind in ("cpu", "gpu", "tpu")} == {1}
