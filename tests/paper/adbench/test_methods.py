"""Thresholds by hand on tiny scores, packages against what they are known to do, and what is measured."""

from collections.abc import Callable
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.metrics import balanced_accuracy_score

from pac_wrap import calibrate
from pac_wrap.method.promise import Guarantee
from pac_wrap_paper.adbench import methods
from pac_wrap_paper.adbench.methods import (
    FIELDS,
    METHODS,
    NOTHING,
    OURS,
    THEIRS,
    Division,
    Measuring,
    Setting,
    as_probability,
    divide,
    outcome,
)
from pac_wrap_paper.adbench.scoring import Scored, Scoring
from pac_wrap_paper.baselines import cpad
from pac_wrap_paper.data.store import results_of
from support.datafolder import empty_cache
from support.kept import kept as kept_by

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
RANDOM = np.random.default_rng(7)
SCORED = Scored(
    "cardio",
    "KNN",
    RANDOM.normal(0.1, 1, 300),
    np.sort(RANDOM.normal(0, 1, 700)),
    np.sort(RANDOM.normal(2, 1, 160)),
)


def division(
    normal: list[float], anomalous: list[float], train: list[float] | None = None, share: float = 0.2
) -> Division:
    one, other = np.array(normal), np.array(anomalous)
    return Division(one, other, one, other, np.array(train or [0.0]), share, lambda scores: scores)


def drawn(seed: int = 0, probability: Callable[[Floats], Floats] | None = None) -> Division:
    random = np.random.default_rng(seed)
    return divide(SCORED, random, 0.2, probability or as_probability(SCORED))


def test_contamination_is_pyods_threshold() -> None:
    knn = pytest.importorskip("pyod.models.knn")
    rows = RANDOM.normal(size=(100, 2))
    fitted = knn.KNN(contamination=0.1).fit(rows)
    given = division([0.0], [1.0], fitted.decision_scores_.tolist(), 0.02)
    setting = METHODS["contamination 0.1"](given)
    fresh = fitted.decision_function(RANDOM.normal(size=(500, 2)))
    assert np.array_equal(fresh >= setting.anomaly_from, fresh > fitted.threshold_)
    assert (setting.max_alarms, METHODS["contamination, true share"](given).max_alarms) == (0.1, 0.02)


def test_the_percentile_of_normals_is_set_up_for_five_percent() -> None:
    setting = METHODS["95th percentile of normals"](division([float(i) for i in range(101)], [200.0]))
    assert 95.0 < setting.anomaly_from < 95.1
    assert (setting.max_fpr, isnan(setting.max_fnr), isnan(setting.max_alarms)) == (0.05, True, True)


def test_the_greatest_f1_is_set_up_for_what_it_shows() -> None:
    setting = METHODS["greatest F1"](division([0.0, 1.0, 2.0], [1.5, 3.0, 4.0]))
    assert setting.anomaly_from == setting.normal_below == 1.5
    assert (setting.max_fpr, setting.max_fnr) == (1 / 3, 0.0)


def test_the_tuned_threshold_is_good_for_balanced_accuracy() -> None:
    given = drawn()
    setting = METHODS["TunedThresholdClassifierCV"](given)
    labels = np.repeat([0, 1], [given.normal.size, given.anomalous.size])
    scores = np.concatenate([given.normal, given.anomalous])

    def accuracy(threshold: float) -> float:
        return float(balanced_accuracy_score(labels, scores >= threshold))

    assert accuracy(setting.anomaly_from) > max(map(accuracy, np.linspace(-2, 4, 50))) - 0.05


def test_crepes_gives_the_rates_of_conformal_prediction() -> None:
    pytest.importorskip("crepes")
    for seed in range(3):
        given = drawn(seed)
        alarm, clear = (
            cpad(given.normal, given.anomalous, side).anomaly_from
            for side in (Guarantee(0.05, None), Guarantee(None, 0.05))
        )
        same = Setting(clear, alarm)
        assert outcome(METHODS["conformal (crepes)"](given), given)[:4] == outcome(same, given)[:4]


def test_crepes_with_too_few_anomalies_rules_nothing_out() -> None:
    pytest.importorskip("crepes")
    setting = METHODS["conformal (crepes)"](division([float(i) for i in range(50)], [60.0, 61.0]))
    assert setting.normal_below == -inf


def test_mapie_keeps_its_ceilings_on_the_points_it_calibrates_with_or_finds_nothing() -> None:
    pytest.importorskip("mapie")
    given = drawn()
    for name, place in (("MAPIE, FPR", "all FPR"), ("MAPIE, recall", "all FNR")):
        setting = METHODS[name](given)
        assert outcome(setting, given)[FIELDS.index(place)] <= 0.06
    assert METHODS["MAPIE, recall"](division([0.1, 0.2, 0.3], [0.5, 0.9])) == NOTHING


@pytest.mark.parametrize("overlap", ["abstain", "raise", "hold_fnr", "hold_fpr"])
def test_ours_are_what_calibrate_certifies(overlap: str) -> None:
    given = drawn()
    certificate = calibrate(given.normal, given.anomalous, overlap=overlap)
    setting = METHODS[overlap](given)
    assert (setting.normal_below, setting.anomaly_from) == (
        certificate.rule.normal_below,
        certificate.rule.anomaly_from,
    )
    assert kept_by(certificate) == Guarantee(setting.max_fpr, setting.max_fnr)


