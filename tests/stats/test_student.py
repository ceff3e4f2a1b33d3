"""Student's t against SciPy's."""

import math

import pytest
from scipy import special

from kit.stats.estimate import t_below, t_quantile

DFS = (0.5, 1.0, 1.7, 2.0, 3.0, 7.0, 13.0, 27.65, 100.0, 1e3, 1e5)


@pytest.mark.parametrize("df", DFS)
def test_probabilities_are_scipys(df):
    for t in (0.0, 1e-9, 0.1, 0.7, 1.0, 2.0, 4.3, 12.7, 40.0, 1e3, 1e8):
        for signed in (t, -t):
            assert t_below(df, signed) == pytest.approx(special.stdtr(df, signed), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("df", DFS)
def test_quantiles_are_scipys(df):
    for p in (1e-6, 0.005, 0.025, 0.05, 0.3, 0.5, 0.9, 0.95, 0.975, 0.99, 1 - 0.05 / 45, 1 - 1e-6):
        assert t_quantile(df, p) == pytest.approx(special.stdtrit(df, p), rel=1e-8, abs=1e-12)


def test_what_is_not_finite_stays_so():
    assert (t_below(3, math.inf), t_below(3, -math.inf)) == (1.0, 0.0)
    assert math.isnan(t_below(3, math.nan))
