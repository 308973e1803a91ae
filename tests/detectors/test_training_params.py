"""What the `fit` of a detector is given: weights and other metadata, of the rows it is trained on."""

from typing import Any, Self

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pac_wrap import InputError, PACWrap
from pac_wrap.method.promise import of_units

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(4, 1, (200, 3))]
Y = np.r_[np.zeros(400, dtype=int), np.ones(200, dtype=int)]


class Weighing(OutlierMixin, BaseEstimator):
    """Keeps what its fit was given."""

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, passes: int = 1) -> Self:
        self.X_, self.weight_, self.passes_ = X, sample_weight, passes
        return self

    def score_samples(self, X: Any) -> Any:
        return -np.asarray(X).sum(axis=1)


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, pl.Series])
def test_weights_of_the_training_rows_reach_the_detector(kind: Any) -> None:
    weights = X[:, 0].copy()
    wrap = PACWrap(Weighing(), random_state=0).fit(X, Y, sample_weight=kind(weights), passes=3)
    np.testing.assert_array_equal(np.asarray(wrap.detector_.weight_), wrap.detector_.X_[:, 0])
    assert wrap.detector_.passes_ == 3


def test_weights_change_what_is_learned() -> None:
    weights = np.where(np.arange(600) % 2, 1.0, 1e-9)
    plain = PACWrap(LogisticRegression(), random_state=0).fit(X, Y)
    weighed = PACWrap(LogisticRegression(), random_state=0).fit(X, Y, sample_weight=weights)
    assert not np.allclose(plain.detector_.coef_, weighed.detector_.coef_)
    assert plain.certificate_.fnr.n == weighed.certificate_.fnr.n
    inside = PACWrap(make_pipeline(StandardScaler(), LogisticRegression()), random_state=0)
    inside.fit(X, Y, logisticregression__sample_weight=weights)
    assert inside.certificate_.fpr.n == 200


@pytest.mark.parametrize(
    ("detector", "reason"),
    [
        (
            KNeighborsClassifier(),
            "sample_weight, which the fit of KNeighborsClassifier does not take; remove it",
        ),
        (
            "precomputed",
            "fit was given sample_weight, but 'precomputed' is used as it is and not trained; remove it",
        ),
        (make_pipeline(LogisticRegression()), "cannot be trained on these rows: .*sample_weight"),
    ],
    ids=["none", "precomputed", "pipeline"],
)
def test_weights_that_nobody_takes_are_refused(detector: Any, reason: str) -> None:
    rows = X[:, 0] if isinstance(detector, str) else X
    with pytest.raises(InputError, match=reason):
        PACWrap(detector).fit(rows, Y, sample_weight=np.ones(600))


def test_metadata_is_routed_to_the_detector_and_to_the_split() -> None:
    weights, patients = X[:, 0].copy(), np.arange(600) // 3
    with sklearn.config_context(enable_metadata_routing=True):
        detector = Weighing().set_fit_request(sample_weight=True)
        wrap = PACWrap(detector, random_state=0).set_fit_request(units=True, groups=False)
        wrap.set_score_request(groups=False)  # they are those of the split, and no groups with own promises
        results = cross_validate(
            wrap,
            X,
            Y,
            cv=GroupKFold(3, shuffle=True, random_state=0),
            params={"sample_weight": weights, "units": patients, "groups": patients},
            return_estimator=True,
            error_score="raise",
        )
        for one in results["estimator"]:
            np.testing.assert_array_equal(one.detector_.weight_, one.detector_.X_[:, 0])
            assert one.certificate_.assumptions == of_units(False, False)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            PACWrap(Weighing()).fit(X, Y, sample_weight=weights)
        inside = make_pipeline(
            StandardScaler(), RandomForestClassifier(5).set_fit_request(sample_weight=True)
        )
        inside[0].set_fit_request(sample_weight=False)
        assert PACWrap(inside).fit(X, Y, sample_weight=np.ones(600)).certificate_.fpr.n == 200


def test_metadata_reaches_fit_without_routing_too() -> None:
    results = cross_validate(
        PACWrap(Weighing(), random_state=0),
        X,
        Y,
        cv=GroupKFold(3, shuffle=True, random_state=0),
        groups=np.arange(600) // 3,
        params={"units": np.arange(600) // 3},
        return_estimator=True,
    )
    assert all(one.certificate_.assumptions == of_units(False, False) for one in results["estimator"])


def test_what_is_not_trained_passes_nothing_on() -> None:
    assert "detector" not in dict(PACWrap("precomputed").get_metadata_routing())
    assert "detector" in dict(PACWrap(Weighing()).get_metadata_routing())
