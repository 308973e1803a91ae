"""The figure of a curve: its steps are what can be promised, and nothing overlaps."""

import numpy as np
import pytest

from pac_wrap import Curve, certify_curve
from pac_wrap.report.figures import new_axes, plot_curve
from support.layout import PHONE, PRINT, faults

RNG = np.random.default_rng(5)
CURVES = {
    "few": certify_curve(RNG.normal(0, 1, 30), RNG.normal(2, 1, 12)),
    "usual": certify_curve(RNG.normal(0, 1, 900), RNG.normal(3, 1, 200)),
    "many": certify_curve(RNG.normal(0, 1, 90_000), RNG.normal(5, 1, 30_000)),
    "one each": certify_curve([0.0], [1.0]),
}


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("width", [PHONE, PRINT])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overlaps(curve: Curve, width: float, dark: bool) -> None:
    assert faults(plot_curve(curve, new_axes(width), dark=dark)) == []


def test_a_step_is_the_least_fnr_that_goes_with_an_fpr() -> None:
    curve = CURVES["usual"]
    line = plot_curve(curve).get_lines()[0]
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    assert line.get_drawstyle() == "steps-post"
    assert (np.diff(x) >= 0).all()
    for ceiling in (0.03, 0.05, 0.2):
        kept = curve.choose(max_fpr=ceiling).guarantee
        assert y[np.searchsorted(x, 100 * ceiling, side="right") - 1] == pytest.approx(
            100 * (kept.max_fnr or 1)
        )
