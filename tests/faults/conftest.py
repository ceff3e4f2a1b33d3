import pytest
from fault_runs import Workplace


@pytest.fixture
def place(tmp_path):
    return Workplace(tmp_path)
