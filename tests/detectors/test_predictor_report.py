"""A wrapped detector writes its own report, and measures it on rows that did not calibrate it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from pac_wrap import OverlapWarning, PACWrap
from pac_wrap.detectors.scores import UnfittedError
from support.strategies import refusal

RANDOM = np.random.default_rng(4)
X = np.r_[RANDOM.normal(0, 1, (1200, 3)), RANDOM.normal(4, 1, (200, 3))]
Y = np.repeat([0, 1], [1200, 200])
NEW = np.r_[RANDOM.normal(0, 1, (300, 3)), RANDOM.normal(4, 1, (60, 3))]
NEW_Y = np.repeat([0, 1], [300, 60])


@pytest.fixture(scope="module")
def wrap() -> PACWrap:
    return PACWrap(IsolationForest(random_state=0), random_state=0).fit(X, Y)


def test_a_report_measures_new_rows_beside_the_calibration(wrap: PACWrap, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    wrap.report(path, NEW, NEW_Y, prevalence=0.02)
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["title"] == "Error rates of IsolationForest"
    assert told["held_out"]["fnr"]["n"] == 60
    assert told["thresholds"] is not None
    assert told["practice"]["prevalence"] == [0.02, 0.02]
    assert told["digests"]["Normal scores"] == wrap.certificate_.fpr.digest
    wrap.report(path)
    assert json.loads(path.read_text(encoding="utf-8"))["held_out"] is None


def test_rows_that_calibrated_prove_nothing(tmp_path: Path) -> None:
    trained = IsolationForest(random_state=0).fit(X[:600])
    wrap = PACWrap(trained).calibrate(X[600:], Y[600:])
    path = tmp_path / "report.html"
    assert "these are the calibration rows themselves" in refusal(lambda: wrap.report(path, X[600:], Y[600:]))
    assert "y must be the labels of the rows X, got None" in refusal(lambda: wrap.report(path, NEW))
    assert not path.exists()
    with pytest.raises(UnfittedError, match="not calibrated yet"):
        PACWrap(trained).report(path)


@pytest.mark.parametrize("groups", [None, np.tile(["a", "b"], 800)])
def test_what_was_noted_stands_in_the_report(groups: Any, tmp_path: Path) -> None:
    twice, labels = np.r_[X, X[:200]], np.r_[Y, Y[:200]]
    wrap = PACWrap(IsolationForest(n_estimators=5, random_state=0), random_state=0, max_fpr=0.1, max_fnr=0.1)
    certificate = wrap.fit(twice, labels, groups=groups).certificate_
    (note,) = certificate.provenance.notes
    assert " ".join(str(certificate).split()).endswith(f" notes {note}")
    for name in ("report.md", "report.html"):
        wrap.report(tmp_path / name)
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert (
            "calibration rows equal a training row: this is harmless if future rows repeat as often" in text
        )
    if groups is None:
        with pytest.warns(OverlapWarning, match="held-out rows are also in the training data; .* measure on"):
            wrap.report(tmp_path / "report.json", X, Y)
