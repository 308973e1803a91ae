from fractions import Fraction
from itertools import permutations, product
from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyod.models.knn import KNN
from scipy.stats import binom
from sklearn.ensemble import IsolationForest
from sklearn.metrics import f1_score, precision_recall_curve

from pac_wrap import Guarantee, Rule, evaluate
from pac_wrap.tails.bounds import error_budget
from pac_wrap.validation import exact_violation
from pac_wrap_paper.baselines import cpad, cpad_budget, f1_max, percentile
from support.examples import examples
from support.strategies import LARGEST, Floats, refusal

tied = st.lists(st.integers(0, 6) | st.integers(-50, 50), min_size=1, max_size=25).map(
    lambda x: np.array(x, dtype=np.float64)
)


@pytest.mark.parametrize(
    ("n", "rate", "budget"),
    [
        (170, 0.05, 7),
        (865, 0.05, 42),
        (2000, 0.05, 99),
        (0, 0.5, None),
        (1, 0.5, 0),
        (18, 0.05, None),
        (19, 0.05, 0),
        (3, 0.999, 2),
        # as doubles, .29 * 100 and .07 * 100 fall on either side of a whole number
        (99, 0.29, 28),
        (99, 0.07, 6),
        (99, 0.57, 56),
        (9999, 1e-4, 0),
        (9998, 1e-4, None),
    ],
)
def test_the_budget_of_conformal_prediction(n: int, rate: float, budget: int | None) -> None:
    assert cpad_budget(n, rate) == cpad_budget(n, rate, 0.05) == budget


@given(st.integers(0, 5000), st.integers(1, 999))
def test_the_budget_is_the_floor_of_a_decimal_product(n: int, thousandths: int) -> None:
    k = thousandths * (n + 1) // 1000
    assert cpad_budget(n, thousandths / 1000) == (k - 1 if k else None)
    assert k <= n


def sides(rate: float) -> tuple[Guarantee, Guarantee]:
    return Guarantee(rate, None), Guarantee(None, rate)


def test_conformal_thresholds_by_hand() -> None:
    # n + 1 = 5: a rate of .4 is the 2nd score from the end, .2 the first
    normal, anomalous = np.array([3.0, 1.0, 4.0, 2.0]), np.array([7.0, 2.0, 9.0, 5.0])
    assert cpad(normal, anomalous, Guarantee(0.4, 0.4)) == Rule(nextafter(3.0, inf), 5.0)
    assert cpad(normal, anomalous, Guarantee(0.2, 0.6)) == Rule(nextafter(4.0, inf), 7.0)
    alarming, clearing = (cpad(normal, anomalous, side) for side in sides(0.4))
    # flagged above the 2nd largest normal, missed below the 2nd smallest anomaly
    assert alarming.verdicts([3.0, 3.5]).tolist() == [0, 1]
    assert clearing.verdicts([4.5, 5.0]).tolist() == [0, 1]


def test_conformal_thresholds_with_ties_by_hand() -> None:
    tie = np.array([1.0, 2.0, 2.0, 2.0])
    assert cpad(tie, tie, Guarantee(0.2, 0.2)) == Rule(1.0, nextafter(2.0, inf))
    assert cpad(tie, tie, Guarantee(0.6, 0.4)) == Rule(2.0, nextafter(2.0, inf))
    assert cpad(tie, tie, Guarantee(0.8, 0.8)) == Rule(nextafter(1.0, inf), 2.0)


def test_too_few_points_flag_and_miss_nothing() -> None:
    rule = cpad(np.arange(18.0), np.arange(18.0))
    assert rule == cpad([], []) == Rule(-inf, inf)
    assert rule.verdicts([-inf, 0.0, inf]).tolist() == [-1, -1, -1]


def test_a_side_that_is_not_promised_has_no_conformal_threshold() -> None:
    above = nextafter(18.0, inf)
    assert cpad(np.arange(19.0), [], Guarantee(0.05, None)) == Rule(above, above)
    assert cpad([], np.arange(19.0), Guarantee(None, 0.05)) == Rule(0.0, 0.0)


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.25, 0.5, 0.7])
@pytest.mark.parametrize("ties", [False, True])
def test_on_average_conformal_prediction_keeps_its_rate(rate: float, ties: bool) -> None:
    for n in range(1, 6):
        ranks = np.arange(n + 1) // 2 if ties else np.arange(n + 1)
        orders = list(permutations(ranks.astype(float)))
        flagged, missed = (
            Fraction(
                sum(cpad(known, known, side).verdicts([new])[0] == wrong for *known, new in orders),
                len(orders),
            )
            for side, wrong in zip(sides(rate), (1, 0), strict=True)
        )
        k = Fraction(str(rate)) * (n + 1) // 1
        if ties:
            assert max(flagged, missed) <= Fraction(k, n + 1)
        else:
            assert flagged == missed == Fraction(k, n + 1)
        assert Fraction(k, n + 1) <= Fraction(str(rate))


