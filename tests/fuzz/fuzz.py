"""Changes profiles, suites and journals, runs commands on them, and prints the faults.

python tests/fuzz/fuzz.py [--seed 1] [--times 10] [--subject cpu] [--mutations 300]
python tests/fuzz/fuzz.py --replay cpu/1/17
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

# A command that compiles a file of the kit would write it, and that is none of its outputs.
sys.dont_write_bytecode = True
TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS.parent), str(TESTS), str(TESTS / "fuzz")]

from fuzz_commands import commands_for, run  # noqa: E402
from fuzz_judge import Watch, entries, faults_of, kind_of  # noqa: E402
from fuzz_subjects import SUBJECTS, Subject  # noqa: E402

from kit.fingerprint.private import hashed  # noqa: E402

# Of each subject, about a minute of a quiet CPU in all, with three starts. A busy machine takes longer, and makes as many.
MUTATIONS = {"cpu": 250, "gpu": 200, "ranks": 250, "published": 260, "suite": 220, "journal": 240}
CHEAP, DEAR = 7, 0.06
AFTER_A_REFUSAL = 2  # other commands on what the usual ones refuse
# All that the frameworks' and NumPy's libraries map, and as much again for what a file may ask for.
MEMORY_MAX_B = 6 << 30
# More than any command needs on profiles this small; a fault where one mutation makes the process grow by more.
GROWTH_MAX_B = 256 << 20
HOW_MAX = 600


class Fuzz:
    """One subject in one folder, mutation after mutation."""

    def __init__(self, name: str, root: Path, watch: Watch) -> None:
        self.name, self.root, self.watch = name, root, watch
        self.folder = root / "named"
        self.subject: Subject = SUBJECTS[name]()
        self.commands = 0
        self.refused = 0
        self.faults: dict[str, list[tuple[str, str]]] = {}  # by kind: what happened, and how to see it again

    def begin(self) -> None:
        """Make the folder anew, with what no command may touch beside it."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in (self.folder / "out", self.root / "outside"):
            folder.mkdir(parents=True)
        for name in ("canary.txt", "canary.toml"):
            (self.root / "outside" / name).write_text("nobody reads or writes this\n", encoding="utf-8")
        self.subject.write_whole(self.folder)

    def mutate(self, seed: int, number: int, *, shows: bool = False) -> None:
        """Make one mutation and run commands on it."""
        rng = random.Random(f"{self.name}/{seed}/{number}")
        if self.subject.kind == "journal" or number % 50 == 0 or shows:
            self.begin()
        changes = self.subject.write(self.folder, rng)
        self.read(f"{self.name}/{seed}/{number}", changes, rng, shows=shows)

    def read(self, replayed: str, changes: list[str], rng: random.Random, *, shows: bool = False) -> None:
        """Run the commands that the random numbers choose on what was written; of what is refused, fewer."""
        before = entries(self.root)
        words = commands_for(self.subject.kind, rng, CHEAP, DEAR)
        usual = words[0]
        if shows:
            print(f"{replayed}: {'; '.join(changes)}", flush=True)
        while words:
            command, grown_b = words.pop(0), _peak_b()
            if self.subject.kind != "journal" and any((self.folder / "out").iterdir()):
                shutil.rmtree(self.folder / "out")
                (self.folder / "out").mkdir()
            with self.watch:
                ran = run(command, self.folder)
            self.commands += 1
            faults = [*faults_of(ran, self.folder / "out"), *self.watch.faults(self.root, self.subject.kind)]
            after = entries(self.root)
            changed = [path for path in before.keys() | after if before.get(path) != after.get(path)]
            faults += [f"outside: {path} is changed" for path in sorted(changed)]
            if (more_b := _peak_b() - grown_b) > GROWTH_MAX_B:
                faults.append(f"memory: {more_b >> 20} MiB more")
            if shows:
                print(f"$ kit {command}\n{ran.printed.decode(errors='replace')[:1500]}")
                print(f"{ran.complained.decode(errors='replace')[:1500]}--- exit {ran.code}", flush=True)
                if ran.error is not None:
                    traceback.print_exception(ran.error)
            how = f"kit {command}; {'; '.join(changes)}; --replay {replayed}"
            for fault in faults:
                self.faults.setdefault(kind_of(fault), []).append((fault, how))
            if changed:
                self.begin()
                return
            if command == usual and ran.is_refused:
                self.refused += 1
                words = words[:AFTER_A_REFUSAL]


def _peak_b() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def main() -> int:
    """Fuzz and print; exit 1 where there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutations", type=int, help="of each subject, in place of a minute's")
    parser.add_argument("--times", type=int, default=1, help="so many minutes")
    parser.add_argument("--subject", choices=list(SUBJECTS), action="append")
    parser.add_argument("--replay", help="SUBJECT/SEED/NUMBER: one mutation, with what its commands print")
    parser.add_argument("--last", type=Path, help="write here which mutation is being read, for what ends the process")
    given = parser.parse_args()
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_B, MEMORY_MAX_B))
    os.environ |= {"NO_COLOR": "1", "MPLBACKEND": "agg"}
    watch, fuzzes = Watch(), []
    with tempfile.TemporaryDirectory(prefix="kit-fuzz-") as made:
        # The first command that names this machine makes a salt for it.
        os.environ["XDG_STATE_HOME"] = made
        hashed("")
        if given.replay:
            name, seed, number = given.replay.split("/")
            fuzz = Fuzz(name, Path(made) / "root", watch)
            fuzz.mutate(int(seed), int(number), shows=True)
            fuzzes.append(fuzz)
        for name in () if given.replay else given.subject or SUBJECTS:
            begin_s = time.process_time()
            fuzz = Fuzz(name, Path(made) / "root", watch)
            count = given.mutations or given.times * MUTATIONS[name]
            for number in range(count):
                if given.last is not None:
                    given.last.write_text(f"--replay {name}/{given.seed}/{number}", encoding="utf-8")
                fuzz.mutate(given.seed, number)
            counted = f"{count:,} mutations ({fuzz.refused:,} refused), {fuzz.commands:,} commands"
            faults = f"{sum(map(len, fuzz.faults.values())):,} faults of {len(fuzz.faults):,} kinds"
            print(f"{name}: {counted}, {faults}, {time.process_time() - begin_s:.1f} s of CPU time", flush=True)
            for _, alike in sorted(fuzz.faults.items()):
                fault, how = alike[0]
                print(f"{len(alike):,} x {fault}\n    {how[:HOW_MAX]}", flush=True)
            fuzzes.append(fuzz)
    return 1 if any(fuzz.faults for fuzz in fuzzes) else 0


if __name__ == "__main__":
    sys.exit(main())
