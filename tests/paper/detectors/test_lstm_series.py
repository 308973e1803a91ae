"""Series, their scales, their windows and the smoothing of errors; none of it needs torch."""

from typing import Any

import numpy as np
import pytest

from pac_wrap import InputError
from pac_wrap_paper.detectors.lstm import Scaling, as_series, evenly, smoothed, split_starts


@pytest.mark.parametrize(
    ("X", "text"),
    [
        (
            np.zeros((2, 3, 4)),
            r"one series of shape \(steps, columns\), got shape \(2, 3, 4\); fit and score",
        ),
        (np.zeros((5, 0)), r"got shape \(5, 0\)"),
        (3.0, r"got shape \(\)"),
        ([["a"], ["b"]], "X must hold real numbers, got dtype <U1"),
        ([[1.0], [np.inf]], r"got 1 NaN or infinite of 2, the first \(infinity\) at step 1, column 0; fill"),
        ([1.0, np.nan, np.nan], r"got 2 NaN or infinite of 3, the first \(NaN\) at step 1, column 0"),
    ],
)
def test_what_is_no_series_is_refused(X: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        as_series(X)


def test_constant_columns_keep_their_unit() -> None:
    series = np.c_[np.full(1000, 0.1), np.arange(1000.0)]  # the computed deviation of the first is not 0
    scaling = Scaling.of(series, standardise=True)
    assert scaling.spread[0] == 1.0
    np.testing.assert_allclose(scaling.apply(series).std(axis=0), [0.0, 1.0], atol=1e-6)
    assert scaling.apply(series).dtype == np.float32


def test_what_has_no_finite_deviation_is_refused_and_far_values_stay_finite() -> None:
    huge = np.c_[np.arange(4.0), np.array([1e308, -1e308, 1e308, -1e308])]
    with pytest.raises(InputError, match=r"got (inf|nan) in column 1; divide that column"):
        Scaling.of(huge, standardise=True)
    scaling = Scaling.of(np.array([[-1e-300], [1e-300]]), standardise=True)
    assert np.isfinite(np.square(scaling.apply(np.array([[1e300], [-1e300]])))).all()


@pytest.mark.parametrize("steps", [40, 41, 99, 1000])
@pytest.mark.parametrize("validation", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("stride", [1, 7])
def test_no_window_crosses_into_the_validation_part(steps: int, validation: float, stride: int) -> None:
    training, held_out = split_starts(steps, 10, stride, validation)
    border = steps - round(steps * validation)
    assert training[0] == 0
    assert training[-1] + 10 <= border
    assert (np.diff(training) == stride).all()
    if validation:
        assert held_out[0] == border
        assert held_out[-1] + 10 == steps
    else:
        assert held_out.size == 0


@pytest.mark.parametrize("validation", [0.0, 0.1, 0.2, 0.5, 0.7])
def test_the_least_number_of_steps_that_is_named_is_enough_and_one_less_is_not(validation: float) -> None:
    with pytest.raises(InputError) as refusal:
        split_starts(5, 12, 1, validation)
    needed = int(str(refusal.value).split()[4])
    assert all(part.size for part in split_starts(needed, 12, 1, validation)[: 2 if validation else 1])
    with pytest.raises(InputError, match=rf"got {needed - 1}; give more steps, or shorten length"):
        split_starts(needed - 1, 12, 1, validation)


def test_few_starts_are_all_kept() -> None:
    np.testing.assert_array_equal(evenly(np.arange(5), 5), np.arange(5))
    np.testing.assert_array_equal(evenly(np.arange(5), 1), [0])


@pytest.mark.parametrize("span", [1, 2.5, 105])
def test_smoothing_is_that_of_pandas(span: float) -> None:
    pandas = pytest.importorskip("pandas")
    errors = np.abs(np.random.default_rng(0).normal(size=500))
    expected = pandas.Series(errors).ewm(span=span).mean().to_numpy()
    np.testing.assert_allclose(smoothed(errors, span), expected, rtol=1e-12)
