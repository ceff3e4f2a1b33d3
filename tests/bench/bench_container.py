"""What a container costs: steps in it beside the host's, in one round, and a whole `kit launch` beside `kit run`.

    python tests/bench/bench_container.py steadykit:cpu [--rounds 8] [--repeat 3] [OPTIONS OF kit run]

The first table is of two members of one group, `--variant host --variant container:image=…`; goal: intervals within
±1 % for PyTorch's mlp inference, ±3 % for others. The second is seconds from a command's start to its end, one round of
one cell, in turn; goal: 3 s more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import Interval, printed

KIT = str(Path(sys.executable).with_name("kit"))
ONE = ("--quick", "--workload", "mlp", "--task", "infer", "--backend", "torch", "--rounds", "1")


def ratios(image, rounds, more, folder):
    """Yield a row for each cell: container ÷ host."""
    out = folder / "both.json"
    variants = ("--variant", "host", "--variant", f"container:image={image}")
    subprocess.run([KIT, "run", *variants, "--rounds", str(rounds), "--out", out, *more], check=True)
    compared = subprocess.run([KIT, "compare", out, "--format", "json"], stdout=subprocess.PIPE, check=True)
    for group in json.loads(compared.stdout)["groups"]:
        for row in group["rows"]:
            cell, versus = row["cell"], row["versus"]
            if versus is not None:
                known = versus["ratio"] is not None
                ratio = Interval(*(versus[name] for name in ("ratio", "low", "high"))) if known else "–"
                yield f"{cell['workload']} {cell['task']} {cell['backend']}", ratio, versus["verdict"]


def seconds(command):
    """Return how long a command took."""
    begin = time.monotonic()
    subprocess.run([KIT, *command], check=True, capture_output=True)
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    arguments, more = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        printed([("cell", "container ÷ host", "verdict"), *ratios(arguments.image, arguments.rounds, more, folder)])
        launch = ("launch", "cpu", "--image", arguments.image)
        took = {"kit run": [], "kit launch cpu": []}
        for number in range(arguments.repeat):
            for name, command in (("kit run", ("run",)), ("kit launch cpu", launch)):
                out = folder / f"{command[0]}-{number}.json"
                took[name].append(seconds((*command, *ONE, "--out", str(out))))
        print()
        rows = [(name, *(f"{f(values):.2f}" for f in (statistics.median, min))) for name, values in took.items()]
        printed([("command", "median s", "least s"), *rows])


if __name__ == "__main__":
    main()
