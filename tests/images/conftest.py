"""The scripts under images/ are run as users run them, so they are no package: tests load or start them by path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root():
    """The clone's top folder."""
    return ROOT


@pytest.fixture(scope="session")
def script():
    """Load images/NAME.py as a module."""

    def load(name):
        spec = importlib.util.spec_from_file_location(f"images_{name}", ROOT / "images" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load
