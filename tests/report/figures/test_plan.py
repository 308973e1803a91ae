"""The planner shows the rates that can be achieved."""

import numpy as np
import pytest

from pac_wrap import Guarantee, achievable_rate, calibrate
from pac_wrap.report.figures import plot_plan
from support.drawn import (
    ANOMALOUS,
    NORMAL,
    SINGLE,
    legend,
    line,
    points,
    texts,
)
from support.strategies import refusal


class TestPlan:
    def test_curves_are_the_achievable_rates(self) -> None:
        ax = plot_plan(delta=0.1)
        assert legend(ax) == ["0", "1", "2", "5", "10"]
        for errors in (0, 10):
            x, y = points(line(ax, str(errors) if errors else "0"))
            assert x == pytest.approx([100 * achievable_rate(int(n), 0.1, errors) for n in y])
            assert y.max() == 10_000
        assert ax.get_xlabel() == "certified rate (%), at confidence 90 %"
        assert ax.get_yscale() == ax.get_xscale() == "log"

    def test_certificate_is_marked_at_its_n_and_ceiling(self) -> None:
        ax = plot_plan([0], certificate=SINGLE)
        for name, n in (("normal", 2000), ("anomalous", 300)):
            x, y = points(line(ax, f"_{name}"))
            assert (x.tolist(), y.tolist()) == ([15.0], [n])
        assert "★ normal: n = 2,000, ceiling 15 %" in texts(ax)

    def test_side_without_a_promise_or_without_labels_is_not_marked(self) -> None:
        for one_sided in (calibrate(NORMAL, ANOMALOUS, Guarantee(max_fnr=None)), calibrate(NORMAL, [])):
            ax = plot_plan([0], certificate=one_sided)
            assert [str(one.get_label()) for one in ax.get_lines()] == ["0", "_normal"]

    def test_many_labels_stretch_the_axis(self) -> None:
        many = calibrate(np.arange(50_000.0), np.arange(20_000.0, 70_000.0))
        assert plot_plan([0], certificate=many).get_ylim()[1] >= 50_000

    def test_negative_errors_are_refused(self) -> None:
        assert "errors" in refusal(lambda: plot_plan([-1]))
