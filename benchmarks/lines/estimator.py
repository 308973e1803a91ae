"""`PACWrap.predict` beside the scoring of the detector that it wraps."""

import statistics
import time
import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from benchmarks.record import Aim, Measure, Result, Role
from benchmarks.timing import Action, Scale, compare
from pac_wrap import PACWrap

AIM = Aim("<=", 1.02)
FEATURES, TRAINING = 8, 2000
ABOUT = """\
An isolation forest with {trees} trees on {features} features. The limit is its own `score_samples` on the
same rows; its own `predict` (scores and a threshold from `contamination`, which promises nothing) is the
peer. The aim is on the ratio, which compares two long runs and so moves with every busy moment by more than
the aim allows; the share of a `predict` call that lies outside the forest, clocked within that call, is
beside it, without an aim."""


def measure(scale: Scale) -> Result:
    """Return the timing on many rows."""
    size = scale.pick(200, 10**5, 10**5)
    random = np.random.default_rng(0)
    X = np.r_[random.normal(0, 1, (TRAINING, FEATURES)), random.normal(4, 1, (TRAINING, FEATURES))]
    y = np.repeat([0, 1], TRAINING)
    trees = scale.pick(5, 100, 100)
    wrap = PACWrap(IsolationForest(n_estimators=trees, random_state=0), random_state=0).fit(X, y)
    rows = random.normal(1, 2, (size, FEATURES))
    methods: dict[str, tuple[Role, Action]] = {
        "`PACWrap.predict`": ("ours", partial(wrap.predict, rows)),
        "`IsolationForest.score_samples`": ("limit", partial(wrap.detector_.score_samples, rows)),
        "`IsolationForest.predict`": ("peer", partial(wrap.detector_.predict, rows)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compared = compare("float64", size, methods, scale, aim=AIM, longer=10.0)
    outside = Measure(
        "`PACWrap.predict`", "share of the call outside the forest", _outside(wrap, rows, scale), ""
    )
    about = ABOUT.format(features=FEATURES, trees=trees)
    title = "PACWrap over an isolation forest"
    return Result("estimator", title, about, scale.name, (compared,), measures=(outside,))


def _outside(wrap: PACWrap, rows: NDArray[np.float64], scale: Scale) -> float:
    """Return the median share of a predict call that is not spent in the detector's scoring."""
    score, inside = wrap.detector_.score_samples, [0.0]

    def clocked(X: NDArray[np.float64]) -> NDArray[np.float64]:
        start = time.perf_counter()
        scores: NDArray[np.float64] = score(X)
        inside[0] = time.perf_counter() - start
        return scores

    shares = []
    with patch.object(wrap.detector_, "score_samples", clocked):
        for _ in range(scale.rounds):
            start = time.perf_counter()
            wrap.predict(rows)
            whole = time.perf_counter() - start
            shares.append((whole - inside[0]) / whole)
    return statistics.median(shares)
