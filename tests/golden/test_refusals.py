"""What a user can get wrong is one line on standard error, an exit code, no output and no file: see refusals.txt."""

from importlib.util import find_spec

import pytest
from golden_refusals import cases, make_inputs, refused, says

# A case with one of these is no run whose dry run is refused alike.
ONLY_REAL = ("--resume", "--dry-run", "--force")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_inputs(tmp_path_factory.mktemp("refused"))


@pytest.mark.parametrize(("words", "code", "line"), cases(), ids=[words for words, *_ in cases()])
def test_a_refusal_is_its_line_and_that_of_a_dry_run(folder, words, code, line):
    if "fleet quick" in words and find_spec("reframe") is None:
        pytest.skip("ReFrame is not installed: pip install 'steadykit[fleet]'")
    shown = refused(words, folder)
    assert shown[0] == code and shown[1].isprintable() and says(shown[1], line), shown
    if " run " in f" {words}" and not any(option in words for option in ONLY_REAL):
        assert refused(f"{words} --dry-run", folder) == shown
