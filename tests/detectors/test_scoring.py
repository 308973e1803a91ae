"""Our own scorers, wherever scikit-learn takes a scorer."""

from typing import Any

import numpy as np
import pytest
from pyod.models.knn import KNN
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import pac_wrap.scoring
from pac_wrap import InputError, OverlapWarning, PACWrap, anomaly_scores
from pac_wrap.scoring import certified_ceiling_scorer, decided_share_scorer, ranking_scorer
from support.kept import kept

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, (400, 3)), RNG.normal(3, 1, (200, 3))]
Y = np.r_[np.zeros(400, dtype=int), np.ones(200, dtype=int)]
FOLDS = StratifiedKFold(3)


def distance(X: Any) -> Any:
    return np.linalg.norm(X, axis=1)


def test_every_name_is_a_scorer_that_scikit_learn_takes() -> None:
    wrap = PACWrap(distance, overlap="abstain_always")
    scoring = {name: getattr(pac_wrap.scoring, name) for name in pac_wrap.scoring.__all__}
    results = cross_validate(
        wrap, X, Y, cv=FOLDS, scoring=scoring, return_estimator=True, error_score="raise"
    )
    for place, (one, (_, test)) in enumerate(zip(results["estimator"], FOLDS.split(X, Y), strict=True)):
        verdicts = one.predict(X[test])
        assert results["test_decided_share_scorer"][place] == np.mean(verdicts != -1) < 1
        assert results["test_certified_ceiling_scorer"][place] == -0.05
        expected = roc_auc_score(Y[test], distance(X[test]))
        assert results["test_ranking_scorer"][place] == pytest.approx(expected)


def test_a_ceiling_that_was_raised_costs() -> None:
    asked: dict[str, Any] = {"max_fpr": 0.001, "max_fnr": 0.02}
    raised = PACWrap(distance, overlap="raise", **asked).fit(X, Y)
    certified = kept(raised.certificate_)
    assert certified is not None
    assert certified_ceiling_scorer(raised) == -max(certified.max_fpr or 0, certified.max_fnr or 0) < -0.02
    assert decided_share_scorer(raised, X) == 1.0


@pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
def test_of_groups_the_ceiling_is_that_of_the_worst() -> None:
    asked: dict[str, Any] = {"max_fpr": 0.001, "max_fnr": 0.02, "overlap": "raise"}
    groups = np.where(np.arange(600) % 3, "many", "few")
    wrap = PACWrap(distance, **asked).fit(X, Y, groups=groups)
    alone = [PACWrap(distance, **asked).fit(X[groups == name], Y[groups == name]) for name in ("many", "few")]
    ceilings = [certified_ceiling_scorer(one) for one in alone]
    assert -1 < ceilings[1] < ceilings[0]
    assert certified_ceiling_scorer(wrap) == ceilings[1]
    wrap = PACWrap(distance, **asked).fit(X, Y, groups=np.where(np.arange(600) < 5, "five", "the others"))
    assert certified_ceiling_scorer(wrap) == -1.0


@pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
def test_where_nothing_is_promised_an_error_rate_may_be_anything() -> None:
    wrap = PACWrap(distance).fit(X[380:410], Y[380:410])
    assert certified_ceiling_scorer(wrap) == -1.0
    assert decided_share_scorer(wrap, X) == 0.0
    one_side = PACWrap(distance, max_fnr=None, max_fpr=0.1).fit(X, Y)
    assert certified_ceiling_scorer(one_side) == -0.1


def test_pipelines_and_searches_are_looked_into() -> None:
    wrap = PACWrap(LogisticRegression(), random_state=0)
    pipeline = make_pipeline(Normalizer(), wrap).fit(X, Y)
    assert certified_ceiling_scorer(pipeline) == -0.05
    search = GridSearchCV(wrap, {"max_fpr": [0.05, 0.2]}, cv=FOLDS, scoring=certified_ceiling_scorer)
    with pytest.warns(OverlapWarning, match="GridSearchCV around PACWrap"):
        search.fit(X, Y)
    assert search.best_params_ == {"max_fpr": 0.05}
    assert decided_share_scorer(search, X) > 0.9
    assert ranking_scorer(search, X, Y) > 0.9


@pytest.mark.parametrize(
    "detector",
    [IsolationForest(random_state=0), LocalOutlierFactor(novelty=True), KNN(), LogisticRegression()],
    ids=lambda one: type(one).__name__,
)
def test_a_ranking_knows_in_which_direction_a_detector_points(detector: Any) -> None:
    fitted = detector.fit(X, Y) if isinstance(detector, LogisticRegression) else detector.fit(X[:400])
    found = ranking_scorer(fitted, X, Y)
    assert found == pytest.approx(roc_auc_score(Y, anomaly_scores(fitted, X)))
    assert found > 0.9


def test_a_ranking_follows_the_labels_of_the_wrapper() -> None:
    names = np.where(Y == 1, "broken", "fine")
    wrap = PACWrap(distance, anomaly_label="broken").fit(X, names)
    assert ranking_scorer(wrap, X, names) == pytest.approx(roc_auc_score(Y, distance(X)))


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(InputError, match="needs a PACWrap, got IsolationForest, which has no certificate"):
        decided_share_scorer(IsolationForest().fit(X), X)
    with pytest.raises(InputError, match="needs rows of both classes, got 0 anomalous of 400; keep both"):
        ranking_scorer(IsolationForest().fit(X), X[:400], Y[:400])
