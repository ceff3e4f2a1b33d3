"""A journal has no largest size: what a run writes, it reads again, in a small multiple of what the steps take."""

import subprocess
import sys
import tracemalloc
from itertools import count

import numpy as np
import pytest
from profile_builder import build_cell, build_header, build_launch, build_profile, build_result, build_run_plan

from kit.profile.journal import Journal, journal_path, read_journal
from kit.profile.regular_file import FILE_MAX_B

CELL = build_cell()
BYTES_PER_STEP = 8


@pytest.fixture
def begun(tmp_path):
    profile = build_profile([build_result(CELL, [1e6])])
    return Journal.create(journal_path(tmp_path / "run.json"), build_header(profile, build_run_plan([CELL])))


def launch(number, steps):
    step_ns = np.random.default_rng(number).integers(90_000, 990_000, steps).tolist()
    return build_launch(CELL, number, step_ns=step_ns, steps=steps)


def test_launches_take_eight_bytes_a_step_while_a_run_goes_on_and_when_it_is_read(begun):
    launches, steps = 40, 20_000
    tracemalloc.start()
    kept = []
    for number in range(launches):
        kept.append(launch(number, steps))
        begun.add(kept[-1])
    held, _ = tracemalloc.get_traced_memory()
    assert held < 1.2 * BYTES_PER_STEP * launches * steps
    begun.close()
    tracemalloc.reset_peak()
    read = read_journal(begun.path)
    peak = tracemalloc.get_traced_memory()[1] - held
    tracemalloc.stop()
    assert read.launches == kept
    # And one line, its copies, and its list of integers.
    line_b = begun.path.stat().st_size / launches
    assert peak < 1.2 * BYTES_PER_STEP * launches * steps + 12 * line_b


# Lists of integers would take five times as much as this leaves room for.
READ = """
import resource, sys
from pathlib import Path
from kit.profile.journal import Journal
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
journal, kept = Journal.reopen(Path(sys.argv[1]))
print(len(kept.launches), kept.damaged, sum(len(one.step_ns) for one in kept.launches), journal.path.name)
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_journal_larger_than_any_other_file_that_is_read(begun):
    """Of 760 launches with 100,000 steps each."""
    steps, written = 100_000, launch(0, 100_000)
    for number in count():
        written.round = number
        begun.add(written)
        if begun.path.stat().st_size > FILE_MAX_B:
            break
    begun.close()
    room_b = 2 * BYTES_PER_STEP * steps * (number + 1) + 500_000_000
    command = [sys.executable, "-c", READ, str(begun.path), str(room_b)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.stdout.split() == [str(number + 1), "0", str(steps * (number + 1)), begun.path.name], answer.stderr
