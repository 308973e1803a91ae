"""What goes wrong without a sound unless it is told: too few labels, a swapped detector, lost scores."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from pac_wrap import (
    Certificate,
    CertificateError,
    Guarantee,
    InputError,
    PACWrap,
    Strategy,
    VacuousWarning,
    anomaly_scores,
    calibrate,
    calibrate_chunks,
    calibrate_labelled,
    evaluate,
)

RANDOM = np.random.default_rng(0)
X = np.r_[RANDOM.normal(0, 1, (400, 3)), RANDOM.normal(4, 1, (200, 3))]
Y = np.repeat([0, 1], [400, 200])
NORMAL, ANOMALOUS = RANDOM.normal(0, 1, 500), RANDOM.normal(3, 1, 500)


def test_too_few_labels_are_told_loudly() -> None:
    with pytest.warns(VacuousWarning, match="30 anomalous scores cannot certify FNR <= 0.05"):
        PACWrap(IsolationForest(random_state=0)).fit(X[:430], Y[:430])


def test_a_promise_that_can_be_kept_warns_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    PACWrap(IsolationForest(random_state=0)).fit(X, Y)
    assert not recwarn.list


def test_a_new_detector_is_the_one_that_is_calibrated() -> None:
    wrap = PACWrap(IsolationForest(random_state=0), random_state=0).fit(X, Y)
    other = LogisticRegression().fit(X[::2], Y[::2])
    wrap.set_params(detector=other).calibrate(X[1::2], Y[1::2])
    assert wrap.detector_ is other


def test_a_detector_that_loses_rows_is_refused_when_it_predicts() -> None:
    wrap = PACWrap(lambda rows: rows[:600, 0]).fit(X, Y)
    with pytest.raises(InputError, match="600 scores for 1,200 rows"):
        wrap.predict(np.r_[X, X])


def test_errors_of_the_detector_are_ours_too() -> None:
    wrap = PACWrap(IsolationForest(random_state=0).fit(X))
    with pytest.raises(InputError, match="cannot score these rows: X has 2 features"):
        wrap.calibrate(X[:, :2], Y)
    with pytest.raises(InputError, match="cannot be trained on these rows"):
        PACWrap(LogisticRegression()).fit(X, np.zeros(600))
    with pytest.raises(InputError, match="X must be a table"):
        PACWrap(IsolationForest()).fit(None, Y)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_label_is_no_normal_point(missing: Any) -> None:
    with pytest.raises(InputError, match=r"got (None|nan)"):
        calibrate_labelled(np.arange(4.0), ["bad", "bad", missing, missing], anomaly_label="bad")


def test_a_strategy_without_effect_is_refused() -> None:
    with pytest.raises(InputError, match="add abstain=False"):
        calibrate(NORMAL, ANOMALOUS, strategy="hold_fnr")
    with pytest.raises(InputError, match="abstain must be one of True, False"):
        calibrate(NORMAL, ANOMALOUS, abstain="no")  # type: ignore[arg-type]  # what a shell script might pass
    with pytest.raises(InputError, match="max_fpr is not an option of a strategy"):
        calibrate(NORMAL, ANOMALOUS, abstain=False, max_fpr=0.1)  # type: ignore[call-arg]  # a likely slip
    with pytest.raises(InputError, match="write Guarantee"):
        calibrate(NORMAL, ANOMALOUS, 0.05)  # type: ignore[arg-type]  # a likely slip


def test_a_strategy_object_is_as_good_as_its_name() -> None:
    by_name = calibrate(NORMAL, ANOMALOUS, abstain=False, strategy="relax", step=0.2)
    assert calibrate(NORMAL, ANOMALOUS, abstain=False, strategy=Strategy(step=0.2)) == by_name


def test_an_asked_ceiling_that_is_lost_makes_a_certificate_empty() -> None:
    certificate = calibrate(NORMAL, [], abstain=False, strategy="hold_fpr")
    assert certificate.empty
    assert "0 anomalous scores certify no FNR below 1" in str(certificate)
    assert not calibrate(NORMAL, ANOMALOUS, abstain=False, strategy="hold_fpr").empty


def test_zeros_stay_normal_where_the_processor_flushes_subnormal_numbers(
    flushing: Callable[[], None],
) -> None:
    zeros = np.zeros(1000)
    certificate = calibrate(zeros, np.ones(300), Guarantee(max_fnr=None))
    flushing()
    assert not certificate.verdicts(zeros).any()
    assert certificate.verdicts(np.ones(3)).all()


def test_thresholds_at_zero_mean_the_same_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    normal = np.r_[np.zeros(600), np.linspace(-1, -0.1, 400)]
    anomalous = np.r_[np.zeros(300), np.ones(700)]
    promise = Guarantee(0.2, 0.2)
    before = calibrate(normal, anomalous, promise)
    assert (before.thresholds.alarm_from, before.thresholds.clear_below) == (5e-324, 0.0)
    scores = np.resize([-1.0, -0.0, 0.0, 1.0], 2000)
    verdicts = before.verdicts(scores)
    assert verdicts[:4].tolist() == [0, -1, -1, 1]
    labelled = np.r_[normal, anomalous], np.repeat([0, 1], 1000)
    flushing()
    for scored in (scores, scores[:8], scores.astype(np.float32)):
        assert before.verdicts(scored).tolist() == verdicts[: scored.size].tolist()
    after = calibrate(normal, anomalous, promise)
    chunks = calibrate_chunks(lambda: [labelled], promise)
    assert after.normal.crossing == chunks.normal.crossing == before.normal.crossing == 600
    assert after.anomalous.crossing == chunks.anomalous.crossing == before.anomalous.crossing == 300
    with pytest.raises(CertificateError, match=r"thresholds.alarm_from is a subnormal number"):
        before.to_json()


def test_rounded_scores_are_decided_alike_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    normal = np.r_[np.zeros(600), np.linspace(-1, -0.1, 400)].astype(np.float32)
    anomalous = np.r_[np.zeros(300), np.ones(700)].astype(np.float32)
    certificate = calibrate(normal, anomalous, Guarantee(0.2, 0.2))
    # what float32 rounds to zero, and what it does not
    scores = np.resize([-1.0, -0.0, 0.0, 1.0, -1e-60, 1e-60, 2.0**-150, 2.0**-149], 2000)
    verdicts = certificate.verdicts(scores)
    assert verdicts[:8].tolist() == [0, -1, -1, 1, -1, -1, -1, 1]
    rule = certificate.rule
    flushing()
    assert certificate.rule == rule
    assert certificate.verdicts(scores).tolist() == verdicts.tolist()
    zeros = scores[:4].astype(np.float32)
    assert certificate.verdicts(np.tile(zeros, 500))[:4].tolist() == verdicts[:4].tolist()


def test_chunks_and_digests_are_the_same_where_the_processor_flushes_subnormal_numbers(
    flushing: Callable[[], None],
) -> None:
    scores = np.concatenate([np.linspace(-1, 1, 500), np.arange(-250, 250) * 5e-324])
    place = np.arange(1000)
    labels = (place % 500 > 150) & (place % 2 == 0)
    digest = calibrate_labelled(scores, labels).normal.digest
    flushing()
    whole = calibrate_labelled(scores, labels)
    chunks = calibrate_chunks(lambda: [(scores[:300], labels[:300]), (scores[300:], labels[300:])])
    assert whole.normal.digest == digest
    assert chunks.normal == whole.normal
    assert chunks.anomalous == whole.anomalous


def test_threads_do_not_switch_each_other_out_of_evaluation() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed (make deep)")
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 64), torch.nn.Dropout(0.5), torch.nn.Linear(64, 1)
    ).train()
    expected = anomaly_scores(module, X)
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.extend(anomaly_scores(module, X) for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(np.array_equal(scores, expected) for scores in found)
    assert module.training


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"levels": 10', '"levels": 1'),
        ('"level": 2', '"level": 99'),
        ('"delta_fnr": 0.05\n  },\n  "thresholds"', '"delta_fnr": 0.000001\n  },\n  "thresholds"'),
    ],
)
def test_a_resealed_promise_that_does_not_follow_is_refused(old: str, new: str) -> None:
    import json

    from pac_wrap.codec import _checksum

    rng = np.random.default_rng(1)
    text = calibrate(rng.normal(0, 1, 2000), rng.normal(2, 1, 2000), abstain=False).to_json()
    assert old in text
    content = json.loads(text.replace(old, new))
    del content["checksum"]
    with pytest.raises(CertificateError, match="contradicts itself: "):
        Certificate.from_json(json.dumps(content | {"checksum": _checksum(content)}))


def test_metrics_print_a_line_each() -> None:
    text = str(evaluate([0, 1, -1, 1], [0, 0, 0, 1]))
    assert [line.split()[0] for line in text.splitlines()][:3] == ["fpr", "fnr", "err"]
    assert "0.3333" in text
