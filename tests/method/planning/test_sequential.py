"""Labels added until a promise is kept: when it looks, when it stops, and what it then says."""

import pickle
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap import Certificate, Guarantee, InputError, LabelUntil, Regime, UpsideDownWarning
from pac_wrap.method.planning.sequential import PerClass
from pac_wrap.method.rule import Rule, Thresholds
from support.kept import kept as kept_by

RNG = np.random.default_rng(14)
Floats = NDArray[np.float64]
FNR = Guarantee(max_fpr=None, max_fnr=0.05)


def needs_more(until: LabelUntil) -> bool:
    return not until.done


def far(n: int, share: float = 0.5) -> tuple[Floats, NDArray[np.int64]]:
    """Return scores of classes that never overlap, in random order."""
    labels = (RNG.random(n) < share).astype(int)
    return labels + 0.5 * RNG.random(n), labels


def test_success_comes_at_the_first_look_that_has_both_budgets() -> None:
    until = LabelUntil()
    normal, anomalous = RNG.random(200), 2.0 + RNG.random(200)
    assert until.add(anomalous, np.ones(200, dtype=int)) == 200
    assert needs_more(until)
    assert until.add(normal[:99], np.zeros(99, dtype=int)) == 99
    assert needs_more(until)
    # the local delta .0074 has its first budget at 97 labels, so at the look of 100
    assert until.add(normal[99:], np.zeros(101, dtype=int)) == 1
    assert until.done
    assert until.success
    assert until.labels == PerClass(100, 200)
    certificate = until.certificate
    assert certificate is not None
    assert (certificate.fpr.n, certificate.fnr.n) == (100, 200)
    assert certificate.regime is Regime.SEPARATED
    assert certificate.rule.single
    assert kept_by(certificate) == certificate.guarantee == Guarantee()


def in_batches(scores: Floats, labels: NDArray[np.int64], sizes: list[int], **options: float) -> LabelUntil:
    until, start = LabelUntil(Guarantee(0.2, 0.2), every=7, up_to=70, **options), 0
    for size in [*sizes, len(scores)]:
        if until.done:
            break
        until.add(scores[start : start + size], labels[start : start + size])
        start += size
    return until


@given(
    st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=160),
    st.lists(st.integers(0, 40), max_size=10),
    st.sampled_from([None, 6.0]),
)
def test_batches_are_taken_point_by_point(
    points: list[tuple[int, bool]], sizes: list[int], threshold: float | None
) -> None:
    labels = np.array([label for _, label in points], dtype=int)
    scores = np.array([score for score, _ in points], dtype=float) + 4.0 * labels
    options = {} if threshold is None else {"threshold": threshold}
    one, many = (in_batches(scores, labels, them, **options) for them in ([1] * len(points), sizes))
    assert (one.labels, one.done, one.success) == (many.labels, many.done, many.success)
    assert one.certificate == many.certificate
    assert str(one) == str(many)


def test_what_follows_an_end_without_success_in_the_same_batch_does_not_count() -> None:
    labels = np.array([0] * 70 + [1] * 30)
    one, many = (in_batches(np.ones(100), labels, sizes, threshold=0.5) for sizes in ([100], [70]))
    assert one.done
    assert not one.success
    assert one.labels == many.labels == PerClass(normal=70, anomalous=0)
    assert one.certificate == many.certificate


@pytest.mark.parametrize("sizes", [[80, 10], [60, 20, 10], [1] * 90])
def test_labels_of_a_class_beyond_its_last_look_are_not_taken(sizes: list[int]) -> None:
    labels = np.array([0] * 80 + [1] * 80)
    until = in_batches(np.arange(160.0), labels, sizes)
    assert until.labels == PerClass(normal=70, anomalous=21)
    assert until.certificate == in_batches(np.r_[:70.0, 80.0:160.0], labels[10:], [1] * 150).certificate


def test_a_refused_batch_leaves_everything_as_it_was() -> None:
    until = LabelUntil(anomaly_label="fault")
    until.add([0.1, 0.9], ["ok", "fault"])
    before = pickle.dumps(until)
    for scores, labels, message in (
        ([0.1, nan], ["ok", "ok"], "scores must not contain NaN, got 1 of 2"),
        ([0.1], ["ok", "ok"], "scores and labels must have the same length, got 1 and 2"),
        ([0.1, 0.2], ["fine", "fine"], "labels of this batch must be 'fault'"),
        ([[0.1]], ["ok"], "scores must be one-dimensional"),
        (["x"], ["ok"], "scores must be real numbers"),
    ):
        with pytest.raises(InputError, match=message):
            until.add(scores, labels)
        assert pickle.dumps(until) == before
    until = LabelUntil()
    with pytest.raises(InputError, match=r"labels must be 0 \(normal\) or 1 \(anomalous\), got 2"):
        until.add([0.1, 0.2], [0, 2])
    assert until.labels == (0, 0)
    assert until.certificate is None
    assert until.add([], []) == 0


def test_labels_of_scikit_learn_and_narrow_scores() -> None:
    until = LabelUntil(anomaly_label=-1)
    scores, labels = far(400)
    until.add(scores.astype(np.float32), 1 - 2 * labels)
    assert until.success
    certificate = until.certificate
    assert certificate is not None
    assert certificate.score_type == "float32"
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(*until.scores)


def test_after_the_end_nothing_more_is_taken() -> None:
    until = LabelUntil()
    until.add(*far(600))
    assert until.done
    with pytest.raises(InputError, match="labelling has ended; read the certificate, or start a new"):
        until.add([0.1], [0])


