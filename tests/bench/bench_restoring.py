"""What restoring weights costs: steps and blocks of a build that restores against one that does not, in one run.

    python tests/bench/bench_restoring.py --old PYTHON [--rounds 12] [--folder DIR]

`--old` is the interpreter of an environment with a kit that does not restore and whose worker understands this runner's
requests, such as a worktree of the commit before. Both are variants of one run: three frameworks, mlp, training and
inference. Prints for each cell old ÷ new as `kit compare` judges it; goal: the interval of each ratio holds 1, or lies
within 1 % of it. Then, how long the gaps between blocks of the same cycle take in each, as a fraction of a run.
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

FRAMEWORKS = "torch,jax,tensorflow"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True)
    parser.add_argument("--rounds", default="12")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    path = (options.folder or Path(tempfile.mkdtemp())) / "restoring.json"
    run = [
        "run", "quick", "--backend", FRAMEWORKS, "--workload", "mlp", "--compare", "variant",
        "--variant", f"old:python={options.old}", "--variant", f"new:python={sys.executable}",
        "--rounds", options.rounds, "--no-energy", "--data", "synthetic", "--out", str(path), "--force",
    ]  # fmt: skip
    kit = str(Path(sys.executable).with_name("kit"))
    subprocess.run([kit, *run], check=True, stdout=sys.stderr)
    compare = [kit, "compare", str(path), "--baseline", "old", "--json"]
    document = json.loads(subprocess.run(compare, check=True, stdout=subprocess.PIPE).stdout)
    for group in document["groups"]:
        for versus in (row["versus"] for row in group["rows"] if row["versus"]):
            shown = [versus[name] for name in ("ratio", "low", "high")]
            interval = "no interval" if None in shown else "{:.4f} [{:.4f}, {:.4f}]".format(*shown)
            print(f"{' · '.join(group['title']):40} old / new {interval} {versus['verdict']}", flush=True)
    spans_s: dict[str, list[float]] = {"old": [], "new": []}
    for result in read_profile(path).cells:
        for launch in result.launches:
            blocks = launch.blocks
            if blocks.cycle:
                spans_s[result.cell.variant].append(
                    (blocks.begin_ns[-1] - blocks.begin_ns[0]) / 1e9 / len(blocks.cycle)
                )
    for name, seconds in spans_s.items():
        print(f"{name}: from block to block of a launch {statistics.median(seconds):.4f} s (turns of both)")


if __name__ == "__main__":
    main()
