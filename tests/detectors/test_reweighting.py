"""Weights from a classifier: near the true density ratio where it can be learned; plain about the rest."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

from pac_wrap import (
    Guarantee,
    InputError,
    LabelNoise,
    PACWrap,
    TotalVariation,
    calibrate,
    estimate_weights,
)

RANDOM = np.random.default_rng(0)


def test_the_weights_of_two_gaussians() -> None:
    """The odds of two Gaussians are a logistic function of x, so the ratio exp(x - 1/2) can be learned."""
    old, new = RANDOM.normal(0, 1, (4000, 1)), RANDOM.normal(1, 1, (2000, 1))
    found = estimate_weights(old, new, bound=20)
    near = np.abs(old[:, 0]) < 2
    assert found.weights[near] == pytest.approx(np.exp(old[near, 0] - 0.5), rel=0.25)
    assert found.clipped == np.count_nonzero(found.weights == 20)
    clipped = estimate_weights(old, new, bound=2)
    assert clipped.weights.max() == 2.0
    assert clipped.clipped > 100
    assert clipped.bound == 2.0


def test_no_shift_weighs_all_points_alike() -> None:
    old, new = RANDOM.normal(size=(3000, 2)), RANDOM.normal(size=(3000, 2))
    found = estimate_weights(old, new, bound=2)
    assert found.weights == pytest.approx(np.ones(3000), rel=0.3)


@pytest.mark.parametrize("shapes", [((9, 2), (9, 3)), ((9,), (9,)), ((9, 2), (9,))])
def test_tables_of_other_features_are_refused(shapes: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(InputError, match="must be tables with the same features, got the shapes"):
        estimate_weights(np.ones(shapes[0]), np.ones(shapes[1]), bound=5)


def test_a_table_another_classifier_and_a_seed() -> None:
    old, new = (pd.DataFrame({"a": RANDOM.normal(shift, 1, 200)}) for shift in (0, 1))
    forest = RandomForestClassifier(10, random_state=0)
    first, again = (estimate_weights(old, new, bound=5, classifier=forest, seed=3) for _ in range(2))
    assert (first.weights == again.weights).all()
    assert 0.0 <= first.weights.min() <= first.weights.max() <= 5.0


def test_it_says_what_is_assumed_and_calibrates() -> None:
    x = RANDOM.normal(size=(2000, 1))
    found = estimate_weights(x, RANDOM.normal(0.5, 1, (2000, 1)), bound=4)
    text = str(found)
    assert "2,000 weights up to 4" in text
    assert "assumed, not shown: these weights are right up to a factor" in text
    made = calibrate(
        x[:, 0], [], Guarantee(0.1, None), normal_weights=found.weights, weight_bound=found.bound
    )
    plain = calibrate(x[:, 0], [], Guarantee(0.1, None))
    assert made.thresholds.alarm_from is not None
    assert plain.thresholds.alarm_from is not None
    # the future lies higher
    assert made.thresholds.alarm_from > plain.thresholds.alarm_from + 0.2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bound": None}, "weights need a bound"),
        ({"bound": 0}, "weight_bound must be a number above 0"),
        ({"bound": 2, "seed": -1}, "seed must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    points = np.zeros((10, 1))
    with pytest.raises(InputError, match=words):
        estimate_weights(points, points, **options)
    with pytest.raises(InputError, match="at least 5 calibration and 5 new points, got 10 and 4"):
        estimate_weights(points, points[:4], bound=2)


def test_an_estimator_leaves_room_as_well() -> None:
    x = np.append(RANDOM.normal(0, 1, 400), RANDOM.normal(5, 1, 300))[:, None]
    wrap = PACWrap(lambda X: X[:, 0], shift=(TotalVariation(0.01), None), label_noise=LabelNoise(0.02))
    wrap.fit(x, np.repeat([0, 1], [400, 300]))
    assert wrap.certificate_.guarantee.shift == (TotalVariation(0.01), None)
    assert wrap.certificate_.guarantee.label_noise == (LabelNoise(0.02),) * 2
    assert clone(wrap).get_params()["label_noise"] == LabelNoise(0.02)
    with pytest.raises(InputError, match="shift must be one of"):
        PACWrap(lambda X: X[:, 0], shift=0.01).fit(x, np.repeat([0, 1], [400, 300]))
