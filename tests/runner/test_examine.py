"""The doctor asks frameworks one after another where they would keep each other from a device."""

import os
import time

import pytest

from kit.devices import DEVICES
from kit.profile.facts import Accelerator
from kit.runner import examine as examine_module
from kit.worker.probe import Probe

CHIP = Accelerator(name="tpu 0", model="TPU")


@pytest.fixture
def refused(monkeypatch, tmp_path):
    """Probes that hold a lock as libtpu does; who found it held."""
    lock, names = tmp_path / "libtpu_lockfile", []

    def probe(name, *, devices):
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            names.append(name)
        else:
            time.sleep(0.1)
            lock.unlink()
        return Probe(backend=name, version="1", kit="1", devices={"tpu": 1})

    monkeypatch.setattr(examine_module, "find_backend", probe)
    return names


@pytest.mark.parametrize(("chips", "meet"), [([CHIP], False), ([], True)])
def test_a_tpu_is_asked_for_by_one_framework_at_a_time(monkeypatch, refused, chips, meet):
    monkeypatch.setattr(DEVICES["tpu"], "listed", lambda: chips)
    backends = examine_module.examine().backends
    assert len(backends) == len(examine_module.FRAMEWORKS) > 1
    assert bool(refused) is meet
