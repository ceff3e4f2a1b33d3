"""Ours over the framework's own recommended loop: prints the ratio of each cell with its 95 % interval over rounds.

    python tests/bench/bench_recommended_loop.py [--rounds 8] [--backend torch] [--workload mlp] [--task train]

Both are members of one round of the kit: fresh processes, blocks in turns, each pair within its cycle. A recommended
loop (`recommended/`) is a variant whose interpreter is a script that runs `recommended_worker.py` in place of the kit's
worker. JAX has two loops, and so three members. The goal is an upper end of at most 1.03. The data are synthetic: a
recommended loop scores no test split.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path

import msgspec
from measuring import Interval, case_parser, chosen_cells, launches_of, name_of, printed, run_rounds

from kit.compare.pairs import Pairs
from kit.profile.cell import Variant
from kit.runner.interpreters import interpreter_for
from kit.stats.difference import over_rounds

LOOPS = {"tensorflow": ["tf.function"], "torch": ["quickstart"], "jax": ["nnx.jit", "functional"]}
OURS = "ours"
UPPER_END = 1.03
WORKER = Path(__file__).with_name("recommended_worker.py")


def wrapper(folder, backend):
    """Write a stand-in for the backend's interpreter; return its path. What is not the worker it passes on."""
    python, path = shlex.quote(interpreter_for(backend)), folder / f"python-{backend}"
    path.write_text(
        f'#!/bin/sh\nif [ "$1 $2" = "-m kit.worker" ]; then\n  shift 2\n'
        f'  exec {python} {shlex.quote(str(WORKER))} "$@"\nfi\nexec {python} "$@"\n'
    )
    path.chmod(0o755)
    return str(path)


def measure(arguments, folder):
    """Return the profile of the chosen cells with their recommended loops beside them."""
    cells, variants = [], {OURS: Variant(name=OURS)}
    for cell in chosen_cells(arguments):
        for loop in LOOPS[cell.backend]:
            variants.setdefault(loop, Variant(name=loop, python=wrapper(folder, cell.backend)))
        cells += [msgspec.structs.replace(cell, variant=name) for name in (OURS, *LOOPS[cell.backend])]
    return run_rounds(
        folder / "run.json", cells, list(variants.values()), arguments.rounds, arguments.cycles, "synthetic"
    )


def main():
    parser = case_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--cycles", type=int, default=12)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        profile = measure(arguments, Path(folder))
    cells = {result.key: result.cell for result in profile.cells}
    rows, met = [("ours / recommended", "loop", "ratio [95 %]", "rounds", "SD %")], 0
    for group in profile.groups:
        pairs = Pairs([group], {one.key: one.cell for one in profile.cells}, launches_of(profile, group))
        ours, *loops = group.cells
        ends = []
        for loop in loops:
            logs = [ratio.log_ratio for ratio in pairs.ratios(ours, loop).values()]
            found = over_rounds(logs)
            ends.append(found.high if found else float("inf"))
            shown = (Interval(found.ratio, found.low, found.high), f"{100 * found.sd:.1f}") if found else (None, None)
            rows.append((name_of(cells[ours]), cells[loop].variant, shown[0], len(logs), shown[1]))
        met += max(ends) <= UPPER_END
    printed(rows)
    print(f"upper end at most {UPPER_END} against every loop: {met} of {len(profile.groups)} cells")
    for launch in (launch for result in profile.cells for launch in result.launches if launch.failure is not None):
        print(
            f"failed: {launch.cell_key}: {launch.failure.reason.code} {launch.failure.reason.values}", file=sys.stderr
        )
        print(os.linesep.join(launch.failure.stderr_tail.splitlines()[-5:]), file=sys.stderr)


if __name__ == "__main__":
    main()
