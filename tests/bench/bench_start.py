"""What a command costs from its start to its end: seconds and peak memory, beside what the goals allow.

    python tests/bench/bench_start.py [--profiles 1 1000] [--like bench/quick.json] [--repeat 7] [--folder DIR]

`kit --help`, and `kit compare` of so many profiles, each in a fresh process, its output thrown away, the profiles in
the page cache. Prints the median of the repeats and the least. The profiles are of six cells in eight rounds of twelve
cycles (`tests/profile_builder.py`), or copies of a real one (`--like`) with other ids and times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
from measuring import printed

from kit.profile.store import canonical_json, profile_digest, read_profile

sys.path.append(str(Path(__file__).parents[1]))
import profile_builder

KIT = str(Path(sys.executable).with_name("kit"))
GOALS = {"--help": "100 ms", 1: "400 ms", 1000: "4 s, 500 MB"}
# A process of its own, and a small one: a child's ru_maxrss (in kilobytes on Linux) is never below its parent's.
WATCH = """
import json, os, subprocess, sys, time
begin = time.monotonic()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(json.dumps([time.monotonic() - begin, used.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]))
os._exit(0)
"""


def write_profiles(folder, count, like):
    """Write so many profiles into the folder, unless they are there; each has been read once."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = None if like is None else msgspec.to_builtins(read_profile(like))
    for number in range(len(list(folder.glob("*.json"))), count):
        path, own_id = folder / f"{number:05}.json", f"00000000-0000-4000-8000-{number:012}"
        if plain is None:
            profile_builder.write(path, profile_builder.profile(seed=number, id=own_id))
            continue
        plain |= {
            "id": own_id,
            "created": f"2026-01-{1 + number // 1440:02}T{number // 60 % 24:02}:{number % 60:02}:00+00:00",
        }
        plain["sidecar"] = None
        plain["digest"] = profile_digest(plain)
        path.write_bytes(canonical_json(plain) + b"\n")
    return sum(len(path.read_bytes()) for path in sorted(folder.glob("*.json")))


def cost_of(arguments):
    """Return seconds and peak bytes of one command."""
    command = [sys.executable, "-S", "-c", WATCH, KIT, *arguments]
    watched = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    seconds, peak_b, code = json.loads(watched.stdout)
    if code:
        sys.exit(f"kit {' '.join(arguments)}: exit code {code}")
    return seconds, peak_b


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", type=int, nargs="+", default=[1, 1000])
    parser.add_argument("--like", type=Path, help="copy this profile")
    parser.add_argument("--folder", type=Path, help="keep the profiles here, and use those that are here")
    parser.add_argument("--repeat", type=int, default=7)
    arguments = parser.parse_args()
    rows = [("command", "median s", "least s", "peak MB", "MB read", "goal")]
    with tempfile.TemporaryDirectory() as temporary:
        commands = [("--help", ["--help"], 0)]
        for count in arguments.profiles:
            folder = (arguments.folder or Path(temporary)) / str(count)
            read_b = write_profiles(folder, count, arguments.like)
            commands.append((count, ["compare", str(folder)], read_b))
        for what, command, read_b in commands:
            seconds, peaks_b = zip(*(cost_of(command) for _ in range(arguments.repeat)), strict=True)
            name = "kit --help" if what == "--help" else f"kit compare, {what:,} profiles"
            times = [f"{value:.3f}" for value in (statistics.median(seconds), min(seconds))]
            rows.append((name, *times, f"{max(peaks_b) / 1e6:.0f}", f"{read_b / 1e6:.1f}", GOALS.get(what, "")))
    printed(rows)


if __name__ == "__main__":
    main()
