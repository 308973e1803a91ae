"""scikit-learn's own checks of the wrapper around classifiers, none of them expected to fail."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from pac_wrap import PACClassifier

WRAPPED = [
    PACClassifier(LogisticRegression()),
    PACClassifier(RandomForestClassifier(n_estimators=2)),
]


# the checks use a few rows of noise: too few for any promise, and some of them the same
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.OverlapWarning")
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
@parametrize_with_checks(WRAPPED)  # type: ignore[untyped-decorator]  # untyped library
def test_scikit_learn_accepts_it(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
