"""What a self-test's profile says of what was planted; measuring one is `tests/runner`'s."""

from __future__ import annotations

import json
import re
import shlex
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from profile_builder import group, member, profile, write

from kit.cli import app
from kit.cli import run_and_selftest as command
from kit.profile.cell import Variant
from kit.profile.schema import INJECTED_NS

STEP_MS = 4.0


def delayed(pct, **more):
    """A member whose every step has `pct` percent of injected delay in it."""
    counters = {INJECTED_NS: 1e6 * STEP_MS * pct / 100}
    return member("torch", STEP_MS * (1 + pct / 100), variant=f"plus-{pct:g}", counters=counters, **more)


@pytest.fixture
def path(tmp_path):
    members = [member("torch", STEP_MS, variant=name, sd=0.003) for name in ("base", "again")]
    members += [delayed(pct, sd=0.003) for pct in (2.0, 5.0)]
    slowdown_pct = {"base": 0.0, "again": 0.0, "plus-2": 2.0, "plus-5": 5.0}
    variants = [Variant(name=name, slowdown_pct=pct) for name, pct in slowdown_pct.items()]
    built = profile(group("mlp train", *members), rounds=8, compare=["variant"], variants=variants)
    write(tmp_path / "selftest.json", built)
    return tmp_path / "selftest.json"


def judged(path, *words):
    return CliRunner().invoke(app, ["selftest", "--from", str(path), *words], catch_exceptions=False)


def test_injected_delays_lie_within_their_intervals(path):
    (group,) = json.loads(judged(path, "--json").stdout)["groups"]
    rows = {row["name"]: row for row in group["rows"]}
    assert set(rows) == {"base", "again", "plus-2", "plus-5"}
    for name, pct in (("again", 0.0), ("plus-2", 2.0), ("plus-5", 5.0)):
        versus, ratio = rows[name]["versus"], rows[name]["numbers"]["injected_ratio"]
        assert versus["low"] <= 1 + pct / 100 <= versus["high"]
        # The delay is a share of the block's median, which wanders with the machine's drift.
        assert (ratio or 1.0) == pytest.approx(1 + pct / 100, abs=0.006)
    assert rows["plus-5"]["versus"]["verdict"] == "slower"
    assert rows["again"]["versus"]["verdict"] not in ("faster", "slower")


def test_the_command_that_judges_it_again_can_be_typed(path, monkeypatch):
    kept = path.rename(path.with_name("it's a self-test.json"))
    monkeypatch.setattr(command, "begin", lambda request: SimpleNamespace(path=kept, failed=[]))
    monkeypatch.setattr(command, "measure", lambda running, request: running)
    (again,) = re.findall("`(.*)`", CliRunner().invoke(app, ["selftest"]).stderr)
    assert shlex.split(again) == ["kit", "selftest", "--from", str(kept)]
