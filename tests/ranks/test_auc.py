import warnings
from itertools import product
from math import inf
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given

from pac_wrap import LabelWarning
from pac_wrap.ranks import memory
from pac_wrap.ranks.memory import RankedInMemory, auc, breaks_off, rough_auc, warn_if_selected, warn_of_labels
from statistical.claims import assert_at_most, assert_power, assert_rate
from support.strategies import Floats, scores


def test_a_rough_auc_is_not_misled_by_a_period() -> None:
    size = 999 * 8 + 1
    normal, anomalous = np.resize([0.0] + [9.0] * 7, size), np.ones(size)
    assert rough_auc(normal, anomalous) == auc(normal, anomalous) == pytest.approx(0.125, abs=1e-3)
    assert rough_auc(anomalous, normal) == pytest.approx(0.875, abs=0.01)
    assert rough_auc(normal[:5], anomalous[:7]) == auc(normal[:5], anomalous[:7])


@given(scores(min_size=1, max_size=12), scores(min_size=1, max_size=12))
def test_auc_is_the_share_of_pairs_in_order(normal: Floats, anomalous: Floats) -> None:
    pairs = [1.0 if a > n else 0.5 if a == n else 0.0 for n, a in product(normal, anomalous)]
    assert auc(normal, anomalous) == pytest.approx(sum(pairs) / len(pairs), rel=1e-12, abs=1e-15)


def test_auc_of_perfect_reversed_and_constant_scores() -> None:
    low, high = np.array([-inf, 0.0]), np.array([1.0, inf])
    assert auc(low, high) == 1.0
    assert auc(high, low) == 0.0
    assert auc(np.zeros(5), np.zeros(3)) == 0.5


def test_auc_of_many_points_is_taken_on_evenly_spaced_ones() -> None:
    # sorted scores: the first 10,000 alone would say 0 or 1
    normal = np.linspace(0.0, 1.0, 40_000)
    assert auc(normal, normal) == pytest.approx(0.5, abs=1e-3)
    assert auc(normal, np.linspace(0.5, 1.5, 30_000)) == pytest.approx(0.875, abs=1e-3)
    assert auc(normal, np.array([0.25])) == pytest.approx(0.25, abs=1e-3)


HONEST = {
    "apart": lambda rng: (rng.normal(0, 1, 3000), rng.normal(3, 1, 200)),
    "overlapping": lambda rng: (rng.normal(0, 1, 3000), rng.normal(1, 1, 200)),
    "one tail": lambda rng: (rng.exponential(1, 3000), rng.gamma(5, 1, 200)),
    "shares": lambda rng: (rng.beta(1, 9, 3000), rng.beta(5, 2, 200)),
    "heavy": lambda rng: (rng.standard_t(3, 3000), 3 + rng.standard_t(3, 200)),
}


@pytest.mark.parametrize("family", HONEST)
def test_classes_that_thin_out_are_not_taken_for_chosen_ones(family: str) -> None:
    rng, trials = np.random.default_rng(0), 400
    hits = 0
    for _ in range(trials):
        normal, anomalous = HONEST[family](rng)
        hits += breaks_off(anomalous, normal) is not None or breaks_off(-normal, -anomalous) is not None
    assert_at_most(hits, trials, 0.005)
    assert_power(trials, 0.005, 0.1)


def test_the_chance_of_a_false_warning_is_the_proved_one() -> None:
    # 20 points, each beyond the end of the others with chance kappa: the bound has one factor less
    rng, trials, kappa = np.random.default_rng(0), 4000, 0.1
    normal = np.arange(1000.0)
    hits = 0
    for _ in range(trials):
        anomalous = np.where(rng.random(20) < kappa, 0.0, 900.0 + rng.uniform(0, 15, 20))
        hits += breaks_off(anomalous, normal) is not None
    expected = (1 - kappa) ** 20 * (1 - 20 * 0.6**19)  # the rest: no ten points lie between the ends
    assert_rate(hits, trials, expected)
    assert_at_most(hits, trials, (1 - kappa) ** 19)


