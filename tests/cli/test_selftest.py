"""What a self-test's profile says of what was planted; measuring one is `tests/runner`'s."""

from __future__ import annotations

import json

import pytest
from profile_builder import group, member, profile, write

from kit.cli import main
from kit.profile.cell import Variant
from kit.profile.launch import INJECTED_NS

STEP_MS = 4.0
STEP_NS = 4_000_000


def delayed(pct, **more):
    """A member whose every step has `pct` percent of injected delay in it."""
    return member(
        "torch",
        STEP_MS * (1 + pct / 100),
        variant=f"plus-{pct:g}",
        counters={INJECTED_NS: STEP_NS * pct / 100},
        **more,
    )


@pytest.fixture
def path(tmp_path):
    base = member("torch", STEP_MS, variant="base", sd=0.003)
    members = [
        base,
        member("torch", STEP_MS, variant="again", sd=0.003),
        delayed(2.0, sd=0.003),
        delayed(5.0, sd=0.003),
    ]
    slowdown_pct = {"base": 0.0, "again": 0.0, "plus-2": 2.0, "plus-5": 5.0}
    variants = [Variant(name=name, slowdown_pct=pct) for name, pct in slowdown_pct.items()]
    built = profile(group("mlp train", *members), rounds=8, compare=["variant"], variants=variants)
    write(tmp_path / "selftest.json", built)
    return tmp_path / "selftest.json"


def answer(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main_with("selftest", *arguments)
    return ended.value.code, capsys.readouterr()


def main_with(*arguments):
    import sys
    from unittest.mock import patch

    with patch.object(sys, "argv", ["kit", *map(str, arguments)]):
        main()


def test_what_was_planted_is_found_within_its_interval(path, capsys):
    code, shown = answer(capsys, "--from", path, "--json")
    assert code == 0
    rows = {row["variant"]: row for row in json.loads(shown.out)["rows"]}
    assert set(rows) == {"again", "plus-2", "plus-5"}
    for name, pct in (("again", 0.0), ("plus-2", 2.0), ("plus-5", 5.0)):
        assert rows[name]["inside"] is True
        # The planted time is a share of the block's median, which wanders with the machine's drift.
        assert rows[name]["planted_ratio"] == pytest.approx(1 + pct / 100, abs=0.006)
    assert rows["plus-5"]["verdict"] == "slower"
    assert rows["again"]["verdict"] not in ("faster", "slower")


def test_the_table_names_every_member(path, capsys):
    _, shown = answer(capsys, "--from", path)
    assert all(name in shown.out for name in ("again", "plus-2", "plus-5", "rounds-2"))


def test_another_profile_is_refused_in_one_line(tmp_path, capsys):
    write(tmp_path / "run.json", profile())
    code, shown = answer(capsys, "--from", tmp_path / "run.json")
    assert code == 2
    assert shown.err.count("\n") == 1
