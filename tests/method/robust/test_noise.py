"""Room for wrong labels: the bounds are attained, and hold for every contaminated population."""

from fractions import Fraction
from itertools import product
from math import nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import DensityRatio, Guarantee, InputError, LabelNoise, Monitor, calibrate, evaluate
from pac_wrap.tails import min_samples
from support.exceeded import exceeded
from support.strategies import refusal

shares = st.floats(0.0, 0.6)


def test_labels_for_five_percent() -> None:
    promise = Guarantee(label_noise=LabelNoise(0.05)).promises[0]
    assert promise.at_calibration == pytest.approx(0.0475)
    assert min_samples(promise.at_calibration, 0.05) == 62
    both = Guarantee(label_noise=LabelNoise(0.05, 0.01)).promises[0]
    assert both.at_calibration == pytest.approx(0.95 * 0.04 / 0.99)


@given(h=shares, q=shares, correct=st.floats(0, 1), contaminating=st.floats(0, 1), lost=st.floats(0, 1))
def test_no_population_with_so_many_wrong_labels_has_a_higher_rate(
    h: float, q: float, correct: float, contaminating: float, lost: float
) -> None:
    """What is drawn is (1 - h) R + h C, the class itself (1 - q) R + q L, whatever R, C and L do."""
    if not h and not q:
        return
    seen, true = (1 - h) * correct + h * contaminating, (1 - q) * correct + q * lost
    noise = LabelNoise(h, q)
    assert true <= noise.after(seen) + 1e-12
    assert seen <= noise.counted(true) + 1e-12


@pytest.mark.parametrize(("h", "q"), list(product([0.0, 0.05, 0.3], [0.0, 0.01, 0.04])))
def test_the_worst_case_is_attained(h: float, q: float) -> None:
    """No contaminating point is an error, and every lost one is."""
    if not h and not q:
        return
    rate = LabelNoise(h, q).before(0.05)
    correct = rate / (1 - h)
    assert (1 - q) * correct + q == pytest.approx(0.05, rel=1e-12)
    assert LabelNoise(h, q).after(rate) <= 0.05
    # and of labels as wrong, all contaminating points look like errors and none of the lost was
    assert LabelNoise(h, q).counted(0.05) == pytest.approx(h + (1 - h) * 0.05 / (1 - q))


def test_shift_comes_after_noise() -> None:
    promise = Guarantee(shift=DensityRatio(2), label_noise=LabelNoise(0.05, 0.01)).promises[0]
    assert promise.at_calibration == pytest.approx(0.95 * (0.025 - 0.01) / 0.99)
    assert promise.afterwards(promise.at_calibration) == 0.05
    assert promise.afterwards(0.02) == pytest.approx(2 * (0.99 * 0.02 / 0.95 + 0.01))
    assert promise.tolerance == "a density ratio up to 2 and up to 5 % contaminated and 1 % lost labels"


def test_what_leaves_nothing_is_refused() -> None:
    assert "is too low to tolerate up to 5 % lost labels" in refusal(
        lambda: Guarantee(label_noise=LabelNoise(lost=0.05))
    )


@pytest.mark.parametrize("share", [-0.1, 1.0, nan, "x", None, True])
def test_what_is_no_share_is_refused(share: Any) -> None:
    for field in ("contamination", "lost"):
        with pytest.raises(InputError, match=f"{field} must be a share"):
            LabelNoise(**{field: share})
    with pytest.raises(InputError, match="for no label noise, remove it"):
        LabelNoise()
    with pytest.raises(InputError, match="label_noise must be one of LabelNoise"):
        Guarantee(label_noise=0.05)  # type: ignore[arg-type]


def test_measured_rates_are_compared_with_what_labels_as_wrong_may_show() -> None:
    """9 errors of 100 contradict 5 %, but not if 5 % of the labels may be wrong."""
    metrics = evaluate([1] * 11 + [0] * 89, [0] * 100)
    assert exceeded(metrics, Guarantee()) == ("FPR",)
    assert exceeded(metrics, Guarantee(label_noise=LabelNoise(0.05))) == ()
    assert exceeded(evaluate([1] * 20 + [0] * 80, [0] * 100), Guarantee(label_noise=LabelNoise(0.05)))
    certificate = calibrate(range(1000), range(2000, 3000), Guarantee(label_noise=(LabelNoise(0.05), None)))
    watched = [watch.ceiling for watch in Monitor(certificate).watches]
    assert watched == [pytest.approx(0.0975), 0.05]


@pytest.mark.parametrize(("h", "q"), [(0.05, 0.0), (0.1, 0.03), (1 / 3, 1 / 7)])
def test_what_a_rate_may_be_is_rounded_up_and_what_it_must_be_down(h: float, q: float) -> None:
    noise, wrong, lost = LabelNoise(h, q), Fraction(h), Fraction(q)
    for rate in (0.01, 0.2, 1 / 3, 0.45):
        assert Fraction(noise.after(rate)) >= (1 - lost) * Fraction(rate) / (1 - wrong) + lost
        assert Fraction(noise.counted(rate)) >= wrong + (1 - wrong) * Fraction(rate) / (1 - lost)
        assert Fraction(noise.before(rate)) <= (1 - wrong) * (Fraction(rate) - lost) / (1 - lost)
