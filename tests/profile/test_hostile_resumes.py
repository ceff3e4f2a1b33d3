"""Forged files whose checksums hold, given to what goes on from them: an answer, a run to go on with, or one line."""

import functools
import os
import random

import msgspec
import numpy as np
import pytest
from fuzz.mutations import every_place, mutated, sealed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profile_builder import build_cell, build_header, build_launch, build_profile, build_result, build_run_plan

from kit.engines.assemble import assemble_profile
from kit.engines.run import Run, usable_cpus
from kit.engines.selftest import SUITE_NAME, SelfTest, judge_kept
from kit.engines.selftest_plan import KINDS
from kit.errors import KitError
from kit.profile.journal import journal_path
from kit.profile.journal_line import HEADER, LAUNCH, line_of
from kit.profile.launch import ObserverBlocks
from kit.stats.self_test import judge_self_test
from kit.version import __version__

pytestmark = pytest.mark.timeout(180)
IN_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
CELL = build_cell("torch")
# Of the right kind for one place or another, so that the decoder lets them pass.
VALUES = (0, -1, 2**63 - 1, -(2**63), 1e308, -1e308, "", "nonsense", "2026-11-21T00:00:00", [], None)
STEP_NS = [5_000_000] + [1_000_000] * 25


def file_of(header, launches):
    encode = msgspec.json.encode
    return line_of(HEADER, encode(header)) * 2 + b"".join(line_of(LAUNCH, encode(launch)) for launch in launches)


def plain_header(suite, **plan):
    profile = build_profile([build_result(CELL, [1e6])])
    made = build_header(profile, build_run_plan([CELL], cpus=usable_cpus(), **plan))
    suite = msgspec.structs.replace(made.suite, name=suite)
    return msgspec.to_builtins(msgspec.structs.replace(made, kit=__version__, suite=suite))


def observed():
    on_ns, off_ns = [1_010_000, 1_020_000], [1_000_000, 1_000_000]
    return ObserverBlocks(on_ns=on_ns, off_ns=off_ns, on_mean_ns=on_ns, off_mean_ns=off_ns, steps_per_block=10)


def kept_self_test(rounds):
    """Header and launches."""
    generator = np.random.default_rng(1)

    def launch(number, slowdown_pct):
        steps = generator.normal(1e6 * (1 + slowdown_pct / 100), 1e4, 60).astype(int).tolist()
        return build_launch(CELL, number, step_ns=steps, steps=60, warmup_steps=20, planted_slowdown_pct=slowdown_pct)

    launches = [launch(number, slowdown_pct) for number in range(rounds) for slowdown_pct in KINDS]
    return plain_header(SUITE_NAME, launches=rounds), msgspec.to_builtins(launches)


def kept_run():
    """The header of a run that was to have four launches, and two of them."""
    launches = [build_launch(CELL, number, step_ns=STEP_NS, warmup_steps=3, steps=26) for number in range(2)]
    launches[0].observer = observed()
    return plain_header("quick", observer_s=5.0, data="synthetic"), msgspec.to_builtins(launches)


def interrupted_profile():
    profile = build_profile([build_result(CELL, [1e6, 1e6], step_ns=STEP_NS, warmup_steps=3, steps=26)])
    profile.interrupted, profile.kit = True, __version__
    profile.suite = msgspec.structs.replace(profile.suite, launches=4, observer_s=5.0, data="synthetic")
    profile.cells[0].launches[0].observer = observed()
    for launch in profile.cells[0].launches:
        launch.threads = msgspec.structs.replace(launch.threads, cpus=usable_cpus())
    return msgspec.to_builtins(profile)


@pytest.fixture
def here(monkeypatch):
    """A machine that is the one on which the run was begun."""
    identity = build_profile([]).identity
    monkeypatch.setattr("kit.engines.resumable.identity", lambda _pythons: identity)


@pytest.fixture
def quick_judge(monkeypatch):
    monkeypatch.setattr("kit.stats.self_test.REAL_COMPARISONS", 5)
    monkeypatch.setattr("kit.engines.selftest.judge_self_test", functools.partial(judge_self_test, simulated=5))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.json"


