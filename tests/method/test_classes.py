"""More than two classes: thresholds, label sets, verdicts, order of severity, files and refusals."""

import json
from collections.abc import Callable
from math import inf, nan, prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pac_wrap import (
    CertificateError,
    ClassCertificate,
    Guarantee,
    InputError,
    MissingScoreWarning,
    VacuousWarning,
    calibrate,
    calibrate_classes,
)
from pac_wrap.base.codec import checksum
from pac_wrap.base.floats import shared_together
from pac_wrap.report.numbers import sure
from pac_wrap.tails import error_budget
from support.examples import examples

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
RNG = np.random.default_rng(5)
LABELS = RNG.integers(4, size=900)
SCORES = RNG.normal(0, 1, (900, 4)) + 3 * np.eye(4)[LABELS]
CERTIFICATE = calibrate_classes(SCORES, LABELS)
ORDERED = calibrate_classes(SCORES, LABELS, severities=[3, 1, 0, 2])
VALUES = st.sampled_from([-inf, -1.0, 0.0, 1.0, inf])


def test_each_threshold_is_the_rank_that_its_budget_says() -> None:
    for column, part in enumerate(CERTIFICATE.clauses):
        own = np.sort(SCORES[column == LABELS, column])
        assert part.errors == error_budget(own.size, 0.05, 0.05)
        assert part.threshold is not None
        assert part.threshold == own[part.errors]
        np.testing.assert_array_equal(
            CERTIFICATE.label_sets(SCORES)[:, column], SCORES[:, column] >= part.threshold
        )


def test_a_verdict_is_the_one_class_that_is_left() -> None:
    sets, verdicts = CERTIFICATE.label_sets(SCORES), CERTIFICATE.verdicts(SCORES)
    for left, verdict in zip(sets, verdicts, strict=True):
        alone = np.flatnonzero(left)
        assert verdict == (alone[0] if alone.size == 1 else -2 if alone.size == 0 else -1)
    assert set(verdicts) == {-2, -1, 0, 1, 2, 3}


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=60), st.sampled_from([0.1, 0.3, 0.6]))
def test_two_classes_with_opposite_scores_are_the_binary_certificate(
    points: list[tuple[float, bool]], ceiling: float
) -> None:
    scores, labels = np.array([one for one, _ in points]), np.array([label for _, label in points])
    matrix = np.column_stack([-scores, scores])
    certificate = calibrate_classes(matrix, labels.astype(int), ceiling, delta=0.2)
    binary = calibrate(
        scores[~labels], scores[labels], Guarantee(ceiling, ceiling, 0.2, 0.2), overlap="abstain_always"
    )
    low, high = certificate.clauses
    assert (low.n, high.n) == (binary.fpr.n, binary.fnr.n)
    assert low.budget == binary.fpr.budget
    assert high.budget == binary.fnr.budget
    assert high.digest == binary.fnr.digest
    assert high.threshold == binary.thresholds.clear_below
    assert low.threshold is not None
    assert np.nextafter(-low.threshold, inf) == binary.thresholds.alarm_from
    probes = np.array([-inf, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, inf])
    sets = certificate.label_sets(np.column_stack([-probes, probes]))
    np.testing.assert_array_equal(sets, binary.prediction_sets(probes))
    verdicts = certificate.verdicts(np.column_stack([-probes, probes]))
    np.testing.assert_array_equal(np.maximum(verdicts, -1), _verdicts(sets))


