"""Fixtures for every test. Nothing in the tests reaches a network beyond this machine."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from kit.workloads.datasets.mnist import MNIST
from kit.workloads.datasets.uci_har import UCI_HAR

BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def mnist_dir() -> Path:
    """The folder to give as KIT_DATA: it holds `mnist/` with the four files. Skips where there is none."""
    chosen = Path(os.environ.get("KIT_DATA") or BESIDE_THE_REPOSITORY).resolve()
    missing = [
        file.name for files in MNIST.files.values() for file in files if not (chosen / "mnist" / file.name).is_file()
    ]
    if missing:
        pytest.skip(f"needs MNIST: {', '.join(missing)} in {chosen / 'mnist'} (or set KIT_DATA)")
    return chosen


@pytest.fixture
def real_mnist(mnist_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`mnist_dir`, and KIT_DATA set to it for this test and the processes it starts."""
    monkeypatch.setenv("KIT_DATA", str(mnist_dir))
    return mnist_dir


@pytest.fixture
def real_har(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that KIT_DATA is set to for this test: it holds `uci_har.zip`. Skips where there is none."""
    chosen = Path(os.environ.get("KIT_DATA") or BESIDE_THE_REPOSITORY).resolve()
    monkeypatch.setenv("KIT_DATA", str(chosen))
    if UCI_HAR.missing():
        pytest.skip(f"needs UCI-HAR: {UCI_HAR.paths('train')[0]} (or set KIT_DATA)")
    return chosen


@pytest.fixture(autouse=True, scope="session")
def usual_signals() -> None:
    """Let signals end this process and those it starts, as at a terminal: nohup and `&` have them ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