def test_nearly_every_second_conformal_calibration_breaks_the_ceiling() -> None:
    population = np.arange(10**6)
    conformal = exact_violation(population, population, (865, 170), budget=cpad_budget)
    certified = exact_violation(population, population, (865, 170))
    for n, found, ours in ((865, conformal.fpr, certified.fpr), (170, conformal.fnr, certified.fnr)):
        k = int(0.05 * (n + 1))
        assert found == pytest.approx(binom.cdf(k - 1, n, 0.05), abs=1e-4)
        assert ours == pytest.approx(binom.cdf(error_budget(n, 0.05, 0.05), n, 0.05), abs=1e-4)
    assert (round(conformal.fpr or 0.0, 2), round(conformal.fnr or 0.0, 2)) == (0.46, 0.38)
    assert (round(certified.fpr or 0.0, 3), round(certified.fnr or 0.0, 3)) == (0.042, 0.027)


def test_the_chance_to_break_it_tends_to_a_half() -> None:
    chances = [float(binom.cdf(cpad_budget(n, 0.05), n, 0.05)) for n in (19, 199, 1_999, 199_999, 19_999_999)]
    assert chances == sorted(chances)
    assert 0.499 < chances[-1] < 0.5


def f1_of(tau: float, normal: Floats, anomalous: Floats) -> Fraction:
    hits, alarms = int((anomalous >= tau).sum()), int((normal >= tau).sum())
    return Fraction(2 * hits, hits + alarms + anomalous.size)


def labelled(normal: Floats, anomalous: Floats) -> tuple[Floats, NDArray[np.int64]]:
    return np.concatenate([normal, anomalous]), np.repeat([0, 1], [normal.size, anomalous.size])


@given(tied | st.just(np.empty(0)), tied)
def test_no_threshold_has_a_greater_f1(normal: Floats, anomalous: Floats) -> None:
    rule = f1_max(normal, anomalous)
    assert rule.single
    tau = rule.anomaly_from
    values, labels = labelled(normal, anomalous)
    ends = (nextafter(float(value), way) for value, way in product(values, (-inf, inf)))
    tried = {tau: f1_of(tau, normal, anomalous) for tau in (*values.tolist(), *ends)}
    assert tried[tau] == max(tried.values())
    # among equals the highest
    assert tau == max(other for other, value in tried.items() if value == tried[tau])
    assert f1_score(labels, rule.verdicts(values)) == pytest.approx(float(tried[tau]))


@given(tied, tied)
def test_the_best_f1_is_the_one_on_the_curve_of_scikit_learn(normal: Floats, anomalous: Floats) -> None:
    values, labels = labelled(normal, anomalous)
    precision, recall, thresholds = precision_recall_curve(labels, values)
    # recall is 0 at the last point, which has no threshold, and possibly above all anomalies
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    tau = f1_max(normal, anomalous).anomaly_from
    assert float(f1_of(tau or 0.0, normal, anomalous)) == pytest.approx(f1.max())
    assert tau == thresholds[np.flatnonzero(f1 >= f1.max() - 1e-9)[-1]]


def test_the_best_f1_by_hand() -> None:
    # from 2 on: 3 hits, 1 false alarm, 6/7; from 3 on: 2 hits, none, 4/5
    assert f1_max([0.0, 1.0, 2.0], [2.0, 3.0, 4.0]) == Rule(2.0, 2.0)
    assert f1_max([], [3.0, 1.0]) == Rule(1.0, 1.0)
    assert f1_max([5.0], [5.0, 5.0]) == Rule(5.0, 5.0)
    assert f1_max([0.0], [-inf, -inf]).verdicts([-inf, 0.0]).tolist() == [1, 1]


def test_anomalies_at_infinity_are_found_by_the_best_f1() -> None:
    assert f1_max([0.0, LARGEST / 2], [inf, inf]).verdicts([0.0, inf]).tolist() == [0, 1]


