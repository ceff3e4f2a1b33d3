"""What comparing many profiles costs: seconds, peak memory, and whether time is linear in their number.

python tests/bench/bench_compare.py [--profiles N ...] [--folder DIR] [--repeat N]

Prints, asserts nothing. Each figure is of `kit compare FOLDER` in a fresh process, from its start to its end, with the
profiles in the page cache; the least of the repeats, as whatever else the machine does only adds. The profiles take
0.2 MB each; they are written anew, 10,000 of them in about a minute, unless --folder has them already.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from many_profiles import write_many

FORMATS = ("text", "csv", "json")
PROFILES = (100, 1_000, 10_000)
BYTES_PER_MB = 1e6
# getrusage(2): ru_maxrss is in kilobytes on Linux.
RSS_UNIT_B = 1024


class Cost(NamedTuple):
    """Of one command."""

    seconds: float
    cpu_s: float
    peak_rss_b: int


def cost_of(command: list[str]) -> Cost:
    """Run it with its output thrown away."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * RSS_UNIT_B)


def least(costs: list[Cost]) -> Cost:
    """Of each figure by itself."""
    return Cost(*map(min, zip(*costs, strict=True)))


def folder_of(profiles: int, parent: Path) -> Path:
    """With so many profiles in it, written now if they are not there."""
    folder = parent / str(profiles)
    folder.mkdir(exist_ok=True)
    if sum(1 for _ in folder.glob("*.json")) != profiles:
        write_many(folder, profiles)
    for path in folder.glob("*.json"):
        path.read_bytes()  # into the page cache
    return folder


def measure(counts: list[int], parent: Path, repeat: int) -> None:
    """Print one line a format and count."""
    print("format  profiles      s     CPU s  peak MB  ms/profile")
    for format_name in FORMATS:
        seconds: dict[int, float] = {}
        for count in counts:
            folder = folder_of(count, parent)
            command = [sys.executable, "-m", "kit", "compare", "--format", format_name, str(folder)]
            cost = least([cost_of(command) for _ in range(repeat)])
            seconds[count] = cost.seconds
            print(
                f"{format_name:<6} {count:>9,} {cost.seconds:7.2f} {cost.cpu_s:8.2f} "
                f"{cost.peak_rss_b / BYTES_PER_MB:8.0f} {1000 * cost.seconds / count:11.2f}",
                flush=True,
            )
        small, large = counts[-2:] if len(counts) > 1 else counts * 2
        print(f"{format_name:<6} {large:,} take {seconds[large] / seconds[small]:.1f} times as long as {small:,}")


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", type=int, nargs="+", default=PROFILES)
    parser.add_argument("--folder", type=Path, help="Keep the profiles here, and use those that are here.")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        parent = arguments.folder or Path(temporary)
        parent.mkdir(exist_ok=True)
        measure(sorted(arguments.profiles), parent, arguments.repeat)


if __name__ == "__main__":
    main()
