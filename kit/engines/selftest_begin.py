"""Everything that is decided before a self-test's first launch: which cell, how long, where it is kept."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from kit.engines.prepare import check_devices, keep_installed, prepare
from kit.engines.run import usable_cpus
from kit.engines.selftest import SUITE_NAME, SelfTest, SelfTestError
from kit.profile.launch import DataChoice
from kit.suites.override import override
from kit.suites.plan import check_choice, plan_cells
from kit.suites.suite import QUICK_SUITE, load_suite
from kit.workloads.data.dataset import ensure

SUFFIX = ".launches"


def begin(
    *, workload: str, backend: str, task: str, batch: int, rounds: int, data: DataChoice, seed: int, out: str | None
) -> tuple[SelfTest, str | None]:
    """A new self-test, measured as the quick suite is; and why its data is synthetic, where nobody asked for that.

    Raises:
        KitError: a name that is not among its choices, a framework that is not installed, a file that is there already.
    """
    check_choice("data", data, ("mnist", "synthetic", "auto"))
    axes: dict[str, list[Any]] = {
        "workloads": [workload],
        "backends": [backend],
        "tasks": [task],
        "batches": [batch],
    }
    suite = msgspec.structs.replace(override(load_suite(QUICK_SUITE), axes, launches=rounds), name=SUITE_NAME)
    cells = plan_cells(suite.cells, named=[backend])
    check_devices(cells)
    cells, skipped = keep_installed(cells, [backend])
    ready = ensure(data)
    header = prepare(
        suite,
        cells,
        skipped=skipped,
        data=ready,
        seed=seed,
        cpus=usable_cpus(),
        clock="monotonic_raw",
    )
    return SelfTest.begin(_path(out, header.id, datetime.fromisoformat(header.created)), header), ready.note


def _path(out: str | None, id: str, created: datetime) -> Path:
    """`out` itself, or ``selftest-<UTC time>-<id>.launches`` in the folder `out` (default: here)."""
    name = f"{SUITE_NAME}-{created:%Y%m%dT%H%M%SZ}-{id[:8]}{SUFFIX}"
    path = Path(out or name)
    try:
        path = path / name if path.is_dir() else path
        if not path.parent.is_dir():
            raise SelfTestError(f"{path.parent}: no such folder; create it, or choose another --out")
    except OSError as error:
        raise SelfTestError(f"{path}: cannot be created: {error.strerror}; choose another --out") from None
    return path
