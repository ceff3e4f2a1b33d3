"""`make lint` finds files that import each other in a circle, however the imports are hidden."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).with_name("import_circles.py")
PLANTED = {
    "at the top": "from planted.low import top\n",
    "in a function": "def ask():\n    from planted.low import top\n    return top\n",
    "for types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from planted.low import top\n",
}


@pytest.mark.parametrize("hidden", [None, *PLANTED])
def test_a_circle_is_found_wherever_its_import_is(tmp_path, hidden):
    package = tmp_path / "planted"
    package.mkdir()
    files = {"__init__": "", "low": "from planted.middle import top\n", "middle": "from planted.high import top\n"}
    for name, text in (files | {"high": "top = 1\n" + PLANTED.get(hidden, "")}).items():
        (package / f"{name}.py").write_text(text)
    done = subprocess.run([sys.executable, CHECK, "planted", tmp_path], capture_output=True, text=True, check=False)
    circle = "planted.high, planted.low, planted.middle"
    assert (done.returncode, circle in done.stdout) == ((0, False) if hidden is None else (1, True)), done.stderr