def _verdicts(sets: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(sets.sum(axis=1) == 1, sets.argmax(axis=1), -1)


@settings(max_examples=examples(100), deadline=None)
@given(st.data(), st.integers(2, 10))
def test_no_class_is_ruled_out_more_often_than_its_budget_allows(data: st.DataObject, classes: int) -> None:
    rows = data.draw(
        st.lists(
            st.tuples(st.integers(0, classes - 1), st.lists(VALUES, min_size=classes, max_size=classes)),
            min_size=1,
            max_size=40,
        )
    )
    labels, scores = np.array([label for label, _ in rows]), np.array([row for _, row in rows])
    order = data.draw(st.none() | st.permutations(range(classes)))
    certificate = calibrate_classes(scores, labels, 0.4, delta=0.3, severities=order)
    sets = certificate.label_sets(scores)
    for column, part in enumerate(certificate.clauses):
        assert part.n == np.count_nonzero(labels == column)
        assert np.count_nonzero(~sets[labels == column, column]) <= (part.errors or 0)
    if order is not None:
        place = np.argsort(order)[certificate.verdicts(scores)]
        milder = np.argsort(order)[labels] < place
        np.testing.assert_array_equal(milder, ~sets[np.arange(labels.size), labels])
    assert ClassCertificate.from_json(certificate.to_json()) == certificate
    assert certificate.verify(scores[::-1], labels[::-1])


def test_severities_are_decided_one_after_the_other() -> None:
    taken = np.zeros(900, dtype=bool)
    expected = np.full(900, 2)
    for column in (3, 1, 0):
        own, part = column == LABELS, ORDERED.clauses[column]
        ranked = np.sort(np.where(taken[own], inf, SCORES[own, column]))
        assert part.threshold is not None
        assert part.threshold == ranked[part.errors]
        now = ~taken & (SCORES[:, column] >= part.threshold)
        expected[now] = column
        taken |= now
    np.testing.assert_array_equal(ORDERED.verdicts(SCORES), expected)
    assert ORDERED.clauses[2].ceiling is None


def test_one_score_with_thresholds_in_order() -> None:
    labels = RNG.integers(3, size=600)
    risk = RNG.normal(0, 1, 600) + 4.0 * (2 - labels)
    certificate = calibrate_classes(risk, labels, {0: 0.02, 1: 0.05}, severities=[0, 1, 2])
    high, low = certificate.clauses[0].threshold, certificate.clauses[1].threshold
    assert high is not None
    assert low is not None
    assert certificate.verdicts([high, low, np.nextafter(low, -inf)]).tolist() == [0, 1, 2]
    assert certificate.verify(risk, labels)


def test_a_class_without_labels_is_never_ruled_out() -> None:
    with pytest.warns(VacuousWarning, match="^'2': 0 labels, too few"):
        certificate = calibrate_classes(SCORES[LABELS != 2], LABELS[LABELS != 2])
    assert certificate.empty
    assert certificate.clauses[2].threshold == -inf
    assert certificate.label_sets(SCORES)[:, 2].all()
    assert "too few: at least 59 are needed" in str(certificate)


def test_a_class_of_which_nothing_is_promised_is_never_ruled_out() -> None:
    certificate = calibrate_classes(SCORES, LABELS, {0: 0.1, 1: None, 2: 0.1, 3: 0.1})
    assert certificate.clauses[1].threshold is None
    assert certificate.label_sets(SCORES)[:, 1].all()
    assert ClassCertificate.from_json(certificate.to_json()) == certificate


def test_confidence_is_shared_over_the_classes() -> None:
    certificate = calibrate_classes(SCORES, LABELS, confidence=0.96)
    assert certificate.delta == shared_together(0.04, 4)
    exact = prod(part.budget.confidence for part in certificate.clauses if part.budget is not None)
    assert certificate.confidence == pytest.approx(exact, rel=1e-14)
    assert certificate.confidence >= 0.96
    assert f"together with {sure(certificate.confidence)} conf" in " ".join(str(certificate).split())
    ordered = calibrate_classes(SCORES, LABELS, confidence=0.97, severities=[0, 1, 2, 3])
    assert ordered.confidence >= 0.97
    assert ordered.delta == shared_together(0.03, 3)
    assert "'0' before '1' before '2' before '3'" in str(ordered)


def test_names_of_classes_are_compared_as_texts() -> None:
    names = np.array(["ant", "bee", "cat", "dog"])
    named = calibrate_classes(SCORES, names[LABELS], dict.fromkeys(names, 0.05), classes=names)
    assert [part.threshold for part in named.clauses] == [part.threshold for part in CERTIFICATE.clauses]
    for labels in (LABELS.astype(float), LABELS.astype(str), LABELS.astype(object), list(LABELS)):
        assert calibrate_classes(SCORES, labels) == CERTIFICATE
    two = SCORES[LABELS < 2, :2], LABELS[LABELS < 2] == 1
    assert calibrate_classes(*two, classes=np.array([False, True])) == calibrate_classes(*two), (
        "NumPy's truth"
    )


def test_float32_scores_decide_as_they_calibrated() -> None:
    narrow = SCORES.astype(np.float32)
    certificate = calibrate_classes(narrow, LABELS)
    assert certificate.score_type == "float32"
    np.testing.assert_array_equal(certificate.verdicts(narrow), certificate.verdicts(narrow.astype(float)))
    assert certificate.verify(narrow, LABELS)
    assert certificate.verify(narrow.astype(float), LABELS)
    # the doubles that these were rounded from are rounded again
    assert (narrow.astype(float) != SCORES).any()
    assert certificate.verify(SCORES, LABELS)
    assert not CERTIFICATE.verify(narrow.astype(float), LABELS)


def test_missing_scores_leave_a_row_undecided_or_are_refused() -> None:
    rows = [[nan, 0.0, 0.0, 9.0], [9.0, 0.0, 0.0, 0.0]]
    for certificate in (CERTIFICATE, ORDERED):
        with pytest.warns(MissingScoreWarning, match="1 of 2"):
            assert certificate.verdicts(rows)[0] == -1
        with pytest.warns(MissingScoreWarning):
            assert certificate.label_sets(rows)[0].all()
        with pytest.raises(InputError, match="NaN"):
            certificate.verdicts(rows, on_missing="stop")
    with pytest.raises(InputError, match="class_scores must not contain NaN, got 1 of 2"):
        calibrate_classes(rows, [0, 1])
    with pytest.raises(InputError, match="NaN"):
        CERTIFICATE.verify(rows, [0, 1])


def test_what_was_measured_is_said_class_by_class() -> None:
    found = CERTIFICATE.evaluate(-SCORES, LABELS)
    assert [one.name for one in found] == ["0", "1", "2", "3"]
    assert all(one.exceeded for one in found)
    assert not any(one.exceeded for one in CERTIFICATE.evaluate(SCORES, LABELS))
    with pytest.raises(InputError, match="same length"):
        CERTIFICATE.evaluate(SCORES, LABELS[1:])


def test_verification_names_the_class_that_differs() -> None:
    wrong = CERTIFICATE.verify(SCORES[1:], LABELS[1:])
    assert f"class '{LABELS[0]}'.n is" in str(wrong)
    with pytest.raises(InputError, match="same length"):
        CERTIFICATE.verify(SCORES, LABELS[1:])


def test_a_file_gives_it_back_and_many_classes_fit(tmp_path: Path) -> None:
    many = calibrate_classes(np.eye(1000), range(1000), severities=range(1000))
    for certificate in (CERTIFICATE, ORDERED, many):
        certificate.save(tmp_path / "classes.json")
        assert ClassCertificate.load(tmp_path / "classes.json") == certificate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["clauses"][0].update(budget=50), "the budget of '0' is [0-9]+, not 50"),
        (lambda c: c["clauses"][0].update(kind="1"), "each with its own name"),
        (lambda c: c["clauses"][0].update(kind=None), "every clause must be about a class"),
        (lambda c: c.update(clauses=c["clauses"][:1]), "there must be 2 to 1,000 classes"),
        (lambda c: c["clauses"][0].update(of="anomalous"), "every clause must be about a class"),
        (lambda c: c["clauses"][0].update(delta=0.01), "all classes must have the same delta"),
        (lambda c: c["clauses"][0].update(threshold=None), "must both be there, or neither"),
        (lambda c: c["clauses"][0].update(certified={"ceiling": 0.9}), "differs from the requested one"),
        (lambda c: c["clauses"][0].update(n=3, budget=None), "must be -inf: it has too few labels"),
        (lambda c: c.update(version="x"), "not a version"),
        (lambda c: c.update(score_type="float16"), "is not a float16"),
        (lambda c: c.update(severities=[0, 0, 1, 2]), "name every class once"),
        (lambda c: c.update(severities=[0, 1, 2, 3]), "every class but the mildest"),
    ],
)
def test_what_contradicts_itself_is_refused(change: Callable[[dict[str, Any]], object], message: str) -> None:
    content = json.loads(CERTIFICATE.to_json())
    del content["checksum"]
    change(content)
    with pytest.raises(CertificateError, match=message):
        ClassCertificate.from_json(json.dumps(content | {"checksum": checksum(content)}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_error": 1.5}, "max_error must lie strictly between 0 and 1"),
        ({"max_error": {0: 0.1, 1: 0.1, 2: 0.1}}, "no ceiling for the class '3'"),
        ({"max_error": dict.fromkeys(range(5), 0.1)}, "a ceiling for '4', which is not a class"),
        ({"max_error": dict.fromkeys(range(4))}, "no ceiling for any class"),
        ({"max_error": {0: 2.0, 1: 0.1, 2: 0.1, 3: 0.1}}, "max_error of '0' must lie"),
        ({"delta": 0.1, "confidence": 0.9}, "give either"),
        ({"delta": 2}, "delta must lie"),
        ({"classes": [0, 1]}, "2 columns"),
        ({"classes": [0, 1, 1, 2]}, "a name of its own"),
        ({"severities": [0, 1]}, "severities must name every class once"),
        (
            {"severities": [0, 1, 2, 3], "max_error": dict.fromkeys(range(4), 0.1)},
            "the mildest class, which has no milder one",
        ),
        (
            {"severities": [0, 1, 2, 3], "max_error": {0: 0.1, 1: None, 2: 0.1}},
            "no ceiling for the class '1'",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        calibrate_classes(SCORES, LABELS, **options)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (SCORES[:, 0], LABELS, "a matrix of numbers"),
        (SCORES[:, :1], LABELS * 0, "2 to 1,000 classes, got 1"),
        (SCORES.astype(str), LABELS, "a matrix of numbers"),
        (SCORES, LABELS[1:], "same length"),
        (SCORES, LABELS + 1, "labels must be among the classes 0, 1, 2, 3, got '4'"),
        (SCORES, SCORES, "one-dimensional"),
        (np.empty((0, 3)), [], "at least one labelled row"),
    ],
)
def test_scores_and_labels_that_do_not_fit_are_refused(scores: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        calibrate_classes(scores, labels)
    assert message in str(refusal.value)
