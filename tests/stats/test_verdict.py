import numpy as np
import pytest

from kit.stats.difference import paired_difference, welch_difference
from kit.stats.false_discovery import adjusted_p
from kit.stats.verdict import LAUNCHES_FOR_VERDICT, Judgement, judge, launches_to_settle, noise_band


def pair(ratio, sigma, launches=10, seed=0):
    """Launch medians whose mean ratio is exactly `ratio` and whose spread of pairs is exactly `sigma`."""
    shocks = np.random.default_rng(seed).normal(size=launches)
    shocks = (shocks - shocks.mean()) / shocks.std(ddof=1)
    baseline = dict.fromkeys(range(launches), 1e7)
    return paired_difference({r: 1e7 * ratio * np.exp(sigma * shocks[r]) for r in range(launches)}, baseline)


@pytest.mark.parametrize(
    ("ratio", "sigma", "verdict"),
    [
        (0.5, 0.02, "faster"),
        (0.98, 0.005, "faster"),
        (1.03, 0.01, "slower"),
        (1.001, 0.005, "same"),
        (0.995, 0.002, "same"),  # excludes 1, yet lies within the band
        (1.008, 0.008, "unresolved"),  # excludes 1 or not, the difference is below the band and may be above it
        (1.02, 0.10, "unresolved"),
        (1.0, 0.10, "unresolved"),
    ],
)
def test_planted_ratios(ratio, sigma, verdict):
    assert judge(pair(ratio, sigma)).verdict == verdict


def test_a_noisy_host_widens_the_band():
    difference = pair(1.03, 0.01)
    assert judge(difference, band=noise_band(None)).verdict == "slower"
    assert judge(difference, band=noise_band(0.05)).verdict == "unresolved"
    assert judge(difference, band=noise_band(0.05)).launches_to_settle is None, "no number of launches settles that"
    assert noise_band(0.0001) == 0.01


def test_a_host_that_cannot_tell_one_percent_calls_nothing_the_same():
    """Its launches may be alike and its runs apart: an interval over launches of one run does not see that."""
    difference = pair(1.001, 0.001)
    assert judge(difference, band=noise_band(0.01)).verdict == "same"
    assert judge(difference, band=noise_band(0.012)) == Judgement("unresolved", None)


def test_an_adjusted_p_can_take_a_verdict_away():
    difference = pair(1.02, 0.027)
    assert difference.p < 0.05
    assert judge(difference).verdict == "slower"
    assert judge(difference, p_adjusted=0.2).verdict == "unresolved"


def test_without_a_difference_it_is_unresolved():
    assert judge(None) == Judgement("unresolved", None)


@pytest.mark.parametrize(("ratio", "sigma"), [(1.02, 0.10), (1.0, 0.03), (1.06, 0.15)])
def test_that_many_launches_of_the_same_spread_do_settle_it_and_one_fewer_does_not(ratio, sigma):
    needed = judge(pair(ratio, sigma)).launches_to_settle
    assert needed > 10
    assert judge(pair(ratio, sigma, needed)).verdict != "unresolved"
    assert judge(pair(ratio, sigma, needed - 1)).verdict == "unresolved"


def test_launches_to_settle_counts_the_other_rows_of_the_table():
    difference = pair(1.02, 0.024)
    others = [0.9, 0.8, 0.7, 0.6, 0.5]

    def verdict_of(difference):
        adjusted = adjusted_p([difference.p, *others])[0]
        return judge(difference, adjusted)

    assert difference.p < 0.05 and difference.low > 1
    alone, among_others = launches_to_settle(difference, 0.01), verdict_of(difference).launches_to_settle
    assert among_others > alone
    assert verdict_of(pair(1.02, 0.024, among_others)).verdict == "slower"
    assert verdict_of(pair(1.02, 0.024, among_others - 1)).verdict == "unresolved"


def test_launches_to_settle_is_not_promised_where_it_cannot_be_known():
    assert launches_to_settle(pair(1.02, 0.10, launches=2), 0.01) is None
    assert launches_to_settle(pair(1.0099, 0.05), 0.01) is None
    assert launches_to_settle(pair(1.02, 0.02, launches=3), 0.01) >= LAUNCHES_FOR_VERDICT


def simulated_p(count, launches, welch, sigma=0.02):
    """p values of A/A comparisons; rounds share a disturbance that pairing removes."""
    generator = np.random.default_rng(launches)
    shared = generator.normal(0, 0 if welch else 0.05, (count, launches))
    a = 1e7 * np.exp(generator.normal(0, sigma, (count, launches)) + shared)
    b = 1e7 * np.exp(generator.normal(0, sigma, (count, launches)) + shared)
    if welch:
        return [welch_difference(x, y) for x, y in zip(a, b, strict=True)]
    return [paired_difference(dict(enumerate(x)), dict(enumerate(y))) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("launches", [3, 10])
@pytest.mark.parametrize("welch", [True, False])
def test_the_same_cell_against_itself_is_called_different_no_more_often_than_promised(launches, welch):
    differences = simulated_p(2000, launches, welch)
    below = np.mean([difference.p < 0.05 for difference in differences])
    assert 0.02 <= below <= 0.065  # nominal 5 %, standard error 0.5 %; Welch is conservative at 3
    covered = np.mean([difference.low <= 1 <= difference.high for difference in differences])
    assert covered == pytest.approx(1 - below)
    alarms = np.mean([judge(difference).verdict in ("faster", "slower") for difference in differences])
    assert alarms <= below


def test_a_table_of_equal_cells_raises_hardly_any_alarm():
    differences = simulated_p(1200, 10, welch=False)
    tables = [differences[start : start + 12] for start in range(0, len(differences), 12)]
    alarmed = [
        any(
            judge(difference, p).verdict in ("faster", "slower")
            for difference, p in zip(table, adjusted_p([d.p for d in table]), strict=True)
        )
        for table in tables
    ]
    assert np.mean(alarmed) <= 0.15  # 46 % without adjustment
