"""Whether steps are the same with `--reuse-compiled` as without, and what it saves: a line for each framework.

    python tests/bench/bench_reuse_compiled.py [--rounds 5] [--folder DIR]

Two variants take turns in one run, in a compile mode of each framework; one of them compiles in every round. Prints
their ratio as `kit compare` judges it, and how long later rounds compiled ÷ the first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from kit.environment import COMPILE_CACHE
from kit.profile.store import read_profile

MODES = {"torch": "compile", "jax": "jit", "tensorflow": "xla"}
COMPILING = ("trace", "compile", "first_step")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    for backend, mode in MODES.items():
        path = folder / f"{backend}.json"
        run = [
            "run", "--quick", "--backend", backend, "--compile-mode", mode, "--workload", "mlp", "--task", "train",
            "--variant", f"anew:env={COMPILE_CACHE}=", "--variant", "reused:", "--reuse-compiled",
            "--rounds", options.rounds, "--no-energy", "--data", "synthetic", "--out", str(path),
        ]  # fmt: skip
        subprocess.run([sys.executable, "-m", "kit", *run], check=True, stdout=sys.stderr)
        compare = [sys.executable, "-m", "kit", "compare", str(path), "--baseline", "anew", "--json"]
        document = json.loads(subprocess.run(compare, check=True, stdout=subprocess.PIPE).stdout)
        (versus,) = [row["versus"] for group in document["groups"] for row in group["rows"] if row["versus"]]
        later = {}
        for result in read_profile(path).cells:
            first_ns, *others_ns = (
                sum(phase.duration_ns for phase in launch.phases if phase.name in COMPILING)
                for launch in result.launches
            )
            later[result.cell.variant] = statistics.median(others_ns) / first_ns
        print(
            f"{backend} {mode}: steps reused / anew {versus['ratio']:.3f} [{versus['low']:.3f}, {versus['high']:.3f}] "
            f"{versus['verdict']}; compiling in later rounds / first: {later['reused']:.2f} reused, "
            f"{later['anew']:.2f} anew",
            flush=True,
        )


if __name__ == "__main__":
    main()
