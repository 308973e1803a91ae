from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given

from pac_wrap.ranks.auc import auc, rough_auc
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