def test_the_curve_certifies_whatever_was_chosen() -> None:
    given = drawn()
    assert METHODS["curve at F1"](given).anomaly_from == METHODS["greatest F1"](given).anomaly_from
    assert METHODS["curve at F1"](given).max_fpr > METHODS["greatest F1"](given).max_fpr
    balanced = METHODS["curve"](given)
    assert balanced.max_fpr == pytest.approx(balanced.max_fnr, abs=0.05)


def test_too_few_labels_promise_nothing() -> None:
    few = division([float(i) for i in range(100)], [50.0, 60.0])
    assert METHODS["abstain"](few).max_fpr == 0.05
    assert isnan(METHODS["abstain"](few).max_fnr)
    tiny = division([0.0], [1.0])
    for name in ("raise", "curve"):
        setting = METHODS[name](tiny)
        assert isnan(setting.max_fpr) or setting.max_fpr > 0.9


def test_an_outcome_by_hand() -> None:
    given = Division(
        np.array([0.0, 5.0]),
        np.array([1.0, 9.0]),
        np.array([0.0, 1.0, 2.0, 8.0]),
        np.array([1.0, 7.0]),
        np.empty(0),
        0.5,
        lambda scores: scores,
    )
    two = dict(zip(FIELDS, outcome(Setting(1.5, 6.0, 0.05, 0.1), given), strict=True))
    assert (two["FPR"], two["FNR"], two["alarms"]) == (0.25, 0.5, 2 / 6)
    assert two["decided"] == 5 / 6  # all but the score 2
    assert (two["all FPR"], two["all FNR"]) == (1 / 6, 2 / 4)
    assert (two["max FPR"], two["max FNR"]) == (0.05, 0.1)
    # thresholds that cross say both of what lies between them
    crossed = dict(zip(FIELDS, outcome(Setting(7.5, 1.0), given), strict=True))
    assert (crossed["FPR"], crossed["FNR"]) == (0.75, 1.0)
    assert crossed["decided"] == 2 / 6  # 0 and 8
    nothing = dict(zip(FIELDS, outcome(NOTHING, given), strict=True))
    assert nothing["alarms"] == nothing["decided"] == nothing["FPR"] == 0.0
    assert isnan(nothing["max FPR"])


def test_a_division_takes_half_of_either_class() -> None:
    one, other, same = drawn(1), drawn(2), drawn(1)
    assert (one.normal.size, one.anomalous.size) == (350, 80)
    assert np.array_equal(np.sort(np.concatenate([one.normal, one.other_normal])), SCORED.normal)
    assert np.array_equal(np.sort(np.concatenate([one.anomalous, one.other_anomalous])), SCORED.anomalous)
    assert np.array_equal(one.normal, np.sort(one.normal))
    assert np.array_equal(one.normal, same.normal)
    assert not np.array_equal(one.normal, other.normal)


def test_probabilities_keep_the_order_of_scores() -> None:
    for detector in ("KNN", "boosting"):
        scored = Scored("cardio", detector, SCORED.train, SCORED.normal, SCORED.anomalous)
        found = as_probability(scored)(np.linspace(-5, 5, 40))
        assert (np.diff(found) >= 0).all()
        assert 0.0 <= found[0] <= found[-1] <= 1.0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Scoring, "result", lambda self, *files: SCORED)
    quick = {name: method for name, method in METHODS.items() if name in ("greatest F1", "abstain")}
    monkeypatch.setattr(methods, "METHODS", {**quick, "contamination 0.1": METHODS["contamination 0.1"]})
    monkeypatch.setattr(methods, "FEWER", {"greatest F1": 3})
    return empty_cache(tmp_path, monkeypatch)


def test_outcomes_are_kept_and_read_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mapie")
    one = Measuring(Scoring("cardio", "KNN", 0), 8)
    with parallel_config("sequential"):
        (first,) = results_of([one], lambda share, text: None, "dividing")
    assert (first.sizes, first.others) == ((350, 80), (350, 80))
    assert first.values["greatest F1"].shape == (3, len(FIELDS))
    assert first.values["abstain"].shape == (8, len(FIELDS))
    monkeypatch.setattr(Measuring, "_values", lambda self, scored: pytest.fail("measured again"))
    (again,) = results_of([one], lambda share, text: None, "dividing")
    for name, values in first.values.items():
        assert np.array_equal(values, again.values[name], equal_nan=True)
    assert Measuring(one.scoring, 9).files[0] != one.files[0]


def test_what_exceeds_is_what_lies_above_and_nothing_else(cache: Path) -> None:
    pytest.importorskip("mapie")
    found = Measuring(Scoring("cardio", "KNN", 0), 8).result()
    above = found.above("abstain", "FPR")
    assert np.array_equal(above, (found.of("abstain", "FPR") > 0.05).astype(float))
    assert np.isnan(found.above("abstain", "alarms")).all()
    # a division without a promise counts as kept
    found.values["abstain"][:2, FIELDS.index("max FPR")] = np.nan
    assert found.above("abstain", "FPR")[:2].tolist() == [0.0, 0.0]
    assert not np.isnan(found.above("abstain", "FNR", whole=True)).any()


def test_there_is_every_threshold_that_was_asked_for() -> None:
    assert not set(THEIRS) & set(OURS)
    assert len(OURS) == 6
    assert set(methods.FEWER) <= set(THEIRS)
