"""Held-out rates are drawn with their intervals, against their ceilings."""

import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate, evaluate
from pac_wrap.report.figures import plot_held_out
from support.drawn import (
    ANOMALOUS,
    FAILED,
    NORMAL,
    OVERLAPPING,
    line,
    points,
    texts,
)


class TestHeldOut:
    SCORES = np.r_[NORMAL, ANOMALOUS]
    LABELS = np.repeat([0, 1], [2000, 300])

    def test_rates_intervals_and_ceilings(self) -> None:
        metrics = evaluate(OVERLAPPING.verdicts(self.SCORES), self.LABELS)
        ax = plot_held_out(OVERLAPPING, metrics)
        for name, rate in (
            ("FPR", metrics.fpr),
            ("FNR", metrics.fnr),
            ("abstained, normal", metrics.abstained_normal),
            ("abstained, anomalous", metrics.abstained_anomalous),
        ):
            exact = [one for one in ax.get_lines() if one.get_label() == f"_{name}"]
            assert points(exact[0])[0] == pytest.approx([100 * rate.value])
            assert points(line(ax, f"_{name} interval"))[0] == pytest.approx(
                [100 * rate.low, 100 * rate.high]
            )
        for name in ("FPR", "FNR"):
            assert set(points(line(ax, f"_{name} ceiling"))[0]) == {5.0}
        assert texts(ax)[0].startswith(f"FPR {100 * metrics.fpr.value:.3g} % [")
        assert "n = 2,000; ceiling 5 %" in texts(ax)[0]

    def test_no_errors_are_drawn_at_the_left_edge(self) -> None:
        metrics = evaluate(np.zeros(50, dtype=int), np.repeat([0, 1], [49, 1]))
        ax = plot_held_out(OVERLAPPING, metrics)
        (zero,) = (one for one in ax.get_lines() if one.get_label() == "_FPR")
        assert points(zero)[0].tolist() == [ax.get_xlim()[0]]
        assert zero.get_marker() == "<"

    def test_rate_that_exceeds_its_ceiling_for_certain_is_called_out(self) -> None:
        metrics = evaluate(np.ones(100, dtype=int), np.repeat([0, 1], 50))
        assert "above ceiling 5 %" in texts(plot_held_out(OVERLAPPING, metrics))[0]
        assert "above" not in texts(plot_held_out(OVERLAPPING, metrics))[1]

    def test_missing_class_and_missing_promise_are_said(self) -> None:
        one_sided = calibrate(NORMAL, ANOMALOUS, Guarantee(max_fnr=None))
        ax = plot_held_out(one_sided, evaluate(one_sided.verdicts(NORMAL), np.zeros(2000, dtype=int)))
        assert texts(ax)[1] == "FNR: no points; nothing promised"
        assert not [one for one in ax.get_lines() if str(one.get_label()).startswith("_FNR")]
        metrics = evaluate(FAILED.verdicts(self.SCORES), self.LABELS)
        assert "nothing promised" in texts(plot_held_out(FAILED, metrics))[0]
