"""Rates, ambiguity, held-out rates and the planner: what the figure shows is what the modules compute."""

import numpy as np
import pytest

from drawn import ANOMALOUS, FAILED, NORMAL, OVERLAPPING, SINGLE, legend, line, points, texts, thresholds
from pac_wrap import Certificate, Guarantee, achievable_rate, calibrate, evaluate, upper_bound
from pac_wrap.inputs import Scores
from pac_wrap.report.figures import plot_ambiguity, plot_held_out, plot_plan, plot_rates, style
from strategies import refusal

LOOK = style()


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
    @pytest.mark.parametrize(("name", "colour"), [("FPR", LOOK.normal), ("FNR", LOOK.anomalous)])
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
        tau = certificate.rule.alarm_from if name == "FPR" else certificate.rule.clear_below
        assert tau is not None
        assert x.tolist() == [tau]
        wrong = int(np.count_nonzero(scores >= tau if name == "FPR" else scores < tau))
        assert y.tolist() == [100 * upper_bound(wrong, scores.size, delta)]
        assert y[0] <= 100 * ceiling

    def test_confidence_of_the_bounds_is_that_of_the_budget(self) -> None:
        assert legend(plot_rates(OVERLAPPING, NORMAL, ANOMALOUS))[1] == "bound at 95 %"
        budget = SINGLE.normal.budget
        assert budget is not None
        assert budget.delta < 0.05
        assert (
            legend(plot_rates(SINGLE, NORMAL, ANOMALOUS))[1] == f"bound at {100 * (1 - budget.delta):.4g} %"
        )

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
        held = calibrate(NORMAL, ANOMALOUS, abstain=False, strategy="hold_fnr")
        assert held.certified is not None
        assert held.certified.max_fpr is not None
        shown = [text.split()[1] for text in legend(plot_rates(held, NORMAL, ANOMALOUS)) if "ceiling" in text]
        assert 0 <= float(shown[0]) - 100 * held.certified.max_fpr < 0.1


class TestAmbiguity:
    RATES, DELTAS = [0.01, 0.05, 0.1, 0.2], [0.01, 0.05, 0.2]

    def test_cells_are_those_of_the_certificate_of_each_promise(self) -> None:
        ax = plot_ambiguity(NORMAL, ANOMALOUS, self.RATES, self.DELTAS)
        cells = {
            (round(text.get_position()[0]), round(text.get_position()[1])): text for text in ax.texts[:12]
        }
        for row, delta in enumerate(self.DELTAS):
            for column, rate in enumerate(self.RATES):
                certificate = calibrate(NORMAL, ANOMALOUS, Guarantee(rate, rate, delta, delta))
                share = 50 * (certificate.ambiguity(NORMAL) + certificate.ambiguity(ANOMALOUS))
                value, letter = cells[column, row].get_text().split("\n")
                assert float(value) == pytest.approx(share, abs=0.51 if share > 9.9 else 0.051)
                assert letter == certificate.regime.value[0].upper()
        assert {text.get_text()[-1] for text in cells.values()} == {"S", "O", "V"}

    def test_axes_are_labelled_in_percent_with_n(self) -> None:
        ax = plot_ambiguity(NORMAL, ANOMALOUS, self.RATES, self.DELTAS)
        assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "5", "10", "20"]
        assert [label.get_text() for label in ax.get_yticklabels()] == ["1", "5", "20"]
        words = " ".join(reversed(texts(ax)))
        assert "classes weighted equally; n = 2,000 normal, 300 anomalous" in words

    def test_regimes_are_hatched_where_numbers_have_no_room(self) -> None:
        many = np.linspace(0.005, 0.3, 30)
        ax = plot_ambiguity(NORMAL, ANOMALOUS, list(many), list(many))
        assert len(ax.texts) < 5
        hatches = {str(one.get_label()): one.get_hatch() for one in ax.collections[1:]}
        assert hatches == {"_separated": None, "_overlapping": "///", "_vacuous": "xxx"}

    def test_empty_class_counts_only_the_other(self) -> None:
        ax = plot_ambiguity(NORMAL, [], [0.05], [0.05])
        alarm = calibrate(NORMAL, []).rule.alarm_from
        assert alarm is not None
        assert ax.texts[0].get_text() == f"{100 * np.mean(alarm > NORMAL):.0f}\nV"

    @pytest.mark.parametrize("empty", ["rates", "deltas", "scores"])
    def test_nothing_to_draw_is_refused(self, empty: str) -> None:
        scores = [] if empty == "scores" else [1.0]
        rates, deltas = ([] if empty == name else [0.1] for name in ("rates", "deltas"))
        assert "must not be empty" in refusal(lambda: plot_ambiguity(scores, scores, rates, deltas))


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
            assert (x.tolist(), y.tolist()) == ([25.0], [n])
        assert "★ normal: n = 2,000, ceiling 25 %" in texts(ax)

    def test_side_without_a_promise_or_without_labels_is_not_marked(self) -> None:
        for one_sided in (calibrate(NORMAL, ANOMALOUS, Guarantee(max_fnr=None)), calibrate(NORMAL, [])):
            ax = plot_plan([0], certificate=one_sided)
            assert [str(one.get_label()) for one in ax.get_lines()] == ["0", "_normal"]

    def test_many_labels_stretch_the_axis(self) -> None:
        many = calibrate(np.arange(50_000.0), np.arange(20_000.0, 70_000.0))
        assert plot_plan([0], certificate=many).get_ylim()[1] >= 50_000

    def test_negative_errors_are_refused(self) -> None:
        assert "errors" in refusal(lambda: plot_plan([-1]))