def test_reviewed_alarms_are_taken_for_what_they_are() -> None:
    rng, trials = np.random.default_rng(0), 100
    hits = 0
    for _ in range(trials):
        normal, anomalous = rng.normal(0, 1, 10_000), rng.normal(2, 1, 1500)
        hits += breaks_off(anomalous[anomalous >= 1.645], normal) is not None
    assert hits >= 99  # of which 36 % of the anomalies were never seen


def test_separated_classes_and_shared_values_are_no_sign_of_a_choice() -> None:
    rng = np.random.default_rng(0)
    assert breaks_off(np.arange(200.0, 300.0), np.arange(100.0)) is None
    assert breaks_off(np.full(500, 3.0), rng.normal(0, 1, 100_000)) is None
    assert breaks_off(np.full(5, 3.0), rng.normal(0, 1, 100_000)) is None
    assert breaks_off(np.arange(100.0), np.empty(0)) is None
    # a few normal points far out, and a gap before the anomalies
    assert breaks_off(rng.uniform(5, 6, 400), np.r_[rng.normal(0, 1, 5000), rng.uniform(7, 9, 30)]) is None


@pytest.mark.parametrize(("beyond", "found"), [(19, None), (20, (30, 1.0)), (21, (31, 1.0))])
def test_twenty_others_beyond_the_edge_are_enough(beyond: int, found: tuple[int, float] | None) -> None:
    chosen = np.linspace(1.0, 2.0, 20)
    others = np.r_[np.zeros(200), np.full(10, 1.5), np.full(beyond, 3.0)]
    assert breaks_off(chosen, others) == found


@pytest.mark.parametrize("seed", range(20))
def test_scores_in_order_break_off_where_others_do(seed: int) -> None:
    rng = np.random.default_rng(seed)
    normal, anomalous = rng.normal(0, 1, 3000), rng.normal(2, 1, 1000)
    least = rng.uniform(1.0, 2.0)
    chosen = anomalous[anomalous >= least]
    found = breaks_off(chosen, normal)
    assert found is not None
    assert breaks_off(np.sort(chosen), np.sort(normal), ordered=True) == found
    assert breaks_off(np.sort(anomalous), np.sort(normal), ordered=True) is None


def test_few_scores_are_warned_of_as_many_are() -> None:
    rng = np.random.default_rng(0)
    normal, anomalous = rng.normal(0, 1, 3000), rng.normal(2, 1, 1000)
    for pair in (
        (normal, anomalous[anomalous >= 1.6]),
        (normal[normal <= 0.4], anomalous),
        (anomalous, normal),
    ):
        caught = []
        for few in (3000, -1):
            with warnings.catch_warnings(record=True) as each, patch.object(memory, "_SORTED", few):
                warnings.simplefilter("always")
                one, other = (RankedInMemory(scores, "scores", 1) for scores in pair)
                warn_of_labels(one, other, draws=True)
            caught.append([str(warning.message) for warning in each])
        assert caught[0] == caught[1]
        assert len(caught[0]) == 1


def test_the_warning_names_the_class_and_the_rate() -> None:
    rng = np.random.default_rng(0)
    normal, anomalous = rng.normal(0, 1, 200_000), rng.normal(2, 1, 150_000)
    reviewed = anomalous[anomalous >= 1.645]
    with pytest.warns(
        LabelWarning, match="^no anomaly scores below 1.645.* normal points score higher; .* FNR "
    ):
        warn_if_selected(normal, reviewed)
    with pytest.warns(
        LabelWarning, match="^no normal point scores above 0.3.* anomalies score lower; .* FPR "
    ):
        warn_if_selected(normal[normal <= 0.36], anomalous)
    warn_if_selected(normal, anomalous)
