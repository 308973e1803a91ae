"""PACWrap with groups: one detector, and a promise for each group."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pac_wrap import GroupCertificate, InputError, OverlapWarning, PACWrap, VacuousWarning, calibrate_labelled


@pytest.fixture
def rows() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.4).astype(int)
    tenant = rng.choice(["a", "b"], 4000)
    X = pd.DataFrame({"one": rng.normal(3 * y, 1), "tenant": tenant, "two": rng.normal(3 * y, 1)})
    return X, y


def wrapped(**options: Any) -> PACWrap:
    return PACWrap(LogisticRegression(), max_fpr=0.1, max_fnr=0.1, random_state=0, **options)


def test_a_column_of_the_frame_is_the_group_and_no_feature(rows: tuple[pd.DataFrame, Any]) -> None:
    X, y = rows
    wrap = wrapped(together=True).fit(X, y, groups="tenant")
    assert isinstance(wrap.certificate_, GroupCertificate)
    assert wrap.certificate_.groups == ("a", "b")
    assert wrap.certificate_.together
    assert list(wrap.detector_.feature_names_in_) == ["one", "two"]
    verdicts = wrap.predict(X)
    plain = X.drop(columns="tenant")
    scores = wrap.decision_function(plain)
    assert (scores == wrap.decision_function(X)).all()
    assert (verdicts == wrap.certificate_.verdicts(scores, X["tenant"])).all()
    assert (wrap.predict(plain, groups=X["tenant"]) == verdicts).all()
    assert (wrap.predict(pl.from_pandas(X)) == verdicts).all()
    assert wrap.score(X, y) > 0.9
    assert wrap.predict_set(X).shape == (4000, 2)
    sets = wrap.predict_set(X)
    assert (sets[verdicts == 1] == [False, True]).all()
    assert (wrap.predict(X.assign(tenant="new")) == -1).all()


def test_groups_beside_the_rows_are_those_of_the_rows_that_calibrate(rows: tuple[pd.DataFrame, Any]) -> None:
    X, y = rows
    # a frame as well: the last digit of a score may depend on how rows lie in memory
    plain, tenant = X[["one", "two"]], X["tenant"].tolist()
    for groups in (tenant, np.array(tenant), pd.Series(tenant)):
        wrap = wrapped().fit(plain, y, groups=groups)
        assert wrap.certificate_ == wrapped().fit(X, y, groups="tenant").certificate_
    detector = wrap.detector_
    again = PACWrap(detector, max_fpr=0.1, max_fnr=0.1).calibrate(plain, y, groups=tenant)
    assert again.certificate_.columns.n.sum() == 4000
    scores = again.decision_function(plain)
    assert again.certificate_ == calibrate_labelled(scores, y, again._request(), by=tenant)
    assert again.certificate_.verify(scores, y, tenant)
    # without groups it is one certificate again
    assert not isinstance(again.calibrate(plain, y).certificate_, GroupCertificate)


def test_a_report_draws_the_groups_and_measures_new_rows(
    rows: tuple[pd.DataFrame, Any], tmp_path: Path
) -> None:
    X, y = rows
    held = X[:2000].drop(columns="tenant"), y[:2000], X["tenant"][:2000]
    wrap = wrapped().fit(X[2000:], y[2000:], groups="tenant")
    path = tmp_path / "report.json"
    wrap.report(path)
    told = json.loads(path.read_text(encoding="utf-8"))
    assert told["title"] == "Error rates of LogisticRegression, by group"
    assert told["measured"] is None
    wrap.report(path, *held[:2], groups=held[2])
    told = json.loads(path.read_text(encoding="utf-8"))
    counted = {row["Group"]: row["Points"] for row in told["measured"]["rows"]}
    assert counted == {repr(name): f"{(held[2] == name).sum():,}" for name in ("a", "b")}
    # the column of groups may stand in the rows as well
    again = tmp_path / "again.json"
    wrap.report(again, X[:2000], y[:2000])
    assert json.loads(again.read_text(encoding="utf-8"))["measured"] == told["measured"]
    page = tmp_path / "report.html"
    wrap.report(page, X[:2000], y[:2000])
    text = page.read_text(encoding="utf-8")
    assert "Measured on held-out points" in text
    assert text.count("<figure") > 1  # the groups are drawn, so the scores that calibrated were kept
    trained = wrapped().fit(X[:2000], y[:2000], groups="tenant").detector_
    calibrated = PACWrap(trained, max_fpr=0.1, max_fnr=0.1).calibrate(X[2000:], y[2000:], groups="tenant")
    with pytest.raises(InputError, match="these are the calibration rows themselves"):
        calibrated.report(page, X[2000:], y[2000:])


def test_groups_are_routed(rows: tuple[pd.DataFrame, Any]) -> None:
    X, y = rows
    plain, tenant = X[["one", "two"]], X["tenant"].to_numpy()
    with sklearn.config_context(enable_metadata_routing=True):
        wrap = wrapped().set_fit_request(groups=True).set_predict_request(groups=True)
        wrap.detector.set_fit_request(sample_weight=False)
        pipe = make_pipeline(StandardScaler(), wrap)
        with pytest.warns(OverlapWarning):
            pipe.fit(plain, y, groups=tenant)
        assert isinstance(pipe[-1].certificate_, GroupCertificate)
        assert pipe.predict(plain, groups=tenant).shape == (4000,)


def test_groups_with_too_few_labels_are_said(rows: tuple[pd.DataFrame, Any]) -> None:
    X, y = rows
    X.loc[:30, "tenant"] = "tiny"
    with pytest.warns(VacuousWarning, match="too few labels in 1 of 3 groups, such as 'tiny'"):
        wrapped().fit(X, y, groups="tenant")


def test_what_does_not_fit_is_refused(rows: tuple[pd.DataFrame, Any]) -> None:
    X, y = rows
    plain = X[["one", "two"]]
    with pytest.raises(InputError, match="X has no column 'tenat'"):
        wrapped().fit(X, y, groups="tenat")
    with pytest.raises(InputError, match="pass a data frame"):
        wrapped().fit(plain.to_numpy(), y, groups="tenant")
    with pytest.raises(InputError, match="same length"):
        wrapped().fit(plain.to_numpy(), y, groups=["a"])
    wrap = wrapped().fit(plain, y, groups=X["tenant"])
    with pytest.raises(InputError, match="pass the group of each row"):
        wrap.predict(plain)
    with pytest.raises(InputError, match="takes no prevalence"):
        wrap.report("report.html", prevalence=0.1)
    with pytest.raises(InputError, match="pass the group of each row"):
        wrap.report("report.html", plain, y)
    with pytest.raises(InputError, match="calibrated without groups"):
        wrapped().fit(plain, y).predict(plain, groups=X["tenant"])
    with pytest.raises(InputError, match="pool needs overlap="):
        wrapped(pool=True, overlap="raise").fit(plain, y)
