"""What is gained over bands of fixed width, as docs/theory.md says it."""

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import ksone, norm

from pac_wrap import certify_curve
from pac_wrap.method.curves.band import Rates, band_of
from support.pages import ROOT

DELTA, DISTANCE = 0.05, 2.0
THEORY = " ".join((ROOT / "docs" / "theory.md").read_text(encoding="utf-8").split())


def area(fpr: Rates, fnr: Rates) -> float:
    """Return the area under the staircase of the least FNR that goes with each FPR."""
    order = np.argsort(fpr, kind="stable")
    ends = np.concatenate([[0.0], fpr[order], [1.0]])
    heights = np.concatenate([[1.0], np.minimum.accumulate(fnr[order])])
    return float(np.diff(ends) @ heights)


@pytest.mark.parametrize(("n", "less", "excess"), [(500, 21, 37), (5_000, 14, 46)])
def test_the_certified_trade_off_is_better_than_with_fixed_width(n: int, less: int, excess: int) -> None:
    # scores at their own quantiles: what happens on average, without chance
    normal = norm.ppf((np.arange(n) + 0.5) / n)
    anomalous = normal + DISTANCE
    _, fpr, fnr = certify_curve(normal, anomalous, DELTA, DELTA).steps()
    thresholds = np.concatenate([normal, anomalous])
    width = float(ksone.isf(DELTA, n))
    flat_fpr = 1.0 - np.searchsorted(normal, thresholds) / n + width
    flat_fnr = np.searchsorted(anomalous, thresholds) / n + width
    ours, flat = area(fpr, fnr), area(np.minimum(flat_fpr, 1.0), np.minimum(flat_fnr, 1.0))
    true = float(norm.cdf(-DISTANCE / np.sqrt(2.0)))
    assert round(100 * (1 - ours / flat)) == less
    assert round(100 * (1 - (ours - true) / (flat - true))) == excess
    assert f"{less} %" in THEORY
    assert f"{excess} %" in THEORY


@pytest.mark.parametrize("n", [500, 5_000])
def test_over_all_rates_alike_both_are_as_wide(n: int) -> None:
    counts = np.arange(n + 1)
    ours = (band_of(n, DELTA).of(counts) - counts / n).mean()
    flat = (np.minimum(1.0, counts / n + float(ksone.isf(DELTA, n))) - counts / n).mean()
    assert 0.99 < ours / flat < 1.06


def test_the_labels_for_a_ceiling_are_those_of_the_page() -> None:
    assert "59 labels at one threshold that was fixed beforehand and 119 at all of them" in THEORY
    assert band_of(119, DELTA).bounds[0] <= 0.05 < band_of(118, DELTA).bounds[0]
    # with a fixed width by the bound of Dvoretzky, Kiefer, Wolfowitz and Massart
    assert np.ceil(np.log(1 / DELTA) / (2 * 0.05**2)) == 600
    assert betainc(1, 59, 0.05) >= 0.95
