"""What PACWrap refuses, what it warns of, and that a refusal leaves the last good state."""

from typing import Any, Self

import numpy as np
import pytest
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pac_wrap import Algorithm1, DetectorError, InputError, LabelWarning, PACWrap, UpsideDownWarning

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(4, 1, (200, 3))]
Y = np.r_[np.zeros(400, dtype=int), np.ones(200, dtype=int)]


def distance(X: Any) -> Any:
    return np.linalg.norm(X, axis=1)


def forest() -> IsolationForest:
    return IsolationForest(n_estimators=10, random_state=0)


class Untouchable(OutlierMixin, BaseEstimator):
    """Fails the test if it is trained or asked."""

    def fit(self, X: Any, y: Any = None) -> Self:
        raise AssertionError("trained in spite of a bad argument")

    def score_samples(self, X: Any) -> Any:
        raise AssertionError("asked in spite of a bad argument")


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("max_fpr", 0.0, "max_fpr must lie strictly between 0 and 1, got 0.0"),
        ("max_fpr", 5, "write five percent as 0.05"),
        ("max_fnr", 1.0, "max_fnr must lie strictly between 0 and 1"),
        ("max_fnr", np.nan, "max_fnr must lie strictly"),
        ("max_fnr", "0.05", "max_fnr must lie strictly"),
        ("delta_fpr", 0, "delta_fpr must lie strictly"),
        ("delta_fnr", True, "delta_fnr must lie strictly"),
        ("confidence", 1.0, "confidence must lie strictly between 0 and 1, got 1.0"),
        ("confidence", 95, "confidence must lie strictly"),
        ("confidence", "0.95", "confidence must lie strictly"),
        (
            "overlap",
            "no",
            "overlap must be one of 'abstain', 'abstain_always', 'raise', 'hold_fnr', .* got 'no'",
        ),
        ("overlap", 1, "overlap must be one of"),
        ("overlap", "hold", "overlap must be one of .*; got 'hold'"),
        ("overlap", Algorithm1, "overlap must be one of .*, or a strategy such as"),
        ("train_on", "all", "train_on must be one of 'auto', 'normal', 'unlabelled', 'labelled'"),
        ("train_on", None, "train_on must be one of"),
        ("calibration_size", 0, "calibration_size must lie strictly"),
        ("calibration_size", 100, "calibration_size must lie strictly"),
        ("calibration_size", "half", "calibration_size must be \"auto\" or a share such as 0.5, got 'half'"),
        ("polarity", "down", "polarity must be one of"),
        ("score_tolerance", -1e-9, "score_tolerance must be a number, 0 or more, got -1e-09; 1e-05 is"),
        ("score_tolerance", np.nan, "score_tolerance must be a number"),
        ("score_tolerance", np.inf, "got inf; .* None compares no scores"),
        ("score_tolerance", True, "score_tolerance must be a number"),
        ("score_tolerance", "none", "score_tolerance must be a number"),
    ],
)
def test_bad_parameters_are_refused_before_training(name: str, value: object, reason: str) -> None:
    wrap = PACWrap(Untouchable()).set_params(**{name: value})
    for method in (wrap.fit, wrap.calibrate):
        with pytest.raises(InputError, match=reason):
            method(X, Y)
    assert getattr(wrap, name) is value


@pytest.mark.parametrize(
    "deltas", [{"delta_fpr": 0.05}, {"delta_fnr": 0.1}, {"delta_fpr": 0.1, "delta_fnr": 0.1}]
)
def test_a_confidence_together_with_a_delta_is_refused_before_training(deltas: dict[str, float]) -> None:
    wrap = PACWrap(Untouchable(), confidence=0.95).set_params(**deltas)
    for method in (wrap.fit, wrap.calibrate):
        with pytest.raises(InputError, match="give either confidence or deltas"):
            method(X, Y)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("step", 0, "step must lie strictly"),
        ("step", 1e-9, "step must be at least"),
        ("growth", "triple", "growth must be one of"),
        ("raised", "none", "raised must be one of"),
        ("relax_delta", 0, "relax_delta must be one of"),
        ("correction", "bonferroni", "correction must be one of"),
        ("position", 2.0, "position must lie between 0"),
    ],
)
def test_bad_options_of_a_strategy_are_refused_where_it_is_made(
    name: str, value: object, reason: str
) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(InputError, match=reason):
        PACWrap(Untouchable(), overlap=Algorithm1(**options))


