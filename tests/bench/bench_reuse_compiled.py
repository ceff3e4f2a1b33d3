"""Whether steps are the same with `--reuse-compiled` as without, and what it saves: a table of ratios.

    python tests/bench/bench_reuse_compiled.py [--rounds 3] [--folder DIR]

Runs with and without the option alternate (without, with, with, without), for a compile mode of each framework. Prints
the steps with ÷ without as `kit compare --against` judges them, and the first step of later rounds ÷ that of the first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from kit.profile.store import read_profile

MODES = {"torch": "compile", "jax": "jit", "tensorflow": "xla"}
COMPILING = ("trace", "compile", "first_step")
ORDER = ("without", "with", "with", "without")


def kit(*words: object) -> str:
    """Run the command; return what it printed."""
    command = [sys.executable, "-m", "kit", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def compiled_ns(path: Path) -> list[int]:
    """Return how long each round compiled."""
    (result,) = read_profile(path).cells
    return [sum(phase.duration_ns for phase in launch.phases if phase.name in COMPILING) for launch in result.launches]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    for backend, mode in MODES.items():
        files: dict[str, list[Path]] = {"without": [], "with": []}
        for index, name in enumerate(ORDER):
            files[name].append(folder / f"{backend}-{index}-{name}.json")
            kit("run", "--quick", "--backend", backend, "--compile-mode", mode, "--workload", "mlp", "--task", "train",
                "--rounds", options.rounds, "--no-energy", "--data", "synthetic", "--out", files[name][-1],
                *(["--reuse-compiled"] if name == "with" else []))  # fmt: skip
        document = json.loads(kit("compare", *files["without"], "--against", *files["with"], "--json"))
        (versus,) = [row["versus"] for group in document["groups"] for row in group["rows"] if row["versus"]]
        later = {
            name: statistics.median(ns / rounds[0] for rounds in map(compiled_ns, paths) for ns in rounds[1:])
            for name, paths in files.items()
        }
        print(
            f"{backend} {mode}: steps with / without {versus['ratio']:.3f} [{versus['low']:.3f}, {versus['high']:.3f}] "
            f"{versus['verdict']}; compiling in later rounds / first: {later['with']:.2f} with, "
            f"{later['without']:.2f} without",
            flush=True,
        )


if __name__ == "__main__":
    main()
