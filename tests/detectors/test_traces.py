"""Traces show at a glance that a detector may have changed, and are quiet as long as it is only asked."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from pac_wrap.detectors.safety import traces

X = np.random.default_rng(0).normal(size=(50, 3))


def quiet(before: dict[tuple[int, str], int], detector: Any) -> bool:
    """Return whether a detector still shows the traces it showed before."""
    return before.items() <= traces(detector).items()


def zero(detector: Any, X: Any, y: Any = None) -> float:
    return 0.0


def forest() -> IsolationForest:
    return IsolationForest(n_estimators=3).fit(X)


def uses(model: Any) -> Callable[[Any], Any]:
    def inner(X: Any) -> Any:
        return model.score_samples(X)

    return lambda X: inner(X)


DETECTORS: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "estimator": (lambda model: model, forest),
    "frozen": (FrozenEstimator, forest),
    "method": (lambda model: model.score_samples, forest),
    "partial": (lambda model: partial(model.score_samples), forest),
    "closure": (uses, forest),
    "search": (
        lambda model: model,
        lambda: GridSearchCV(OneClassSVM(), {"nu": [0.1]}, scoring=zero, cv=2).fit(X),
    ),
    "pipeline": (lambda model: model, lambda: make_pipeline(StandardScaler(), OneClassSVM()).fit(X)),
}


@pytest.mark.parametrize("name", DETECTORS)
def test_training_leaves_a_trace_and_scoring_none(name: str) -> None:
    wrapped, make = DETECTORS[name]
    model = make()
    detector = wrapped(model)
    before = traces(detector)
    model.score_samples(X)
    assert quiet(before, detector)
    model.fit(X)
    assert not quiet(before, detector)
    assert quiet(traces(detector), detector)


def test_another_detector_is_another_one() -> None:
    model = forest()
    assert not quiet(traces(model), forest())


def test_what_scoring_changes_is_forgotten() -> None:
    class Counting:
        calls, limit = 0, 5

        def __call__(self, X: Any) -> Any:
            self.calls += 1000
            return X

    counting = Counting()
    counting(X)
    counting.limit = 5000
    before = traces(counting)
    counting(X)
    assert not quiet(before, counting)
    kept = dict(before.items() & traces(counting).items())
    counting(X)
    assert quiet(kept, counting)
    counting.limit = 6000
    assert not quiet(kept, counting)


def test_functions_that_call_each_other_and_unbound_names_come_to_an_end() -> None:
    def odd(X: Any) -> Any:
        return even(X)

    def even(X: Any) -> Any:
        return odd(X)

    assert quiet(traces(odd), odd)

    def early(X: Any) -> Any:
        return later(X)

    assert quiet(traces(early), early)

    def later(X: Any) -> Any:
        return X


def test_what_has_no_attributes_leaves_no_trace() -> None:
    for detector in (len, np.linalg.norm, object(), "precomputed", np.add):
        assert quiet(traces(detector), detector)