def test_promising_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="both none; promise at least one"):
        PACWrap(Untouchable(), max_fpr=None, max_fnr=None).fit(X, Y)


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (None, "."),
        (Y[:-1], "X and y do not fit together: .*600, 599"),
        (np.where(Y == 1, 2, 0), r"y must be 0 \(normal\) or 1 \(anomalous\), got 2"),
        (np.where(Y == 1, -1, 1), "got -1; recode them, or name the label"),
        (np.where(Y == 1, 0, -1), "got -1"),
        (np.where(Y == 1, "anomaly", "normal"), "got 'normal'"),
        (np.arange(600) % 3, "got 2"),
        (np.where(Y == 1, np.nan, 0.0), "got nan"),
        (Y + 1.5, "got 1.5"),
        (Y[:, None], r"one-dimensional, one label per point, got shape \(600, 1\)"),
        (Y + 1j, "Complex data not supported"),
    ],
    ids=["None", "short", "0/2", "+1/-1", "-1/0", "text", "three", "NaN", "fractions", "column", "complex"],
)
def test_labels_that_are_not_zero_and_one_are_refused(labels: Any, reason: str) -> None:
    wrap = PACWrap(Untouchable())
    for method in (wrap.fit, wrap.calibrate):
        with pytest.raises(InputError, match=reason):
            method(X, labels)
    with pytest.raises(InputError, match=reason):
        PACWrap(distance).fit(X, Y).score(X, labels)


def test_fit_without_labels_says_that_they_are_needed() -> None:
    with pytest.raises(InputError, match="requires y to be passed, but the target y is None"):
        PACWrap(Untouchable()).fit(X, None)


@pytest.mark.parametrize(
    ("normal", "anomaly_label", "other"), [(1, -1, 0), ("good", "bad", "worse"), (0, 1, 2)]
)
def test_a_third_label_is_refused_whatever_the_names(
    normal: object, anomaly_label: object, other: object
) -> None:
    labels = np.array([anomaly_label, normal, other] * 200)
    with pytest.raises(InputError, match="y must be"):
        PACWrap(Untouchable(), anomaly_label=anomaly_label).fit(X, labels)


@pytest.mark.parametrize("low", [1, 2, 10])
def test_consecutive_numbers_pass_with_a_warning_that_names_them(low: int) -> None:
    labels = Y + low
    with pytest.warns(
        LabelWarning, match=f"y holds {low} and {low + 1}; {low + 1} is taken for the anomalies"
    ):
        wrap = PACWrap(distance).fit(X, labels)
    assert wrap.certificate_ == PACWrap(distance).fit(X, Y).certificate_
    with pytest.warns(LabelWarning, match=f"anomaly_label={low + 1}"):
        wrap.calibrate(X, labels)
    silent = PACWrap(distance, anomaly_label=low + 1).fit(X, labels)
    assert silent.certificate_ == wrap.certificate_


def test_upside_down_scores_are_warned_of_and_can_be_flipped() -> None:
    with pytest.warns(UpsideDownWarning, match='AUC 0.0.*polarity="lower"'):
        wrap = PACWrap(lambda X: -distance(X)).fit(X, Y)
    assert wrap.score(X, Y) < 0.5
    flipped = PACWrap(lambda X: -distance(X), polarity="lower").fit(X, Y)
    assert flipped.certificate_ == PACWrap(distance).fit(X, Y).certificate_


