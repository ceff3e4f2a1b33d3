from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root():
    """The clone's top folder."""
    return Path(__file__).parents[2]
