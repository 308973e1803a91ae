"""scikit-learn's own checks of an estimator, none of them expected to fail."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks

from pac_wrap import PACWrap

WRAPPED = [
    PACWrap(IsolationForest(n_estimators=3)),
    PACWrap(LogisticRegression()),
    PACWrap(make_pipeline(StandardScaler(), OneClassSVM())),
]


# the checks use a few rows of noise, many of them empty: rows repeat, and labels say nothing about scores
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.OverlapWarning")
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning")
@parametrize_with_checks(WRAPPED)  # type: ignore[untyped-decorator]  # untyped library
def test_scikit_learn_accepts_it(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