def test_classes_that_overlap_end_with_abstention() -> None:
    until = LabelUntil(every=50, up_to=220)
    rng = np.random.default_rng(3)
    until.add(rng.normal(0.0, 1.0, 300), np.zeros(300, dtype=int))
    assert until.labels == (200, 0)
    assert needs_more(until)
    until.add(rng.normal(1.0, 1.0, 300), np.ones(300, dtype=int))
    assert until.done
    assert not until.success
    certificate = until.certificate
    assert certificate is not None
    assert certificate.regime is Regime.OVERLAPPING
    assert kept_by(certificate) == Guarantee()
    assert not certificate.rule.single
    assert "ended: no look succeeded, and no later one can" in str(until)
    assert certificate.verify(*until.scores)


def test_a_threshold_that_is_given_is_certified_class_by_class() -> None:
    until = LabelUntil(threshold=1.0)
    # a hundred normal labels without an error settle the FPR; two errors after that do no harm
    until.add(np.append(np.zeros(100), [2.0, 2.0] * 10), np.zeros(120, dtype=int))
    assert needs_more(until)
    until.add(np.full(100, 3.0), np.ones(100, dtype=int))
    assert until.success
    certificate = until.certificate
    assert certificate is not None
    assert certificate.rule == Rule(1.0, 1.0)
    assert (certificate.fpr.n, certificate.fnr.n) == (100, 100)
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(*until.scores)
    assert "the threshold 1.0 was fixed beforehand" in str(certificate)


def test_a_threshold_that_is_not_kept_certifies_nothing() -> None:
    until = LabelUntil(every=20, up_to=200, threshold=0.5)
    until.add(np.ones(200), np.zeros(200, dtype=int))
    # the FPR can no longer be certified, so no label of the other class would help
    assert until.done
    assert not until.success
    certificate = until.certificate
    assert certificate is not None
    assert certificate.uncertified
    assert certificate.verdicts([0.0, 1.0, inf]).tolist() == [-1, -1, -1]
    assert "Nothing is promised: the errors at the given threshold exceed their budgets" in str(certificate)
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_separated_classes_are_no_success_at_a_threshold_beyond_them() -> None:
    until = LabelUntil(every=20, up_to=200, threshold=20.0)
    until.add(np.repeat([0.0, 10.0], 200), np.repeat([0, 1], 200))
    assert until.done
    assert not until.success
    certificate = until.certificate
    assert certificate is not None
    assert certificate.regime is Regime.SEPARATED
    assert certificate.uncertified


def test_an_anomaly_at_the_threshold_is_found_and_a_normal_score_just_below_is_no_alarm() -> None:
    until = LabelUntil(every=20, up_to=200, threshold=1.0)
    until.add(np.repeat([np.nextafter(1.0, 0.0), 1.0], 200), np.repeat([0, 1], 200))
    assert until.success
    assert until.certificate is not None
    assert until.certificate.thresholds == Thresholds(alarm_from=1.0, clear_below=1.0)


def test_a_single_ceiling_with_a_threshold() -> None:
    until = LabelUntil(FNR, threshold=0.5)
    until.add([0.7, *[0.1] * 50], [1, *[0] * 50])
    assert needs_more(until)
    until.add([0.7] * 99, [1] * 99)
    assert until.success
    certificate = until.certificate
    assert certificate is not None
    assert certificate.rule == Rule(0.5, 0.5)
    assert certificate.fnr.n == 100
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(*until.scores)
    assert "normal     40" not in str(until)
    assert "normal     50 labels, nothing promised" in str(until)


def test_progress_in_words() -> None:
    until = LabelUntil(Guarantee(0.05, 0.1))
    until.add([0.1] * 110, [0] * 110)
    assert str(until).splitlines() == [
        "asked      FPR <= 0.05 (confidence 0.95), FNR <= 0.1 (confidence 0.95)",
        "looks      at every 20 labels of a class, up to 2,000; local delta 0.007405 (FPR), 0.006833 (FNR)",
        "normal     110 labels, looked at 100: error budget 0; next look at 120",
        "anomalous  0 labels, no look yet; next look at 20",
        "state      keep labelling: no look has succeeded yet",
    ]
    assert until.looks == range(20, 2001, 20)
    certificate = until.certificate
    assert certificate is not None
    assert certificate.regime is Regime.VACUOUS
    until.add([0.9] * 60, [1] * 60)
    assert "anomalous  60 labels, looked at 60: error budget 0" in str(until)
    assert "state      certified: one threshold keeps all ceilings" in str(until)


def test_scores_upside_down_are_warned_of_once_at_the_end() -> None:
    until = LabelUntil(every=50, up_to=100)
    until.add(np.ones(100), np.zeros(100, dtype=int))
    with pytest.warns(UpsideDownWarning, match="anomalies score lower"):
        until.add(np.zeros(100), np.ones(100, dtype=int))
    assert until.done


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"up_to": 40},
            "up_to = 40 labels of a class, looked at every 20, cannot certify FPR <= 0.05 at any",
        ),
        ({"threshold": nan}, "threshold must be a finite number, or None to find it, got nan"),
        ({"threshold": "x"}, "threshold must be a finite number, or None to find it, got 'x'"),
        ({"every": 0}, "every must be a whole number, 1 or more, got 0"),
        ({"guarantee": FNR}, "a single ceiling, FNR <= 0.05, needs a threshold to look at; without one 59"),
        ({"guarantee": 0.05}, "guarantee must be a Guarantee, got 0.05"),
    ],
)
def test_what_is_refused_from_the_start(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LabelUntil(**options)


def test_the_least_up_to_that_is_proposed_is_enough() -> None:
    for every in (1, 7, 20, 59, 60):
        least = -(-59 // every) * every
        assert LabelUntil(every=every, up_to=least).looks[-1] == least