@pytest.mark.parametrize("width", [2, 4])
def test_another_number_of_features_is_refused(width: int) -> None:
    wrap = PACWrap(forest(), random_state=0).fit(X, Y)
    other = RNG.normal(size=(600, width))
    message = f"X has {width} features, but IsolationForest is expecting 3 features"
    for method in ("predict", "predict_set", "decision_function", "score_samples"):
        with pytest.raises(InputError, match=message):
            getattr(wrap, method)(other)
    for method in ("calibrate", "score"):
        with pytest.raises(InputError, match=message):
            getattr(wrap, method)(other, Y)
    assert wrap.n_features_in_ == 3


def test_fitting_again_accepts_other_features() -> None:
    wrap = PACWrap(forest(), random_state=0).fit(X, Y).fit(X[:, :2], Y)
    assert wrap.n_features_in_ == 2
    assert wrap.predict(X[:, :2]).shape == (600,)


@pytest.mark.parametrize(
    ("detector", "reason"),
    [
        (LocalOutlierFactor(), "novelty=True"),
        (make_pipeline(StandardScaler(), LocalOutlierFactor()), "fit LocalOutlierFactor with novelty=True"),
        (LinearRegression(), "LinearRegression gives no scores"),
        (IsolationForest, "not an object"),
        (None, "gives no scores"),
        ("calculated", "gives no scores"),
    ],
    ids=["LOF", "LOF in a pipeline", "regressor", "class", "None", "text"],
)
def test_detectors_without_scores_are_refused(detector: Any, reason: str) -> None:
    with pytest.raises(DetectorError, match=reason):
        PACWrap(detector).fit(X, Y)


def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="scores of <lambda> must not contain NaN, got 600 of 600"):
        PACWrap(lambda X: np.full(len(X), np.nan)).fit(X, Y)


@pytest.mark.parametrize("count", [599, 601, 1])
def test_a_function_must_return_one_score_per_row(count: int) -> None:
    with pytest.raises(InputError, match="600"):
        PACWrap(lambda X: np.zeros(count)).fit(X, Y)


def broken(rows: Any) -> Any:
    rows = rows.copy()
    rows[0, 0] = np.nan
    return rows


@pytest.mark.parametrize("anomaly_label", [1, -1, 0])
def test_a_failed_fit_leaves_the_last_one_working(anomaly_label: int) -> None:
    labels = np.where(Y == 1, anomaly_label, int(anomaly_label != 1))
    wrap = PACWrap(LogisticRegression(), anomaly_label=anomaly_label, random_state=0).fit(X, labels)
    before = wrap.predict(X)
    assert np.mean(before == Y) > 0.8
    # whichever row is spoiled, LogisticRegression refuses it, in training or in calibration
    with pytest.raises(ValueError, match="NaN"):
        wrap.fit(broken(X), labels)
    np.testing.assert_array_equal(wrap.predict(X), before)


def test_a_failed_fit_on_other_features_leaves_the_last_one_working() -> None:
    wrap = PACWrap(LogisticRegression(), random_state=0).fit(X, Y)
    before = wrap.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        wrap.fit(broken(X[:, :2]), Y)
    assert wrap.n_features_in_ == 3
    np.testing.assert_array_equal(wrap.predict(X), before)


def test_a_failed_first_fit_leaves_nothing_behind() -> None:
    wrap = PACWrap(LocalOutlierFactor(), random_state=0)
    with pytest.raises(DetectorError, match="novelty=True"):
        wrap.fit(X, Y)
    with pytest.raises(DetectorError, match="novelty=True"):
        wrap.calibrate(X, Y)


def test_a_failed_calibration_leaves_the_last_one_working() -> None:
    wrap = PACWrap(forest(), random_state=0).fit(X, Y)
    before, certificate = wrap.predict(X), wrap.certificate_
    for labels in (Y[:-1], Y * 2, None):
        with pytest.raises(InputError):
            wrap.calibrate(X, labels)
    assert wrap.certificate_ is certificate
    np.testing.assert_array_equal(wrap.predict(X), before)


def test_no_rows_are_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        PACWrap(distance).fit(X[:0], Y[:0])
    with pytest.raises(InputError, match="n_samples = 0"):
        PACWrap(forest()).fit(X[:0], Y[:0])
