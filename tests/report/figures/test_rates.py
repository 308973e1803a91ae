"""Rates: what the figure shows is what the modules compute."""

import numpy as np
import pytest

from pac_wrap import Certificate, Guarantee, calibrate, upper_bound
from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import rounded_down
from pac_wrap.report.figures import plot_rates, style
from support.drawn import (
    ANOMALOUS,
    FAILED,
    NORMAL,
    OVERLAPPING,
    SINGLE,
    legend,
    line,
    points,
    thresholds,
)

STYLE = style()


def side_of(certificate: Certificate, name: str) -> tuple[Scores, float, float]:
    kept, fpr = certificate.certified, name == "FPR"
    evidence = certificate.normal if fpr else certificate.anomalous
    assert kept is not None
    assert evidence.budget is not None
    ceiling = kept.max_fpr if fpr else kept.max_fnr
    assert ceiling is not None
    return NORMAL if fpr else ANOMALOUS, ceiling, evidence.budget.delta


class TestRates:
    @pytest.mark.parametrize("certificate", [OVERLAPPING, SINGLE], ids=["two", "one"])
    @pytest.mark.parametrize(("name", "colour"), [("FPR", STYLE.normal), ("FNR", STYLE.anomalous)])
    def test_curves_bounds_and_ceilings(self, certificate: Certificate, name: str, colour: str) -> None:
        scores, ceiling, delta = side_of(certificate, name)
        ax = plot_rates(certificate, NORMAL, ANOMALOUS)
        x, y = points(line(ax, f"{name}, n = {scores.size:,}"))
        assert x.size <= 200
        wrong = [int(np.count_nonzero(scores >= t if name == "FPR" else scores < t)) for t in x]
        assert y == pytest.approx(100 * np.array(wrong) / scores.size)
        _, bounds = points(line(ax, "bound at", colour))
        some = slice(None, None, 20)
        assert bounds[some] == pytest.approx(
            [100 * upper_bound(count, scores.size, delta) for count in wrong[some]], rel=1e-9
        )
        assert set(points(line(ax, "ceiling", colour))[1]) == {100 * ceiling}
        assert set(np.asarray(x)[np.isin(x, list(thresholds(ax).values()))]) == set(thresholds(ax).values())

    @pytest.mark.parametrize("certificate", [OVERLAPPING, SINGLE], ids=["two", "one"])
    @pytest.mark.parametrize("name", ["FPR", "FNR"])
    def test_bound_at_the_chosen_threshold_keeps_the_ceiling(
        self, certificate: Certificate, name: str
    ) -> None:
        scores, ceiling, delta = side_of(certificate, name)
        x, y = points(line(plot_rates(certificate, NORMAL, ANOMALOUS), f"_{name} chosen"))
        tau = certificate.rule.anomaly_from if name == "FPR" else certificate.rule.normal_below
        assert x.tolist() == [tau]
        wrong = int(np.count_nonzero(scores >= tau if name == "FPR" else scores < tau))
        assert y.tolist() == [100 * upper_bound(wrong, scores.size, delta)]
        assert y[0] <= 100 * ceiling

    def test_confidence_of_the_bounds_is_that_of_the_budget(self) -> None:
        assert legend(plot_rates(OVERLAPPING, NORMAL, ANOMALOUS))[1] == "bound at 95 %"
        budget = SINGLE.normal.budget
        assert budget is not None
        assert budget.delta < 0.05
        shown = legend(plot_rates(SINGLE, NORMAL, ANOMALOUS))[1]
        assert shown == f"bound at {rounded_down(1 - budget.delta, 100, 4)} %"

    def test_what_could_not_be_certified_is_called_asked(self) -> None:
        shown = legend(plot_rates(FAILED, NORMAL, ANOMALOUS))
        assert "asked 5 %" in shown
        assert not any(text.startswith("ceiling") for text in shown)

    def test_side_without_a_promise_has_no_ceiling(self) -> None:
        ax = plot_rates(
            calibrate(NORMAL, ANOMALOUS, Guarantee(max_fpr=0.02, max_fnr=None)), NORMAL, ANOMALOUS
        )
        assert [text for text in legend(ax) if text.startswith("ceiling")] == ["ceiling 2 %"]

    def test_ceiling_is_never_written_below_its_value(self) -> None:
        held = calibrate(NORMAL, ANOMALOUS, overlap="hold_fnr")
        assert held.certified is not None
        assert held.certified.max_fpr is not None
        shown = [text.split()[1] for text in legend(plot_rates(held, NORMAL, ANOMALOUS)) if "ceiling" in text]
        assert 0 <= float(shown[0]) - 100 * held.certified.max_fpr < 0.1
