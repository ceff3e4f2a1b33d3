"""Two programs by Steadykit and by its peers, in the same minutes and for as long: what each finds, rightly or not.

    pip install pyperf pytest-benchmark asv
    python tests/bench/bench_peers.py [--trials 20] [--seconds 25]
    python tests/bench/bench_peers.py --trials 0                                       judge what is known

The program is `peers/step.py`: a fixed number of small products. A trial compares it with itself, and with one that
makes 3 % more products, by each tool, in random order. A tool gets as many seconds as two runs of pyperf at its
defaults take, both sides together; what a trial said is kept as a line of KEPT. Every tool decides as its
own documentation says:

    kit                variants in turns, as many rounds as fit; the verdict of `kit compare`
    pyperf             `pyperf compare_to`: a t-test at 95 %
    torch              `Timer.blocked_autorange`: medians that differ in their significant figures
    pytest-benchmark   `--benchmark-compare-fail=median:1.5%`: half of what is planted, which a user does not know
    asv                `asv compare --factor 1.01`: a change that its own statistics call one
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench_self import share
from measuring import printed

HERE = Path(__file__).parent / "peers"
KEPT = Path(__file__).parents[2] / "profiles/evidence/peers.jsonl"
PRODUCTS, PLANTED = 200, 206
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WORDS = ("slower", "faster")
KIT_ROUND_S = 6.0  # until a first run has shown it


class Side(NamedTuple):
    """What is timed: so many products, under a name."""

    name: str
    products: int


def ran(words: Sequence[str], folder: Path, products: int = PRODUCTS) -> str:
    """Return what a command prints, run in a folder with so many products a step."""
    environment = {**os.environ, **ONE_THREAD, "PRODUCTS": str(products), "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + done.stderr


def kit(sides: Sequence[Side], seconds: float, folder: Path) -> str:
    """Return the kit's verdict on the second side."""
    command, path = str(Path(sys.executable).with_name("kit")), folder / "kit.json"
    known = folder / "round_s"
    round_s = float(known.read_text()) if known.exists() else KIT_ROUND_S
    variants = [f"--variant={side.name}:env=PRODUCTS={side.products}" for side in sides]
    begin_s, rounds = time.monotonic(), max(3, round(seconds / round_s))
    words = [command, "run", "--program", str(HERE / "step.py"), *variants, "--threads", "1", "--task", "infer"]
    ran([*words, "--rounds", str(rounds), "--no-energy", "--out", str(path), "--force"], folder)
    known.write_text(str((time.monotonic() - begin_s) / rounds))
    document = json.loads(ran([command, "compare", str(path), "--json"], folder))
    rows = [row for group in document["groups"] for row in group["rows"] if row["versus"]]
    return str(rows[0]["versus"]["verdict"])


def pyperf(sides: Sequence[Side], _seconds: float, folder: Path) -> str:
    """Return what pyperf says of the second side."""
    script = folder / "pyperf_step.py"
    script.write_text("import pyperf\nfrom step import step\npyperf.Runner().bench_func('step', step)\n")
    for side in sides:
        output = folder / f"pyperf-{side.name}.json"
        output.unlink(missing_ok=True)
        passed = "--inherit-environ=PRODUCTS,PYTHONPATH," + ",".join(ONE_THREAD)
        ran([sys.executable, str(script), "--quiet", passed, "-o", str(output)], folder, side.products)
    text = ran([sys.executable, "-m", "pyperf", "compare_to", *(f"pyperf-{side.name}.json" for side in sides)], folder)
    return next((word for word in WORDS if word in text), "no")


def torch(sides: Sequence[Side], seconds: float, folder: Path) -> str:
    """Return whether the medians of torch.utils.benchmark differ in their significant figures."""
    script = folder / "torch_step.py"
    script.write_text(
        "import sys\n"
        "from torch.utils import benchmark\n"
        "timer = benchmark.Timer('step()', setup='from step import step')\n"
        "measured = timer.blocked_autorange(min_run_time=float(sys.argv[1]))\n"
        "print(benchmark.utils.common.trim_sigfig(measured.median, measured.significant_figures))\n"
    )
    words = [sys.executable, str(script), str(seconds / len(sides))]
    first, second = (float(ran(words, folder, side.products).split()[-1]) for side in sides)
    return "no" if first == second else WORDS[second < first]


