import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate, evaluate
from pac_wrap.method.comparison import compare_scores
from pac_wrap.report.render import terminal
from pac_wrap.report.results import account_of_comparison, account_of_evaluation
from support.shell import text_of


def test_what_is_exceeded_is_said_whole_in_80_columns() -> None:
    metrics = evaluate(np.ones(2_000_000, dtype=int), np.repeat([0, 1], 1_000_000))
    shown = text_of(
        terminal(account_of_evaluation(calibrate(np.arange(100.0), np.arange(100.0) + 100), metrics))
    )
    assert "…" not in shown
    assert "1,000,000 of 1,000,000  exceeded" in shown


def test_a_comparison_explains_its_stars_in_80_columns() -> None:
    labels = np.repeat([False, True], 100)
    columns = {name: (np.arange(200.0), labels) for name in ("forest", "boosting")}
    shown = text_of(terminal(account_of_comparison(compare_scores(columns, Guarantee(0.1)), Guarantee(0.1))))
    first, second, *_, stars, few = shown.splitlines()
    assert first == "asked: FPR <= 0.1 (confidence 0.95), FNR <= 0.05 (confidence 0.95)"
    assert second == "2 scores share each delta"
    assert stars == "* best; all bounds hold together, at every threshold, with 90 % confidence"
    assert few.startswith("too few labels for FNR <= 0.05: 100 anomalous ones keep 0.0")
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("width", [40, 60])
def test_a_comparison_is_folded_and_never_cut_in_a_narrow_terminal(width: int) -> None:
    labels = np.repeat([False, True], 300)
    columns = {name: (np.arange(600.0) % period, labels) for name, period in (("forest", 450), ("lof", 350))}
    shown = text_of(terminal(account_of_comparison(compare_scores(columns, Guarantee()), Guarantee())), width)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width
    assert "lof " in shown


def test_the_confidence_of_a_comparison_counts_the_bounds_of_both_rates() -> None:
    labels = np.repeat([False, True], 300)
    contenders = compare_scores({"forest": (np.arange(600.0), labels)}, Guarantee(0.05, None))
    asked = Guarantee(contenders[0].curve.normal.bounds[0], None)
    *_, stars = text_of(terminal(account_of_comparison(contenders, asked))).splitlines()
    # a ceiling that is just kept needs no more labels
    assert stars == "* best; all bounds hold together, at every threshold, with 90 % confidence"
