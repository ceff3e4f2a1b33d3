import pytest
from profile_builder import MS, build_blank_launch, build_cell, build_launch

from kit.cli.progress import RunProgress, describe_left

KEYS = [f"cell{number}" for number in range(12)]


def duration_of(key):
    return 2.0 + int(key.removeprefix("cell")) % 7


def run(progress, rounds, launches):
    """`rounds` rounds of every cell, of `launches` in all."""
    for round in range(rounds):
        for at, key in enumerate(KEYS):
            expected = {other: launches - round - (other in KEYS[: at + 1]) for other in KEYS}
            progress.ended(build_blank_launch(key, round), duration_of(key) + (round == 0), expected)


def test_the_time_left_is_what_each_pending_cell_took(capsys):
    with RunProgress(dict.fromkeys(KEYS, 3)) as progress:
        run(progress, rounds=2, launches=3)
        # The first launches took a second longer, for what only they do.
        assert progress.left_s() == pytest.approx(sum(map(duration_of, KEYS)))
    with RunProgress(dict.fromkeys(KEYS, 3)) as progress:
        capsys.readouterr()
        run(progress, rounds=3, launches=3)
        assert progress.left_s() == 0
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 3 * len(KEYS), "one line a launch, never folded"
    assert lines[-1].startswith("[36/36]")
    assert lines[-1].endswith("done")


def test_a_failed_cell_is_said_at_once_and_no_longer_waited_for(capsys):
    with RunProgress({"a": 3, "b": 3}) as progress:
        progress.ended(build_blank_launch("a", failure="out of [memory]"), 3.0, {"a": 0, "b": 3})
        assert progress.left_s() == pytest.approx(3 * 3.0)
    assert "] a: failed: in build: out of [memory]; " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("step_ns", "words"),
    [
        ([5 * MS, *[2 * MS] * 200], "2.000 ms a step"),
        ([5 * MS, *[2 * MS] * 150, *[3 * MS] * 50], "no number: its last half has levels 50 % apart"),
        (None, "no steps; took 3.0 s"),
    ],
)
def test_what_each_launch_gave_is_said(step_ns, words, capsys):
    with RunProgress({"a": 1}) as progress:
        progress.ended(build_launch(build_cell(), step_ns=step_ns, warmup_steps=20), 3.0, {"a": 0})
    assert f": {words}" in capsys.readouterr().err


def test_a_resumed_run_counts_what_had_ended(capsys):
    with RunProgress({"a": 6}, ended=30) as progress:
        progress.ended(build_blank_launch("a", 1), 1.0, {"a": 5})
    assert capsys.readouterr().err.startswith("[31/36]")


def test_the_total_follows_what_is_expected(capsys):
    with RunProgress({"a": 5}) as progress:
        progress.ended(build_blank_launch("a", 0), 1.0, {"a": 4})
        progress.ended(build_blank_launch("a", 1), 1.0, {"a": 11})
    assert "[2/13]" in capsys.readouterr().err


def test_a_budget_bounds_the_time_left_by_itself_and_one_round(capsys):
    with RunProgress({"a": 100, "b": 100}, budget_s=60.0) as progress:
        progress.ended(build_blank_launch("a", 0), 5.0, {"a": 99, "b": 100})
        assert 60 < progress.left_s() <= 60 + 2 * 5.0
        progress.ended(build_blank_launch("b", 0), 5.0, {"a": 1, "b": 1})
        assert progress.left_s() == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "done"), (42.4, "about 42 s left"), (89, "about 89 s left"), (300, "about 5 min left")]
)
def test_no_finer_than_the_estimate_is_worth(seconds, words):
    assert describe_left(seconds) == words


def test_a_launch_that_was_slowed_on_purpose_is_said_to_be(capsys):
    with RunProgress({"a": 1}) as progress:
        steps = [5 * MS, *[2 * MS] * 200]
        progress.ended(build_launch(build_cell(), step_ns=steps, warmup_steps=20, planted_slowdown_pct=3.0), 3.0, {})
    assert ": 2.000 ms a step, slowed by 3 %; took 3.0 s" in capsys.readouterr().err
