"""tests/prose.py: what proselint is given of Markdown."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = """\
# A very

One word, `a very small`, [a very](how-to/very.md).

```text
a very small block
```
"""


@pytest.fixture(scope="module")
def prose():
    pytest.importorskip("proselint")
    spec = importlib.util.spec_from_file_location("prose", ROOT / "tests/prose.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_code_and_targets_of_links_are_no_prose_and_lines_and_columns_stay(prose):
    text = prose.prose(PAGE)
    assert [len(line) for line in text.splitlines()] == [len(line) for line in PAGE.splitlines()]
    assert text.count("very") == 2


def test_a_planted_finding_is_printed_with_its_place(prose, capsys, tmp_path):
    (tmp_path / "page.md").write_text(PAGE)
    assert prose.main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        [f"{tmp_path}/page.md:1:5", "weasel_words.very"],
        [f"{tmp_path}/page.md:3:30", "weasel_words.very"],
    ]
