"""Faults are injected into a real `kit run`; each test hands in its row of docs/reliability.md."""

import os
import subprocess

import fault_table
import pytest
from fault_runs import PLANTED, Workplace, as_anywhere
from fault_table import Row


@pytest.fixture
def workplace(tmp_path):
    def make(**plan):
        return Workplace(tmp_path, **plan)

    return make


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """What to add to a run's environment so that `shim.c` is preloaded; it does nothing until it is told."""
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", str(library), str(PLANTED / "shim.c"), "-ldl"]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": str(library)}


RECORDED = {}


@pytest.fixture
def recorded():
    """Fault -> Row, of those that this session has handed in."""
    return RECORDED


@pytest.fixture
def tell(tmp_path):
    """Hand a row in: `tell(fault, injected, kept=, code=, said=, go_on=)`; the document must have the same."""

    def hand_in(fault, injected, *, kept, code, said, go_on):
        assert fault in fault_table.FAULTS
        row = Row(fault, injected, kept, str(code), as_anywhere(said, tmp_path), as_anywhere(go_on, tmp_path))
        RECORDED[fault] = row
        if not fault_table.writing():
            written = fault_table.rows_written().get(fault)
            assert written == row, f"docs/reliability.md says otherwise; to write it anew: {fault_table.REGENERATE}"

    return hand_in


def pytest_collection_modifyitems(items):
    """The test of the whole table comes last."""
    items.sort(key=lambda item: item.path.name == "test_whole_table.py")


def pytest_sessionfinish():
    if fault_table.writing():
        rows = fault_table.rows_written() | RECORDED
        fault_table.DOCUMENT.write_text(fault_table.document(fault_table.DOCUMENT.read_text(), rows))
