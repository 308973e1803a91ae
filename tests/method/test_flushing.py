"""Thresholds, verdicts, counts and digests are the same where the processor flushes subnormal numbers."""

from collections.abc import Callable
from math import inf

import numpy as np
import pytest

from pac_wrap import CertificateError, Guarantee, Rule, calibrate, calibrate_chunks, calibrate_labelled
from pac_wrap.method.rule import Thresholds


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
    assert after.regime is chunks.regime is before.regime
    assert after.verdicts(scores).tolist() == chunks.verdicts(scores).tolist() == verdicts.tolist()
    assert after.fpr.beyond == chunks.fpr.beyond == before.fpr.beyond == 600
    assert after.fnr.beyond == chunks.fnr.beyond == before.fnr.beyond == 300
    with pytest.raises(CertificateError, match=r"rule.anomaly_from is a subnormal number"):
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
    digest = calibrate_labelled(scores, labels).fpr.digest
    flushing()
    whole = calibrate_labelled(scores, labels)
    chunks = calibrate_chunks(lambda: [(scores[:300], labels[:300]), (scores[300:], labels[300:])])
    assert whole.fpr.digest == digest
    assert chunks.fpr == whole.fpr
    assert chunks.fnr == whole.fnr


def test_predictors_and_sets_are_the_same_where_the_processor_flushes(flushing: Callable[[], None]) -> None:
    scores = np.array([-1.0, -5e-324, -0.0, 0.0, 5e-324, 1e-310, 1.0])
    pairs = [Thresholds(alarm, clear) for alarm in (0.0, 5e-324, inf) for clear in (-inf, 0.0, 5e-324)]

    def said() -> list[object]:
        answers = [(pair.y_fp(scores), pair.y_fn(scores), pair.prediction_sets(scores)) for pair in pairs]
        return [pair.separated for pair in pairs] + [[one.tolist() for one in three] for three in answers]

    before = said()
    flushing()
    assert said() == before


def test_a_rule_that_was_used_before_decides_alike_where_the_processor_flushes(
    flushing: Callable[[], None],
) -> None:
    scores = np.array([-1.0, -0.0, 0.0, 1.0])
    rules = [Rule(0.0, 5e-324), Rule(0.0, 0.0), Rule(5e-324, 5e-324), Rule(-1.0, 0.0)]
    before = [(rule.single, rule.verdicts(scores).tolist()) for rule in rules]
    flushing()
    assert [(rule.single, rule.verdicts(scores).tolist()) for rule in rules] == before
    assert [rule.verdicts(np.tile(scores, 200))[:4].tolist() for rule in rules] == [
        pair[1] for pair in before
    ]
