import re
from pathlib import Path

import pytest

from kit.compare.grades import GRADES, ORDER, grade_of
from kit.compare.sentences import _OWN
from kit.compare.state_facts import NEGLIGIBLE
from kit.report.gate_table import gate_table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs" / "comparing.md"


def test_the_documented_table_is_the_codes():
    assert gate_table() in DOCS.read_text(), "python -m kit.report.gate_table prints the table for docs/comparing.md"


def test_what_people_compare_never_blocks():
    for kind in ("CPU", "accelerator", "accelerator driver", "framework", "kernel", "Python", "CPU limit", "host"):
        assert grade_of(kind, like_hardware=True) != "blocks"


def test_threads_block_on_the_same_hardware_only():
    assert grade_of("threads", like_hardware=True) == "blocks"
    assert grade_of("threads", like_hardware=False) == "warns"


@pytest.mark.parametrize("kind", GRADES)
def test_every_grade_says_why(kind):
    assert GRADES[kind].grade in ORDER
    assert re.fullmatch(r"[A-Z].{20,}\.", GRADES[kind].effect)


def test_every_kind_that_the_code_speaks_of_is_graded():
    assert set(NEGLIGIBLE) | set(_OWN) <= set(GRADES)


def test_every_grade_is_of_a_fact_that_is_taken():
    sources = "".join(path.read_text() for path in (ROOT / "kit" / "compare").glob("*.py") if path.name != "grades.py")
    assert not [kind for kind in GRADES if f'"{kind}"' not in sources]
