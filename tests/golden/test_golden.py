"""What commands print is what tests/golden/outputs holds, byte by byte; numbers for programs to 1e-9."""

from difflib import unified_diff
from itertools import islice

import pytest
from golden_outputs import CASES, OUTPUTS, agree, output_path, run_case
from golden_profiles import make_profiles

DIFF_LINES = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_profiles(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", CASES)
def test_a_command_prints_what_it_printed(folder, name):
    path = output_path(name)
    before, after = path.read_text(encoding="utf-8"), run_case(name, folder)
    if not agree(path, before, after):
        lines = unified_diff(before.splitlines(), after.splitlines(), "before", "after", n=1, lineterm="")
        shown = "\n".join(line[:300] for line in islice(lines, DIFF_LINES))
        pytest.fail(f"{path.name} has changed; if it should, run `make golden`\n{shown}", pytrace=False)


def test_every_output_has_a_case():
    assert {*OUTPUTS.iterdir()} == {*map(output_path, CASES)}