def pytest_benchmark(sides: Sequence[Side], seconds: float, folder: Path) -> str:
    """Return whether pytest-benchmark fails the second side, or would fail the first against it."""
    (folder / "test_step.py").write_text("from step import step\n\ndef test_step(benchmark):\n    benchmark(step)\n")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "test_step.py"]
    words += [f"--benchmark-max-time={seconds / len(sides)}", f"--benchmark-storage={folder / 'saved'}"]
    medians = []
    for side in sides:
        output = folder / f"pytest-{side.name}.json"
        ran([*words, f"--benchmark-json={output}"], folder, side.products)
        medians.append(json.loads(output.read_text())["benchmarks"][0]["stats"]["median"])
    if medians[1] > 1.015 * medians[0]:
        return "slower"
    return "faster" if medians[0] > 1.015 * medians[1] else "no"


def asv(sides: Sequence[Side], seconds: float, folder: Path) -> str:
    """Return what asv calls a change, of two commits of a repository in which nothing differs."""
    project = folder / "asv"
    if not project.exists():
        (project / "benchmarks").mkdir(parents=True)
        (project / "benchmarks" / "__init__.py").write_text("")
        # asv leaves PYTHONPATH out.
        shutil.copy(HERE / "step.py", project / "benchmarks")
        (project / "benchmarks" / "bench.py").write_text("from .step import step\n\ndef time_step():\n    step()\n")
        settings = {"version": 1, "project": "step", "repo": ".", "branches": ["main"], "environment_type": "existing"}
        (project / "asv.conf.json").write_text(json.dumps(settings))
        git = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
        ran(["git", "init", "-q", "-b", "main"], project)
        ran(["git", "add", "."], project)
        for number in range(2):
            ran([*git, "commit", "-q", "--allow-empty", "-m", str(number)], project)
        ran([sys.executable, "-m", "asv", "machine", "--yes"], project)
    commits = ran(["git", "rev-list", "main"], project).split()
    (project / "results").mkdir(exist_ok=True)
    for file in (project / "results").rglob("*.json"):
        if file.name not in ("machine.json", "benchmarks.json"):
            file.unlink()
    # Two rounds of asv's own processes by default; a repeat as long as fills the time.
    repeat = f"repeat=(5, 100000, {seconds / len(sides) / 2:.1f})"
    for side, commit in zip(sides, commits, strict=True):
        words = ["run", "-E", f"existing:{sys.executable}", "--set-commit-hash", commit, "--attribute", repeat]
        ran([sys.executable, "-m", "asv", *words], project, side.products)
    text = ran([sys.executable, "-m", "asv", "compare", "--factor", "1.01", *commits], project)
    marks = [line[2] for line in text.splitlines() if "time_step" in line and len(line) > 2]
    return {"+": "slower", "-": "faster"}.get(marks[0] if marks else "", "no")


TOOLS: dict[str, Callable[[Sequence[Side], float, Path], str]] = {
    "kit": kit,
    "pyperf": pyperf,
    "torch": torch,
    "pytest-benchmark": pytest_benchmark,
    "asv": asv,
}


def measure(trials: int, seconds: float, folder: Path, kept: Path) -> None:
    """Run so many more trials, and keep what each tool said."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = random.Random()
    for _ in range(trials):
        for planted in draw.sample([False, True], 2):
            sides = [Side("base", PRODUCTS), Side("other", PLANTED if planted else PRODUCTS)]
            for name in draw.sample(list(TOOLS), len(TOOLS)):
                begin_s = time.monotonic()
                answer = TOOLS[name](sides, seconds, folder)
                line = {
                    "tool": name,
                    "planted": planted,
                    "answer": answer,
                    "seconds": round(time.monotonic() - begin_s, 1),
                }
                with kept.open("a") as lines:
                    lines.write(json.dumps(line) + "\n")
                print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=25.0, help="of each comparison but pyperf's (default: 25)")
    parser.add_argument("--folder", type=Path, default=Path("bench/peers"))
    parser.add_argument("--lines", type=Path, default=KEPT, metavar="FILE")
    options = parser.parse_args()
    measure(options.trials, options.seconds, options.folder.resolve(), options.lines)
    lines = [json.loads(line) for line in options.lines.read_text().splitlines()]
    rows = [("tool", "seconds", "like programs called different", "3 % found", "called faster")]
    for name in TOOLS:
        of_tool = [line for line in lines if line["tool"] == name]
        if not of_tool:
            continue
        like, planted = ([line["answer"] for line in of_tool if line["planted"] is kind] for kind in (False, True))
        mean_s = sum(line["seconds"] for line in of_tool) / len(of_tool)
        wrong = share(sum(answer in WORDS for answer in like), len(like))
        right = share(planted.count("slower"), len(planted))
        rows.append((name, f"{mean_s:.0f}", wrong, right, f"{planted.count('faster')} of {len(planted)}"))
    printed(rows)


if __name__ == "__main__":
    main()
