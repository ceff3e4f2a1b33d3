"""A tiny archive in UCI-HAR's format: every file of the original, a few rows in each."""

from __future__ import annotations

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

from kit.workloads.datasets import SIGNALS

ROWS = {"train": 6, "test": 3}


def signal(number: int, rows: int) -> np.ndarray:
    """Numbers that say where they stand: signal, row, time step."""
    return number + np.arange(rows)[:, None] / 10 + np.arange(128) / 10_000


def tables() -> dict[str, bytes]:
    """The files of a tiny archive, in the original's number format."""
    files = {}
    for split, rows in ROWS.items():
        files[f"UCI HAR Dataset/{split}/y_{split}.txt"] = "".join(f"{1 + row % 6}\n" for row in range(rows)).encode()
        for number, name in enumerate(SIGNALS):
            text = BytesIO()
            np.savetxt(text, -signal(number, rows), fmt="%16.7e", delimiter="")
            files[f"UCI HAR Dataset/{split}/Inertial Signals/{name}_{split}.txt"] = text.getvalue()
    return files


def packed(files: dict[str, bytes], kind: int = ZIP_DEFLATED) -> bytes:
    archive = BytesIO()
    with ZipFile(archive, "w", kind) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return archive.getvalue()
