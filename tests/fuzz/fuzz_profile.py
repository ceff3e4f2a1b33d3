"""Fuzzes what `kit` reads (atheris, which is libFuzzer with coverage of Python): `make fuzz`, or by hand for hours

    python tests/fuzz/fuzz_profile.py --seconds 36000 --corpus DIR

A quarter of the mutations are libFuzzer's own, of bytes; the others change values or the shape of a profile and give it
a digest that holds, without which nothing behind the reader would ever be reached. What crashes is left in
tests/fuzz/found/, where `tests/fuzz/test_found.py` keeps it from coming back.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import pkgutil
import random
import shutil
import sys
import tempfile
from pathlib import Path

import atheris
import msgspec

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

# The command line imports what it needs when it is called: all of it is imported here, to be instrumented.
ROOMS = ("profile", "stats", "compare", "report")

with atheris.instrument_imports(include=["kit"]):
    for room in ROOMS:
        for module in pkgutil.iter_modules([str(HERE.parents[1] / "kit" / room)]):
            importlib.import_module(f"kit.{room}.{module.name}")
    from fuzz.chain import exercise_bytes
    from fuzz.mutations import mutated, sealed
    from fuzz.seeds import built, profiles, seeds

FOUND = HERE / "found"
# A profile of three cells has 20 kB.
LENGTH_MAX = 60_000
# The slowest input of the corpus takes a tenth of a second, instrumented.
TIMEOUT_S = 10
MEMORY_MIB = 2048
CHANGES_MAX = 4
# The others are of bytes, most of which the reader refuses at once.
VALUES_SHARE = 0.75
PROFILES = profiles()


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """One mutation, of bytes or of values; a file that is no JSON any more gives way to one to begin with."""
    generator = random.Random(seed)
    if generator.random() >= VALUES_SHARE:
        return atheris.Mutate(data, max_size)
    try:
        plain = msgspec.json.decode(data)
        if not isinstance(plain, dict):
            raise ValueError
    except (ValueError, RecursionError):
        plain = generator.choice(PROFILES)
    try:
        changed = sealed(mutated(plain, generator, generator.randint(1, CHANGES_MAX)))
    except (ValueError, TypeError, RecursionError):
        return atheris.Mutate(data, max_size)
    return changed if len(changed) <= max_size else atheris.Mutate(data, max_size)


def main() -> None:
    """Command line; ends with libFuzzer's exit status: 0 where nothing was found."""
    parser = argparse.ArgumentParser(description="Fuzz what kit reads.")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path, help="folder to begin with and to add to; by default a new one")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kit-fuzz-") as folder:
        # libFuzzer ends its process without a chance to tidy up.
        child = multiprocessing.get_context("fork").Process(target=fuzz, args=(arguments, Path(folder)))
        child.start()
        child.join()
    sys.exit(child.exitcode)


def fuzz(arguments: argparse.Namespace, folder: Path) -> None:
    """Ends the process."""
    corpus = arguments.corpus or folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for name, data in seeds().items():
        (corpus / name).write_bytes(data)
    for file in FOUND.glob("*.*"):
        shutil.copy(file, corpus)
    other = folder / "other.json"
    other.write_bytes(sealed(built()))
    FOUND.mkdir(exist_ok=True)
    flags = {
        "max_total_time": arguments.seconds,
        "timeout": TIMEOUT_S,
        "rss_limit_mb": MEMORY_MIB,
        "max_len": LENGTH_MAX,
        "seed": arguments.seed,
        "print_final_stats": 1,
        "artifact_prefix": f"{FOUND}/",
    }
    atheris.Setup(
        [sys.argv[0], *(f"-{name}={value}" for name, value in flags.items()), str(corpus)],
        lambda data: exercise_bytes(data, folder, other),
        custom_mutator=mutate,
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