def judged(path, header, launches):
    path.write_bytes(file_of(header, launches))
    return answered(lambda: judge_kept(path))


def resumed(path):
    """Whether the run can go on; then what was measured must give a profile."""

    def go_on():
        running = Run.resume(path)
        running.journal.remove()
        assert set(running.expected) >= {cell.key for cell in running.header.plan.cells}
        assemble_profile(running.header, running.finished, None, interrupted=True)

    return answered(go_on)


def answered(ask):
    try:
        ask()
    except KitError as error:
        assert error.exit_code == 2
        assert str(error).isprintable()
        return False
    return True


def each_forged(plain):
    """The file with each of the values at each of its places, one after the other; of a list, its ends only."""
    for parent, name in [*every_place(plain)]:
        if isinstance(parent, list) and 0 < name < len(parent) - 1:
            continue
        kept = parent[name]
        for value in VALUES:
            parent[name] = value
            yield
        parent[name] = kept


def test_a_kept_self_test_forged_at_every_place(tmp_path):
    header, launches = kept_self_test(1)
    file = tmp_path / "kept.launches"
    assert judged(file, header, launches)
    header.pop("identity"), header.pop("state_before")
    whole = kept_self_test(1)[0]
    for _ in each_forged([header, launches[1]]):
        judged(file, whole | header, launches)


def test_a_journal_forged_at_every_place(path, here):
    header, launches = kept_run()

    def go_on():
        journal_path(path).write_bytes(file_of(header, launches))
        return resumed(path)

    assert go_on()
    for _ in each_forged([header["plan"], header["suite"], launches[0]]):
        go_on()


def test_an_interrupted_profile_forged_at_every_place(path, here):
    plain = interrupted_profile()
    path.write_bytes(sealed(plain))
    assert resumed(path)
    for _ in each_forged([plain["suite"], plain["cells"]]):
        path.write_bytes(sealed(plain))
        resumed(path)
        assert not journal_path(path).exists()


@IN_FOLDER
@given(seed=st.integers(0, 2**32), changes=st.integers(1, 4))
def test_a_kept_self_test_forged_at_random(tmp_path, quick_judge, seed, changes):
    header, launches = FOUR_ROUNDS
    forged_header, *forged = mutated([header, *launches], random.Random(seed), changes) or [{}]
    judged(tmp_path / "kept.launches", forged_header, forged)


FOUR_ROUNDS = kept_self_test(4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"step_ns": [0] * 200}, "step 0 took 0 ns"),
        ({"step_ns": [7] * 199 + [-5]}, "step 199 took -5 ns"),
        ({"phases": [{"name": "build", "begin_ns": 0, "duration_ns": -9}]}, "build took -9 ns"),
        ({"started": "nonsense"}, "which is no time"),
        ({"started": "2026-11-21T00:00:00"}, "in no time zone"),
    ],
)
def test_what_no_kit_measured_is_told(tmp_path, change, said):
    header, launches = kept_self_test(1)
    launches[3] |= change
    file = tmp_path / "kept.launches"
    file.write_bytes(file_of(header, launches))
    with pytest.raises(KitError, match=said):
        judge_kept(file)


def test_a_plan_without_a_cell_is_one_line(tmp_path, path, here):
    header, launches = kept_self_test(1)
    header["plan"]["cells"] = []
    file = tmp_path / "kept.launches"
    file.write_bytes(file_of(header, launches))
    for ask in (judge_kept, SelfTest.resume):
        with pytest.raises(KitError, match="its plan has no cell"):
            ask(file)


@pytest.mark.timeout(20)
def test_a_pipe_keeps_no_self_test(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for ask in (judge_kept, SelfTest.resume):
        with pytest.raises(KitError, match="not a regular file"):
            ask(tmp_path / "pipe")


def test_a_backend_that_this_kit_has_not_is_one_line(path, here):
    plain = interrupted_profile()
    plain["cells"][0]["cell"]["backend"] = "foo"
    path.write_bytes(sealed(plain))
    with pytest.raises(KitError, match="foo: this kit has no such backend; it has tensorflow, torch, jax"):
        Run.resume(path)
    assert not journal_path(path).exists()
