"""The same two binaries, alike and 3 % apart, in rounds by `kit run --command` and one after the other by hyperfine.

    python tests/bench/bench_hyperfine.py [--trials 20] [--seconds 20] [--neighbor]

Each trial gives both tools the same wall time. hyperfine (Debian's package) has no
verdict of its own: its times are called different where Welch's t test says so at 5 %, as its own script
`welch_ttest.py` does. The first lines are what a member costs: our wall time of an empty command over hyperfine's.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_self import share
from measuring import printed
from scipy.stats import ttest_ind

from kit.backends.program.command import CommandProgram
from kit.clock import now_ns
from kit.compare.metrics import usual_metric
from kit.profile.program_source import CommandSource
from kit.profile.store import read_profile

# About 10 ms of integer work that no compiler leaves out.
WORK = """#include <stdint.h>
int main(void) {
    volatile uint64_t sum = 0;
    for (uint64_t i = 0; i < ITERATIONS; i++) sum += i ^ (sum >> 3);
    return 0;
}
"""
ITERATIONS, PLANTED = 5_000_000, 1.03
EMPTY_RUNS = 1000
LEAST = 2


def build(folder, name, iterations):
    source = folder / "work.c"
    source.write_text(WORK)
    subprocess.run(["cc", "-O1", f"-DITERATIONS={iterations}", "-o", folder / name, source], check=True)
    return str(folder / name)


def by_hyperfine(commands, runs, folder):
    """Return the seconds of each run of each command."""
    out = folder / "hyperfine.json"
    words = ["hyperfine", "-N", "--warmup", "3", "--runs", str(runs), "--export-json", str(out), *commands]
    subprocess.run(words, check=True, capture_output=True)
    return [result["times"] for result in json.loads(out.read_text())["results"]]


def by_kit(commands, seconds, folder):
    """Return the verdict on the second command, and its ratio."""
    named = [word for name, command in zip("ab", commands, strict=True) for word in ("--command", f"{name}={command}")]
    out = Path(tempfile.mkdtemp(dir=folder), "kit.json")  # a budget leaves rounds, which a later run would resume
    words = [sys.executable, "-m", "kit", "run", *named, "--no-energy", "--budget", str(seconds), "--rounds", "200"]
    subprocess.run([*words, "--out", out], check=True, capture_output=True)
    shown = subprocess.run(
        [sys.executable, "-m", "kit", "compare", out, "--format", "json"], check=True, capture_output=True
    )
    assert usual_metric(read_profile(out).suite) == "step_ns"
    (group,) = json.loads(shown.stdout)["groups"]
    (versus,) = [row["versus"] for row in group["rows"] if row["name"] == "b"]
    return versus["verdict"], versus["ratio"]


def cost(folder):
    """Yield our wall time of an empty command over hyperfine's."""
    yield "empty command, median of 1,000", "ours, µs", "hyperfine -N, µs", "ratio"
    for number in range(4):
        command, times_ns = CommandProgram(CommandSource(words=["/bin/true"]), {}), []
        for _ in range(EMPTY_RUNS):
            begin_ns = now_ns()
            command.step(None)
            times_ns.append(now_ns() - begin_ns)
        command.close()
        (others_s,) = by_hyperfine(["/bin/true"], EMPTY_RUNS, folder)
        ours_us, others_us = statistics.median(times_ns) / 1e3, statistics.median(others_s) * 1e6
        yield number, f"{ours_us:.0f}", f"{others_us:.0f}", f"{ours_us / others_us:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--neighbor", action="store_true", help="a program beside both that is busy half of the time")
    arguments = parser.parse_args()
    if shutil.which("hyperfine") is None:
        sys.exit("hyperfine is missing: apt-get install hyperfine")
    neighbor = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        printed(list(cost(folder)))
        same, again = build(folder, "same", ITERATIONS), build(folder, "again", ITERATIONS)
        slower = build(folder, "slower", round(PLANTED * ITERATIONS))
        if arguments.neighbor:
            code = "import time\nwhile True:\n t = time.time() + 3\n while time.time() < t: pass\n time.sleep(3)"
            neighbor = subprocess.Popen([sys.executable, "-c", code])
        called, ratios = {}, {}
        try:
            for trial in range(arguments.trials):
                for kind, pair in (("alike", [same, again]), ("3 % apart", [same, slower])):
                    begin_s = time.perf_counter()
                    verdict, ratio = by_kit(pair, arguments.seconds, folder)
                    taken_s = time.perf_counter() - begin_s
                    run_s = sum(map(statistics.fmean, by_hyperfine(pair, 5, folder)))
                    times_s = by_hyperfine(pair, max(LEAST, round(taken_s / run_s)), folder)
                    p = ttest_ind(*times_s, equal_var=False).pvalue
                    is_longer = statistics.fmean(times_s[1]) > statistics.fmean(times_s[0])
                    others = ("slower" if is_longer else "faster") if p < 0.05 else "unresolved"
                    for tool, answer, factor in (
                        ("kit run --command", verdict, ratio),
                        ("hyperfine", others, statistics.fmean(times_s[1]) / statistics.fmean(times_s[0])),
                    ):
                        called.setdefault((tool, kind), []).append(answer)
                        ratios.setdefault((tool, kind), []).append(factor)
                    print(trial, kind, f"{taken_s:.1f} s", verdict, others, file=sys.stderr, flush=True)
        finally:
            if neighbor is not None:
                neighbor.kill()
    rows = [("tool", "alike: called different", "3 % apart: slower one found", "SD of the ratio, %")]
    for tool in ("kit run --command", "hyperfine"):
        alike, apart = called[tool, "alike"], called[tool, "3 % apart"]
        spread = 100 * statistics.stdev(ratio for ratio in ratios[tool, "3 % apart"] if ratio)
        called_different, named_slower = (
            sum(answer in {"faster", "slower"} for answer in alike),
            sum(answer == "slower" for answer in apart),
        )
        rows.append((tool, share(called_different, len(alike)), share(named_slower, len(apart)), f"{spread:.2f}"))
    print()
    printed(rows)


if __name__ == "__main__":
    main()
