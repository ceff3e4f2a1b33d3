"""A copy of the kit with a backend that runs on any kind of device: NumPy computes, and its arrays lie there."""

import shutil

from kit_process import REPOSITORY

PLAIN = REPOSITORY / "tests/faults/planted/backends/plain"
RESULT = ("return logits.mean() if", "return OnDevice(logits.mean()) if")
ARRAY = """

class OnDevice:
    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._values, dtype)
"""


def copied_kit(folder, kind):
    """Copy the kit into the folder, with the backend `plain` and its entry for devices of a kind."""
    shutil.copytree(REPOSITORY / "kit", folder / "kit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(PLAIN, folder / "kit/backends/plain", ignore=shutil.ignore_patterns("__pycache__"))
    backend = folder / "kit/backends/plain/backend.py"
    text = backend.read_text()
    for old, new in (('kind == "cpu"', f'kind in ("cpu", "{kind}")'), RESULT):
        assert old in text
        text = text.replace(old, new)
    backend.write_text(text + ARRAY)
