"""The figure of affordable ceilings shows error budgets, each where it begins."""

import pytest

from pac_wrap.report.figures import plot_affordable
from pac_wrap.tails import error_budget, upper_bound
from support.drawn import legend, line, points, texts
from support.strategies import refusal


@pytest.mark.parametrize("delta", [0.05, 0.1])
def test_each_point_is_a_budget_at_the_least_ceiling_that_has_it(delta: float) -> None:
    ax = plot_affordable(6860, 140, delta=delta)
    for name, n in (("normal", 6860), ("anomalous", 140)):
        x, y = points(line(ax, f"{name}, n = {n:,}"))
        assert x[0] == pytest.approx(100 * upper_bound(0, n, delta))
        assert y[0] == 0.0
        for ceiling, share in list(zip(x, y, strict=True))[::7]:
            errors = round(share * ceiling * n / 10_000)
            assert 100 * upper_bound(errors, n, delta) == pytest.approx(ceiling)
            assert error_budget(n, (1 - 1e-6) * ceiling / 100, delta) in (errors - 1, None)
        assert (y < 100).all()


def test_words_around_it() -> None:
    ax = plot_affordable(None, 140)
    assert legend(ax) == ["anomalous, n = 140"]
    assert "anomalous: ceilings from 2.12 % on" in texts(ax)
    assert ax.get_xlabel() == "ceiling (%), each at confidence 95 %"


def test_a_class_with_too_few_labels_is_only_named() -> None:
    ax = plot_affordable(200, 2, dark=True)
    assert legend(ax) == ["normal, n = 200"]
    assert "anomalous: ceilings from 77.7 % on" in texts(ax)
    assert "label at least 5 of a class" in refusal(lambda: plot_affordable(2, None))
