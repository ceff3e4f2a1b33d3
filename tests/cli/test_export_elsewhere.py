"""`kit export` of a format that another command writes."""

import pytest
from kit_process import REPOSITORY, invoke

PROFILE = REPOSITORY / "profiles/reference/gpu-h100-quick.json"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("csv", "kit compare PROFILE --format csv"),
        ("jsonl", "kit compare PROFILE --format jsonl"),
        ("junit", "kit compare PROFILE --format junit"),
        ("html", "kit report PROFILE -o FILE.html"),
        ("svg", "kit plot PROFILE -o FILE.svg"),
    ],
)
def test_the_command_that_writes_it_is_named(name, command):
    assert str(invoke("export", name, PROFILE).exception) == f"{name!r} is no format of this command; use {command}"
