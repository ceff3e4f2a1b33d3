"""How often the steady-state rule is right on generated series, against the rates that docs/steady-state.md states."""

from pathlib import Path

import pytest
from step_series import FAMILIES, rate_of

from kit.stats.steady_state import find_steady_state

TRIALS = 400
DOCS = Path(__file__).parents[2] / "docs" / "steady-state.md"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_few_series_do_not_contradict_the_stated_rate(family):
    assert rate_of(family, find_steady_state, trials=40, seed=2).interval[1] >= family.at_least


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_stated_rate_is_reached_for_sure(family):
    assert rate_of(family, find_steady_state, TRIALS).interval[0] >= family.at_least


def test_the_docs_state_these_rates():
    rows = [line.split("|") for line in DOCS.read_text().splitlines() if line.count("|") == 7]
    stated = {row[2].strip(): row[5].strip() for row in rows}
    assert {family.name: f"≥ {family.at_least:.0%}" for family in FAMILIES}.items() <= stated.items()
