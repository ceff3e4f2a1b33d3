"""Fixtures for every test. Nothing in the tests reaches a network beyond this machine."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(autouse=True, scope="session")
def usual_signals() -> None:
    """Let signals end this process and those it starts, as at a terminal: nohup and `&` have them ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
