"""Other tools' rules, on sides whose difference is known, and against the libraries that they are taken from."""

import numpy as np
import pytest
import rival_rules
from rival_rules import mann_whitney, pyperf, pyperf_as_it_runs, pytest_benchmark, torch_compare
from scipy import stats

RULES = [pyperf, pyperf_as_it_runs, pytest_benchmark, torch_compare, mann_whitney]


def side(random, slower_pct=0.0, launches=10, spread=0.0, steps=60):
    levels = 2e6 * (1 + slower_pct / 100) * np.exp(random.normal(0, spread, launches))
    return [level * np.exp(random.normal(0, 0.02, steps)) for level in levels]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_sees_what_is_plain(rule):
    random = np.random.default_rng(1)
    baseline = side(random)
    assert rule(side(random, 20), baseline) == "slower"
    assert rule(baseline, baseline) == "same"
    assert rule(side(random, -20), baseline) == ("same" if rule is pytest_benchmark else "faster")


@pytest.mark.parametrize(
    ("rule", "slower_pct", "says"),
    [
        (pytest_benchmark, 4.9, "same"),
        (pytest_benchmark, 5.1, "slower"),
        (torch_compare, 0.9, "same"),
        (torch_compare, 1.1, "slower"),
        (torch_compare, -0.9, "same"),
        (torch_compare, -1.1, "faster"),
    ],
)
def test_thresholds_lie_where_the_tools_have_them(rule, slower_pct, says):
    baseline = [np.full(50, 2e6)] * 10
    assert rule([steps * (1 + slower_pct / 100) for steps in baseline], baseline) == says


def test_torch_marks_what_is_within_100_ns_of_the_best():
    assert torch_compare([np.full(50, 1090.0)], [np.full(50, 1000.0)]) == "same"
    assert torch_compare([np.full(50, 1110.0)], [np.full(50, 1000.0)]) == "slower"


def test_pyperf_is_students_pooled_t_on_everything():
    random = np.random.default_rng(2)
    verdicts = []
    for slower_pct in np.linspace(0, 0.4, 60):
        candidate, baseline = side(random, slower_pct), side(random)
        p = stats.ttest_ind(np.concatenate(candidate), np.concatenate(baseline)).pvalue
        verdicts.append((pyperf(candidate, baseline) != "same", p < 0.05))
    assert {seen for seen, _ in verdicts} == {True, False}
    assert [seen for seen, _ in verdicts] == [expected for _, expected in verdicts]


@pytest.mark.parametrize(("degrees_of_freedom", "critical"), [(58, 2.009), (39, 2.042), (18, 2.101), (5000, 1.960)])
def test_critical_values_are_pyperfs_own(degrees_of_freedom, critical):
    assert rival_rules._critical(degrees_of_freedom) == pytest.approx(critical, abs=5e-4)


def test_pooled_steps_find_differences_between_equal_launches_and_launch_values_fewer():
    """The reason why the launch is the unit: these sides differ by their launches' levels and by nothing else."""
    random = np.random.default_rng(3)
    pairs = [(side(random, spread=0.01), side(random, spread=0.01)) for _ in range(200)]
    alarms = {rule: sum(rule(*pair) != "same" for pair in pairs) / len(pairs) for rule in RULES}
    assert alarms[pyperf] > 0.2
    assert alarms[mann_whitney] > 0.2
    assert alarms[pyperf_as_it_runs] < alarms[pyperf]
    assert alarms[pytest_benchmark] == 0
