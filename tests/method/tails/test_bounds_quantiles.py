"""Quantiles of the beta distribution: exact, also where SciPy's are far off or lack digits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap.tails import bounds, lower_bound, upper_bound
from pac_wrap.tails.bounds import beta_quantile
from pac_wrap.tails.levels import failure


@pytest.mark.parametrize(
    ("n", "first", "level"),
    [
        (21132, 965, 0.001879104229993157),
        (10122, 9071, 0.7987924301560657),
        (300, 0, 1e-6),
        (10**6, 500, 0.03),
    ],
)
def test_they_are_the_bounds_of_a_rate(n: int, first: int, level: float) -> None:
    """In the first two cases one of SciPy 1.17's is off by .07 and by .15."""
    errors = np.arange(first, first + 64)
    upper = beta_quantile(errors + 1, n - errors, level, above=True)
    lower = beta_quantile(np.maximum(errors, 1), n - errors + 1, level, above=False)
    np.testing.assert_allclose(upper, [upper_bound(k, n, level) for k in errors.tolist()], rtol=1e-12)
    expected = [lower_bound(max(k, 1), n, level) for k in errors.tolist()]
    np.testing.assert_allclose(lower[errors > 0], np.array(expected)[errors > 0], rtol=1e-12)


@pytest.mark.parametrize("n", [10122, 21132])
def test_the_failure_of_a_ladder_is_no_accident_of_one_rung(n: int) -> None:
    """Where a rung was far off, terms overflowed, and the level that was found was lower than it need be."""
    level, highest = {10122: (0.7987924301560657, 0.9), 21132: (0.001879104229993157, 0.9)}[n]
    found, near = (failure(n, 0.05, one, highest, 64) for one in (level, level * 1.0001))
    assert found == pytest.approx(near, rel=1e-3)
    assert level < found < 2.0 * level


@given(st.integers(1, 2000), st.integers(0, 2000), st.sampled_from([0.05, 1e-9, 0.5, 0.97]), st.booleans())
def test_bisection_finds_what_an_inverse_misses(n: int, errors: int, level: float, above: bool) -> None:
    k = min(errors, n - 1)
    a, b = [k + 1.0], [float(n - k)]
    expected = beta_quantile(a, b, level, above=above)
    name = "betainccinv" if above else "betaincinv"
    for wrong in (0.0, 0.37, 1.0, float("nan")):
        with pytest.MonkeyPatch.context() as patched:

            def far_off(*given: Any, wrong: float = wrong) -> Any:
                return np.full(given[0].shape, wrong)

            patched.setattr(bounds, name, far_off)
            np.testing.assert_allclose(beta_quantile(a, b, level, above=above), expected, rtol=1e-9)


def test_levels_below_all_others_are_finite() -> None:
    """Where no density is left, what bisection finds stands."""
    found = beta_quantile(np.arange(1.0, 60.0), np.arange(59.0, 0.0, -1.0), 3e-320, above=True)
    assert ((found > 0.0) & (found <= 1.0)).all()
    assert (np.diff(found) >= 0.0).all()
