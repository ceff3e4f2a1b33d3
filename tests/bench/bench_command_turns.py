"""How far the ratio of one command to itself spreads, by how many runs it has in a turn.

    python tests/bench/bench_command_turns.py [--windows 20]

Each window has 48 runs of either side, of some 5 ms each. Where runs were independent, their spread would not depend
on the turns.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from pathlib import Path

from bench_hyperfine import ITERATIONS, build
from measuring import printed

from kit.backends.program.command import CommandProgram
from kit.clock import now_ns
from kit.profile.program_source import CommandSource

RUNS, TURNS = 48, (1, 3, 12, 48)


def window(command, turn):
    """Return the logarithm of the ratio of the means of both sides."""
    sides = ([], [])
    for number in range(2 * RUNS // turn):
        for _ in range(turn):
            begin_ns = now_ns()
            command.step(None)
            # Each other pair of turns is reversed, as in a round.
            sides[(number % 4) in (1, 2)].append(now_ns() - begin_ns)
    return math.log(statistics.fmean(sides[0]) / statistics.fmean(sides[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=20)
    windows = parser.parse_args().windows
    rows = [("runs in a turn", "SD of the ratio, %", "again, %")]
    with tempfile.TemporaryDirectory() as name:
        command = CommandProgram(CommandSource(words=[build(Path(name), "same", ITERATIONS)]), {})
        spread = {
            (turn, half): statistics.stdev(window(command, turn) for _ in range(windows))
            for half in range(2)
            for turn in TURNS
        }
        command.close()
    rows += [(turn, *(f"{100 * spread[turn, half]:.2f}" for half in range(2))) for turn in TURNS]
    printed(rows)


if __name__ == "__main__":
    main()
