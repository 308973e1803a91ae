"""The heat map of ambiguity shows the certificates of each promise."""

import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate
from pac_wrap.report.figures import plot_ambiguity
from support.drawn import (
    ANOMALOUS,
    NORMAL,
    texts,
)
from support.strategies import refusal


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
        alarm = calibrate(NORMAL, []).rule.anomaly_from
        assert ax.texts[0].get_text() == f"{100 * np.mean(alarm > NORMAL):.0f}\nV"

    @pytest.mark.parametrize("empty", ["rates", "deltas", "scores"])
    def test_nothing_to_draw_is_refused(self, empty: str) -> None:
        scores = [] if empty == "scores" else [1.0]
        rates, deltas = ([] if empty == name else [0.1] for name in ("rates", "deltas"))
        assert "must not be empty" in refusal(lambda: plot_ambiguity(scores, scores, rates, deltas))