@given(tied, st.integers(1, 99))
def test_a_percentile_flags_what_numpy_puts_above_it(normal: Floats, percent: int) -> None:
    rule = percentile(normal, percent / 100)
    assert rule.single
    # the convention of PyOD: threshold_ = percentile(scores, 100 (1 - contamination)), labels = scores > it
    threshold = np.percentile(normal, 100 * (1 - percent / 100))
    probes = np.concatenate([normal, normal + 0.25, normal - 0.25])
    clear = np.abs(probes - threshold) > 1e-9
    assert rule.verdicts(probes[clear]).tolist() == (probes[clear] > threshold).astype(int).tolist()
    # at most the share itself, unless rounding of 1 - contamination decides about one point
    assert np.count_nonzero(rule.verdicts(normal)) <= percent / 100 * (normal.size - 1) + 1


@pytest.mark.parametrize("contamination", [0.05, 0.1, 0.25])
def test_a_percentile_agrees_with_pyod_and_scikit_learn(contamination: float) -> None:
    points = np.random.default_rng(1).normal(size=(203, 2))
    detector = KNN(contamination=contamination).fit(points)
    scores = detector.decision_scores_
    assert percentile(scores, contamination).verdicts(scores).tolist() == detector.labels_.tolist()
    forest = IsolationForest(n_estimators=20, contamination=contamination, random_state=0).fit(points)
    flagged = forest.predict(points) == -1
    ours = percentile(-forest.score_samples(points), contamination).verdicts(-forest.score_samples(points))
    assert ours.tolist() == flagged.astype(int).tolist()


def test_a_percentile_by_hand() -> None:
    # the quantile is the 91st of 0 to 100, which itself is not flagged
    assert percentile(np.arange(101.0), 0.1) == Rule(nextafter(90.0, inf), nextafter(90.0, inf))
    assert percentile(np.arange(101.0)).verdicts([95.0, 95.5]).tolist() == [0, 1]
    assert percentile(np.arange(11.0), 0.25).verdicts([7.5, 7.6]).tolist() == [0, 1]
    assert not percentile(np.full(9, 3.0), 0.5).verdicts([3.0]).any()


@pytest.mark.parametrize("normal", [[inf, inf], [0.0, inf], [-inf, -inf, 0.0]])
def test_a_percentile_of_infinite_scores_is_a_number(normal: list[float]) -> None:
    tau = percentile(normal, 0.3).anomaly_from
    assert tau == tau


@settings(max_examples=examples(40))
@given(tied, tied)
def test_all_rules_are_measured_alike(normal: Floats, anomalous: Floats) -> None:
    values, labels = labelled(normal, anomalous)
    alone = [cpad(normal, anomalous, side) for side in sides(0.3)]
    for rule in (cpad(normal, anomalous, Guarantee(0.3, 0.3)), f1_max(normal, anomalous), percentile(normal)):
        metrics = evaluate(rule.verdicts(values), labels)
        assert metrics.fpr.n == normal.size
        assert metrics.fnr.n == anomalous.size
        assert rule.single <= (metrics.ambiguity.count == 0)
        alarming, clearing = (rule, rule) if rule.single else alone
        # on its own points each rule keeps what it was made for
        assert metrics.fpr.count <= np.count_nonzero(alarming.verdicts(normal) == 1)
        assert metrics.fnr.count <= np.count_nonzero(clearing.verdicts(anomalous) == 0)


@pytest.mark.parametrize("values", [[0.5, nan], [[0.5]], ["0.5"]])
def test_what_is_no_score_is_refused(values: Any) -> None:
    for rule in (cpad, f1_max):
        assert refusal(rule, values, [1.0]).startswith("normal must ")
        assert refusal(rule, [1.0], values).startswith("anomalous must ")
    assert refusal(lambda: percentile(values)).startswith("normal must ")


def test_an_empty_class_is_refused_where_it_leaves_no_rule() -> None:
    assert "anomalous is empty, so no threshold has an F1" in refusal(lambda: f1_max([1.0], []))
    assert "normal is empty, so it has no percentile" in refusal(lambda: percentile([]))


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 5, nan, "0.05", None, True])
def test_what_is_no_rate_is_refused(rate: Any) -> None:
    sentence = " must lie strictly between 0 and 1, got "
    assert "rate" + sentence in refusal(lambda: cpad_budget(10, rate))
    assert "contamination" + sentence in refusal(lambda: percentile([1.0], rate))


@pytest.mark.parametrize("n", [-1, 2.0, True, "3", None])
def test_what_is_no_number_of_points_is_refused(n: Any) -> None:
    assert "n must be a whole number, 0 or more, got " in refusal(lambda: cpad_budget(n, 0.05))
